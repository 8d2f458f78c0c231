"""The proof of an optimization: data only, shared by the optimizer that writes it and the checker that reads it.

Terms are a hash-consed DAG. A proof says that the optimized function's result equals the start function's, as a list
of lemmas `left = right`, each a chain of steps; a lemma may use lemmas before it, never after. The bodies of folds have
proofs of their own: a fold names its body, and folds of equal bodies are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.core.ir import Attr, Param
from presk_rel.elab.ty import Type

TermId = int
Value = TermId | Attr | Type
"""What a pattern variable stands for: a term, an attribute, or a type."""


@dataclass(frozen=True, slots=True)
class Term:
    """`op` is a primitive of Core with its attributes, `fold`, or `input` with the attribute `name` (and, if it is
    another function's parameter, that function: lemmas hold for all values of all parameters). `children` come earlier
    in the proof's table. `type` is claimed; the checker recomputes it."""

    op: str
    attrs: tuple[Attr, ...]
    children: tuple[TermId, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class RuleStep:
    """`before = after` by one instance of rule `rule` at the root of the term: left-to-right if `forward`."""

    rule: str
    substitution: tuple[tuple[str, Value], ...]
    forward: bool
    before: TermId
    after: TermId


@dataclass(frozen=True, slots=True)
class CongruenceStep:
    """`before = after`: same operation, and child `positions[k]` of one equals that of the other by lemma `lemmas[k]`
    (left-to-right if `forward[k]`); all other children are identical."""

    before: TermId
    after: TermId
    positions: tuple[int, ...]
    lemmas: tuple[int, ...]
    forward: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class FoldStep:
    """`before = after`: they differ in folds, which are equal by these laws (`folds.laws`) whatever they are given."""

    laws: tuple[str, ...]
    before: TermId
    after: TermId


Step = RuleStep | CongruenceStep | FoldStep


@dataclass(frozen=True, slots=True)
class Lemma:
    """`left = right`: `steps` lead from one to the other; empty iff they are the same term."""

    left: TermId
    right: TermId
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """`lemmas[-1]` is the claim `start = end` about the function `entry`. `names` are the bindings that terms were in
    the start program and are in the end program: for display only, no part of what is proven. `bodies` are the proofs
    for the bodies of folds, each about a function of these `dims` and `params`, which folds in any of the proofs name;
    they have none of their own."""

    entry: str
    terms: tuple[Term, ...]
    lemmas: tuple[Lemma, ...]
    start: TermId
    end: TermId
    names: tuple[tuple[TermId, str], ...] = ()
    bodies: tuple[Proof, ...] = ()
    dims: tuple[str, ...] = ()
    params: tuple[Param, ...] = ()

    @property
    def parts(self) -> tuple[Proof, ...]:
        """The proof of the entry, then those of the bodies."""
        return (self, *self.bodies)
