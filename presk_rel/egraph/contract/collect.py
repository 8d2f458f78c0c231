"""Sums of two contractions that differ in one factor: `x · w + x · v = x · (w + v)`, whatever they are written as.

The e-graph knows this of two equal operations; here are the others: `ein`s, and unequal ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations

from presk_rel.core.ein import EinSpec
from presk_rel.egraph.commute import flipped
from presk_rel.egraph.contract.read import SUMMING, Flat, Reader, Reading
from presk_rel.egraph.contract.write import Writer
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.snapshot import ClassId, ENode, Graph

READINGS = 4
"""Readings of a term of a sum that are looked at."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sum or difference of two contractions, the factors of the second one in the order of those of the first, which
    differ in number `at` only."""

    class_: ClassId
    node: ENode
    first: tuple[Reading, Flat]
    second: tuple[Reading, Flat]
    at: int


@dataclass(frozen=True, slots=True)
class Collector:
    graph: Graph
    terms: Terms
    reader: Reader

    def pairs(self, class_: ClassId) -> Iterator[Pair]:
        """The sums of a class whose terms have common factors."""
        for node in self.graph.nodes[class_]:
            if self.reader.op(node) not in ("add", "sub") or not self.is_sum(class_, node):
                continue
            left, right = (list(islice(self.reader.readings(a), READINGS)) for a in node.args)
            for x in left:
                found = next((p for y in right for p in self.alike(class_, node, x, y)), None)
                if found is not None:
                    yield found
                    break

    def is_sum(self, class_: ClassId, node: ENode) -> bool:
        """Whether it adds two contractions of its own type, not both by one operation, which the e-graph would know."""
        own = self.graph.types[class_]
        if class_ in node.args or any(a not in self.reader.representative for a in node.args):
            return False
        if any(self.graph.types[a] != own for a in node.args):
            return False
        ops = [{self.reader.op(n) for n in self.reader.readable(a)} for a in node.args]
        return all(found & SUMMING for found in ops) and ("ein" in ops[0] | ops[1] or not ops[0] & ops[1])

    def alike(self, class_: ClassId, node: ENode, x: tuple[Reading, Flat], y: tuple[Reading, Flat]) -> Iterator[Pair]:
        one, other = x[1], y[1]
        if len(one.factors) != len(other.factors) or len(one.factors) > 3:
            return
        for order in permutations(other.factors):
            turned = Flat(order, other.result, other.axes)
            at = self.differing(one, turned)
            if at is not None:
                yield Pair(class_, node, x, (y[0], turned), at)

    def differing(self, one: Flat, other: Flat) -> int | None:
        """The only factor that differs, if it has the same type and axes."""
        if one.key[len(one.factors) :] != other.key[len(one.factors) :]:
            return None
        pairs = zip(one.factors, other.factors, strict=True)
        places = [i for i, ((a, _), (b, _)) in enumerate(pairs) if a != b]
        types = [self.graph.types[f.factors[places[0]][0]] for f in (one, other)] if len(places) == 1 else [0, 1]
        return places[0] if types[0] == types[1] else None

    def collect(self, pair: Pair, writer: Writer) -> None:
        """Write the sum as one contraction where that costs less."""
        (x, flat), (y, other) = pair.first, pair.second
        a, b = flat.factors[pair.at][0], other.factors[pair.at][0]
        own = self.graph.types[a]
        op = self.reader.op(pair.node)
        inner = ENode(self.terms.intern(Head(op, (), own)), (b, a) if _turned(op, a, b) else (a, b))
        there = [pair.node, *({**x.nodes(), **y.nodes()}).values()]
        whole = writer.class_of(inner, writer.term(inner))
        factors = ((whole, flat.factors[pair.at][1]), *(f for i, f in enumerate(flat.factors) if i != pair.at))
        joined = Flat(factors, flat.result, flat.axes)
        plan = writer.plan(joined)
        if plan.units + writer.cost([inner]) >= writer.cost(there):
            return
        new = writer.written(pair.class_, joined, plan)
        if new is not None:
            self.prove(pair, writer, new)

    def prove(self, pair: Pair, writer: Writer, new: TermId) -> None:
        """Both terms as contractions with the differing factor first, and these as one."""
        unfold = writer.unfold
        (x, flat), (y, other) = pair.first, pair.second
        own = self.graph.types[pair.class_]
        order = [pair.at, *(i for i in range(len(flat.factors)) if i != pair.at)]
        spec = unfold.spec_of(flat, own)
        spec = EinSpec(tuple(spec.operands[i] for i in order), spec.result)
        sides: list[TermId] = []
        for reading, f in ((x, flat), (y, other)):
            factors = [self.reader.representative[f.factors[i][0]] for i in order]
            sides.append(unfold.ein(spec, factors, own))
            unfold.equal(unfold.flat(writer.read(reading)), sides[-1])
        op = self.reader.op(pair.node)
        differing = [self.terms.args[s][0] for s in sides]
        inner = self.terms.make(self.terms.intern(Head(op, (), self.terms.type[differing[0]])), tuple(differing))
        left = self.terms.make(pair.node.head, tuple(sides))
        rest = self.terms.args[sides[0]][1:]
        right = unfold.ein(spec, [inner, *rest], own)
        unfold.say(f"ein.{op}-{len(order)}", left, right)
        if _turned(op, flat.factors[pair.at][0], other.factors[pair.at][0]):
            inner = flipped(self.terms, unfold.closure, inner)
        unfold.equal(unfold.ein(spec, [inner, *rest], own), new)


def _turned(op: str, a: ClassId, b: ClassId) -> bool:
    """Whether a sum's terms are exchanged: `w + v` of one sum is the `v + w` of another one."""
    return op == "add" and a > b
