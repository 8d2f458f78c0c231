"""What a proof is made of. The data only: `proofs` finds proofs, `proof_check` checks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from presk_rel.diagnostics import Span
from presk_rel.rules.ast import Comparison, Row, Value
from presk_rel.rules.printer import Printer, atom_text

Fact = tuple[str, Row]
"""Relation and row."""

Pattern = tuple[str, tuple[Value | None, ...]]
"""Relation and row, where None is any value."""

Kind = OneOf["fact", "derived", "absence", "comparison", "aggregate"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProofNode:
    """One step of a proof.

    - "fact": the input row `fact`; height 0.
    - "derived": `fact` by the rule named `rule`, at `span`; `because` has one node for each literal of its body, in
      order; the height is one more than the greatest among them.
    - "absence": no row matches `fact`, whose None stand for any value; height 0.
    - "comparison", "aggregate": `claim`, the literal with its variables replaced by their values; height 0. `group`
      has the rows that an aggregate ranged over.

    Nodes are shared: a proof is an acyclic graph, and may be far smaller than the tree that it stands for.
    """

    kind: Kind
    fact: Pattern | None = None
    rule: str | None = None
    span: Span | None = None
    because: tuple[ProofNode, ...] = ()
    height: int = 0
    claim: Comparison | None = None
    group: tuple[Fact, ...] = ()

    @property
    def text(self) -> str:
        """The claim of this node alone, in the rule language."""
        if self.fact is not None:
            return ("!" if self.kind == "absence" else "") + atom_text(*self.fact)
        return "" if self.claim is None else Printer().literal(self.claim)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.text} by {self.rule}, height {self.height}>"


@dataclass(frozen=True, slots=True)
class Attempt:
    """How far a rule gets towards an absent fact: its longest satisfied prefix of premises, and the first that fails.

    A failed premise of kind "fact" is a row that does not exist (None: any value); of kind "absence", a row that does;
    of kind "comparison" or "aggregate", a claim that does not hold.
    """

    rule: str
    span: Span
    satisfied: tuple[ProofNode, ...]
    failed: ProofNode


@dataclass(frozen=True, slots=True)
class Absence:
    """Why nothing matches `goal`. `present` has the rows that do match, in which case there are no `attempts`."""

    goal: Pattern
    present: tuple[Row, ...]
    attempts: Sequence[Attempt]


def walk_proof(root: ProofNode) -> Iterator[tuple[int, ProofNode, bool]]:
    """(depth, node, whether it came before) in the order of reading; a node that came before is not entered again."""
    seen: set[int] = set()
    todo = [(0, root)]
    while todo:
        depth, node = todo.pop()
        repeated = id(node) in seen and bool(node.because)
        yield depth, node, repeated
        if not repeated:
            seen.add(id(node))
            todo.extend((depth + 1, child) for child in reversed(node.because))
