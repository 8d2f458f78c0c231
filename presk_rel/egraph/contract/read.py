"""Classes of the e-graph read as sums of products: by one of their nodes, whose operands may be read further."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import cast

from presk_rel.egraph.contract.products import READ, Label, Labels, Product, product_of
from presk_rel.egraph.language import HeadId, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules.contractions import MOST
from presk_rel.egraph.snapshot import ClassId, ENode, Graph
from presk_rel.elab.ty import Axis, Real

READINGS = 24
"""Ways to read one class that are looked at."""

WAYS = 3
"""Nodes of a class by which it is read."""

SUMMING = READ - {"mul", "broadcast_like"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A class by one of its nodes. `parts` are the operands whose values are read: classes, or read themselves."""

    class_: ClassId
    node: ENode
    parts: tuple[ClassId | Reading, ...]

    @property
    def factors(self) -> int:
        """How many classes are not read further."""
        return sum(p.factors if isinstance(p, Reading) else 1 for p in self.parts)

    def nodes(self) -> dict[tuple[ClassId, HeadId, tuple[int, ...]], ENode]:
        """All nodes that are read."""
        found = {(self.class_, self.node.head, self.node.args): self.node}
        for p in self.parts:
            if isinstance(p, Reading):
                found |= p.nodes()
        return found


@dataclass(frozen=True, slots=True)
class Flat:
    """A sum of products of classes. `axes` has an axis of every label."""

    factors: tuple[tuple[ClassId, Labels], ...]
    result: Labels
    axes: dict[Label, Axis]

    @property
    def key(self) -> tuple[object, ...]:
        """The same of flat sums that differ in the numbers of their labels only."""
        number: dict[Label, int] = {}
        lists = [self.result, *(labels for _, labels in self.factors)]
        return (*(c for c, _ in self.factors), *(tuple(number.setdefault(a, len(number)) for a in x) for x in lists))


@dataclass(slots=True)
class Reader:
    graph: Graph
    terms: Terms
    representative: dict[ClassId, TermId]
    _products: dict[tuple[HeadId, tuple[TypeId, ...]], Product | None] = field(
        default_factory=dict[tuple[HeadId, tuple[TypeId, ...]], "Product | None"]
    )
    _readable: dict[ClassId, list[ENode]] = field(default_factory=dict[ClassId, "list[ENode]"])

    def op(self, node: ENode) -> str:
        return self.terms.heads[node.head].op

    def types(self, node: ENode) -> tuple[TypeId, ...]:
        return tuple(self.graph.types[a] if a >= 0 else -1 - a for a in node.args)

    def product(self, node: ENode) -> Product | None:
        key = (node.head, self.types(node))
        if key not in self._products:
            head = self.terms.heads[node.head]
            types = self.terms.table.types
            self._products[key] = product_of(head.op, head.attrs, tuple(types[t] for t in key[1]))
        return self._products[key]

    def readable(self, class_: ClassId) -> list[ENode]:
        """The nodes by which a class is read."""
        if class_ not in self._readable:
            nodes = (n for n in self.graph.nodes[class_] if self.op(n) in READ and self.reads(n, class_))
            self._readable[class_] = [n for n, _ in zip(nodes, range(WAYS), strict=False)]
        return self._readable[class_]

    def reads(self, node: ENode, class_: ClassId) -> bool:
        known = all(a < 0 or (a in self.representative and a != class_) for a in node.args)
        if not known or self.product(node) is None:
            return False
        own = self.terms.table.types[self.graph.types[class_]]
        names = [a.name for a in own.shape.axes if a.name is not None] if isinstance(own, Real) else []
        return len(set(names)) == len(names)

    def is_root(self, class_: ClassId) -> bool:
        """Whether a class may be a contraction that is more than one operation of factors that are none."""
        for node in self.readable(class_):
            parts = [n for a in _operands(node) for n in self.readable(a)]
            if self.op(node) == "mul":
                parts = [n for n in parts if self.op(n) in SUMMING]
            if parts and self.op(node) != "broadcast_like":
                return True
            if self.op(node) == "ein" and len(node.args) > 2:
                return True
        return False

    # ------------------------------------------------------------------------------------------------ readings

    def readings(self, class_: ClassId) -> Iterator[tuple[Reading, Flat]]:
        """The ways to read a class, each sum of products once, those with fewer operations first."""
        waiting = [Reading(class_, n, _operands(n)) for n in self.readable(class_) if self.op(n) != "broadcast_like"]
        seen: set[tuple[object, ...]] = set()
        for reading in waiting:
            flat = self.flat(reading)
            if flat is not None and flat.key not in seen:
                seen.add(flat.key)
                yield reading, flat
            if len(waiting) < READINGS:
                waiting += self.grown(reading, frozenset())

    def grown(self, reading: Reading, above: frozenset[ClassId]) -> Iterator[Reading]:
        """With one operand more that is read."""
        above = above | {reading.class_}
        for i, part in enumerate(reading.parts):
            if isinstance(part, Reading):
                ways = self.grown(part, above)
            else:
                nodes = self.readable(part) if part not in above else []
                ways = (Reading(part, n, _operands(n)) for n in nodes if above.isdisjoint(n.args))
            for way in ways:
                yield replace(reading, parts=(*reading.parts[:i], way, *reading.parts[i + 1 :]))

    def flat(self, reading: Reading) -> Flat | None:
        """The whole as one sum of products; None where it is none, or has too many factors."""
        if reading.factors > MOST:
            return None
        own = self.terms.table.types[self.graph.types[reading.class_]]
        assert isinstance(own, Real)
        result = tuple(range(len(own.shape.axes)))
        fresh = count(len(result))
        factors: list[tuple[ClassId, Labels]] = []
        spread: set[Label] = set(result)
        stack: list[tuple[ClassId | Reading, Labels]] = [(reading, result)]
        while stack:
            part, labels = stack.pop()
            if not isinstance(part, Reading):
                factors.append((part, labels))
                continue
            product = cast("Product", self.product(part.node))
            spread.update(labels)
            known = dict(zip(product.result, labels, strict=True))
            inner = [tuple(known[a] if a in known else known.setdefault(a, next(fresh)) for a in x)
                     for x in product.factors]  # fmt: skip
            if not self.spreads(part.parts, inner):
                return None
            stack += list(zip(part.parts, inner, strict=True))[::-1]
        axes = {a: axis for c, labels in reversed(factors) for a, axis in self.axes(c, labels)}
        return Flat(tuple(factors), result, axes) if spread <= axes.keys() else None

    def spreads(self, parts: tuple[ClassId | Reading, ...], labels: list[Labels]) -> bool:
        """Whether what is repeated among the operands of one operation is so along axes of its other operands, one
        after the other, the last one first: as `unfold` takes repetitions out."""
        now = list(labels)
        for i in reversed(range(len(parts))):
            now[i] = self.repeated(parts[i], labels[i])
            others = {a for k, x in enumerate(now) if k != i for a in x}
            if not set(labels[i]) - set(now[i]) <= others:
                return False
        return True

    def repeated(self, part: ClassId | Reading, labels: Labels) -> Labels:
        """The labels of what an operand repeats, or its own."""
        while isinstance(part, Reading) and self.op(part.node) == "broadcast_like":
            product = cast("Product", self.product(part.node))
            known = dict(zip(product.result, labels, strict=True))
            labels = tuple(known[a] for a in product.factors[0])
            part = part.parts[0]
        return labels

    def axes(self, class_: ClassId, labels: Labels) -> Iterator[tuple[Label, Axis]]:
        ty = self.terms.table.types[self.graph.types[class_]]
        assert isinstance(ty, Real)
        return zip(labels, ty.shape.axes, strict=True)


def _operands(node: ENode) -> tuple[ClassId, ...]:
    return tuple(a for a in node.args if a >= 0)
