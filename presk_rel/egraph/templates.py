"""Operands that are read for their type only: in the e-graph they are types, in terms the template of the type. The
rules `<op>.template` say that this changes nothing; here are their instances."""

from __future__ import annotations

from presk_rel.core.prims import PRIMS
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.instances import Instance, Value
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.patterns import ABSENT, Apply, Name, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules import RULES


def shape_operands(head: Head) -> tuple[int, ...]:
    """The operands of an operation that are read for their type only, where a rule says so."""
    return PRIMS[head.op].shape_only if f"{head.op}.template" in RULES else ()


def canonical_args(terms: Terms, term: TermId) -> tuple[TermId, ...]:
    """The operands with templates where only a type is read."""
    shapes = shape_operands(terms.op(term))
    args = terms.args[term]
    if not shapes:
        return args
    return tuple(terms.template(terms.type[a]) if i in shapes else a for i, a in enumerate(args))


def canonicalize(terms: Terms, closure: Closure, first: TermId) -> None:
    """Add the instances for all terms from number `first` on."""
    t = first
    while t < len(terms):
        args = canonical_args(terms, t)
        if args != terms.args[t]:
            closure.add(_instance(terms, t, terms.make(terms.head[t], args)))
        t += 1
    closure.extend()


def _instance(terms: Terms, term: TermId, canonical: TermId) -> Instance:
    """One operand is exchanged: no primitive has two that are read for their type only."""
    head = terms.op(term)
    rule = RULES[f"{head.op}.template"]
    side = read_rule(rule)
    assert isinstance(side.left, Apply)
    assert isinstance(side.right, Apply)
    values: dict[str, Value] = {side.left.type.name: head.type}
    for pattern, args in ((side.left, terms.args[term]), (side.right, terms.args[canonical])):
        values |= {a.name: t for a, t in zip(pattern.args, args, strict=True) if isinstance(a, Name)}
    attrs = [a.name for a in side.left.attrs if isinstance(a, Name)]
    values |= dict(zip(attrs, (*head.attrs, *[ABSENT] * (len(attrs) - len(head.attrs))), strict=True))
    return Instance(rule, values, term, canonical)
