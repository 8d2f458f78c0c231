"""The proof of an optimization: data only, shared by the optimizer that writes it and the checker that reads it.

Terms are a hash-consed DAG. A proof says that the tuple of the optimized function's results equals the start
function's, as a list of lemmas `left = right`, each a chain of steps; a lemma may use lemmas before it, never after.
"""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.core.ir import Attr
from presk_rel.elab.ty import Type

TermId = int
Value = TermId | Attr | Type
"""What a pattern variable stands for: a term, an attribute, or a type."""


@dataclass(frozen=True, slots=True)
class Term:
    """`op` is a primitive of Core with its attributes, or `input` with the attribute `name`. `children` come earlier in
    the proof's table. `type` is claimed; the checker recomputes it."""

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


Step = RuleStep | CongruenceStep


@dataclass(frozen=True, slots=True)
class Lemma:
    """`left = right`: `steps` lead from one to the other; empty iff they are the same term."""

    left: TermId
    right: TermId
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """`lemmas[-1]` is the claim `start = end`. `names` are the bindings that terms were in the start program and are
    in the end program: for display only, no part of what is proven."""

    entry: str
    terms: tuple[Term, ...]
    lemmas: tuple[Lemma, ...]
    start: TermId
    end: TermId
    names: tuple[tuple[TermId, str], ...] = ()
