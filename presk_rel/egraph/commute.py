"""Sums and products that the program computes both ways round, `x + y` and `y + x`, are one value. Found here, between
operations that are there, because commutativity as a rewrite rule doubles an e-graph."""

from __future__ import annotations

from presk_rel.egraph.closure import Closure
from presk_rel.egraph.instances import Instance, Value
from presk_rel.egraph.language import Terms
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules import RULES


def commuted(terms: Terms, closure: Closure) -> list[tuple[TermId, TermId]]:
    """Pairs of terms that differ in the order of their operands, with their instances added to the closure. Operands
    that are such pairs themselves count as one: sums of sums are found from the inside out."""
    closure.settle()  # normal forms of sums may be terms that no instance has brought in
    seen: dict[tuple[int, TermId, TermId], TermId] = {}
    pairs: list[tuple[TermId, TermId]] = []
    for t in range(len(terms)):
        head = terms.op(t)
        if head.op not in ("add", "mul"):
            continue
        x, y = terms.args[t]
        other = seen.get((terms.head[t], closure.find(y), closure.find(x)))
        if other is None:
            seen.setdefault((terms.head[t], closure.find(x), closure.find(y)), t)
        elif (
            not closure.equal(t, other) and terms.table.infer(head.op, (), (terms.type[y], terms.type[x])) == head.type
        ):
            flipped(terms, closure, t)
            pairs.append((other, t))
    return pairs


def flipped(terms: Terms, closure: Closure, term: TermId) -> TermId:
    """A sum or product with its operands the other way round, which has its type too; equal in the closure now."""
    head, (x, y) = terms.op(term), terms.args[term]
    values: dict[str, Value] = {"x": x, "y": y, "t": head.type, "#0": head.type}
    other = terms.make(terms.head[term], (y, x))
    closure.add(Instance(RULES[f"{head.op}.commute"], values, term, other))
    return other
