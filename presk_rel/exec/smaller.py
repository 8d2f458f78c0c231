"""An instance of a rule at smaller constant lengths: what a rule says of 768 features it says of 3.

The instance with other lengths is one that the checker has to accept too, by the same typing rules and conditions: so
whatever a sample of it refutes, it refutes the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

from presk_rel.egraph.checker import no_instance
from presk_rel.egraph.proof import Proof, RuleStep, Term, TermId, Value
from presk_rel.egraph.rule import Rule
from presk_rel.elab.ty import Axis, Idx, Mask, ModuleDef, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, constant

SMALL = 4
"""Constant lengths up to this stay as they are."""

Lengths = Callable[[Linear], Linear]


def smaller(
    proof: Proof,
    step: RuleStep,
    computed: set[TermId],
    given: set[TermId],
    rules: Mapping[str, Rule],
    modules: Mapping[str, ModuleDef],
) -> tuple[Proof, RuleStep] | None:
    """The instance with its constant lengths replaced by small ones, different ones by different ones; None where the
    checker does not take it for one. `computed` are the terms of both sides, down to those that the variables stand
    for, `given`."""
    terms = {i: proof.terms[i] for i in computed | given}
    lengths = _shrunk([t.type for t in terms.values()])
    changed = {i: _term(t, lengths) for i, t in terms.items()}
    substitution = tuple((name, _value(v, lengths)) for name, v in step.substitution)
    other = replace(proof, terms=tuple(changed.get(i, t) for i, t in enumerate(proof.terms)))
    found = replace(step, substitution=substitution)
    return None if no_instance(other, found, sorted(computed), rules, modules) else (other, found)


def _shrunk(types: list[Type]) -> Lengths:
    """Small lengths for the large ones: a product of two of them is the product of theirs."""
    every = sorted({n for ty in types for n in _constants(ty)})
    small = {n: n for n in every if n <= SMALL}
    for n in every[len(small) :]:
        products = (small[a] * small[n // a] for a in small if a > 1 and n % a == 0 and n // a in small)
        fresh = (k for k in count(2) if k not in small.values())
        small[n] = next(products, None) or next(fresh)
    return lambda form: constant(small.get(int(form.const), int(form.const))) if form.is_constant else form


def _constants(ty: Type) -> list[int]:
    match ty:
        case Real(shape) | Mask(shape):
            return [int(a.length.const) for a in (*shape.front, *shape.axes) if a.length.is_constant]
        case Idx(bound, shape):
            return [*_constants(Real(shape)), *([int(bound.const)] if bound.is_constant else [])]
        case TupleOf(items):
            return [n for t in items for n in _constants(t)]
        case _:
            return []


def _type(ty: Type, lengths: Lengths) -> Type:
    match ty:
        case Real(shape):
            return Real(_shape(shape, lengths))
        case Mask(shape):
            return Mask(_shape(shape, lengths))
        case Idx(bound, shape):
            return Idx(lengths(bound), _shape(shape, lengths))
        case TupleOf(items):
            return TupleOf(tuple(_type(t, lengths) for t in items))
        case _:
            return ty


def _shape(shape: Shape, lengths: Lengths) -> Shape:
    front, axes = (tuple(Axis(a.name, lengths(a.length)) for a in run) for run in (shape.front, shape.axes))
    return Shape(shape.prefix, axes, front)


def _term(term: Term, lengths: Lengths) -> Term:
    attrs = tuple(lengths(a) if isinstance(a, Linear) else a for a in term.attrs)
    return replace(term, attrs=attrs, type=_type(term.type, lengths))


def _value(value: Value, lengths: Lengths) -> Value:
    match value:
        case Linear():
            return lengths(value)
        case Real() | Mask() | Idx() | TupleOf():
            return _type(value, lengths)
        case _:
            return value
