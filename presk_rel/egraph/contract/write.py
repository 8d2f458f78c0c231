"""Contractions in their cheapest order as choices of the extraction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from presk_rel.egraph.choices import Weights
from presk_rel.egraph.contract.operations import Factor, Wanted, operation, placed
from presk_rel.egraph.contract.order import Leaf, Order, Plan, Sum, cheapest
from presk_rel.egraph.contract.price import Price
from presk_rel.egraph.contract.products import Labels, product_of
from presk_rel.egraph.contract.read import Flat, Reader, Reading
from presk_rel.egraph.contract.unfold import Expr, Unfolder, named
from presk_rel.egraph.cost import BYTE, FLOP, LARGEST, LAUNCH
from presk_rel.egraph.language import Head, HeadId, Terms
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.snapshot import ClassId, ENode, Graph
from presk_rel.elab.ty import Axis, Real, Shape

WRITTEN = 3
"""Orders of one class that become choices."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A factor, or a product of some, with the expression it is proven by (None: a factor of the whole)."""

    class_: ClassId
    labels: Labels
    expr: Expr | None


@dataclass(frozen=True, slots=True)
class Better:
    """An order that saves some units of cost against what is read."""

    reading: Reading
    flat: Flat
    plan: Plan
    saved: int


@dataclass(slots=True)
class Writer:
    graph: Graph
    terms: Terms
    reader: Reader
    unfold: Unfolder
    weights: Weights
    _index: dict[tuple[HeadId, tuple[int, ...]], ClassId] = field(
        default_factory=dict[tuple[HeadId, tuple[int, ...]], ClassId]
    )
    _plans: dict[object, Plan] = field(default_factory=dict[object, Plan])

    def __post_init__(self) -> None:
        for class_, nodes in enumerate(self.graph.nodes):
            for node in nodes:
                self._index.setdefault((node.head, node.args), class_)

    def plan(self, flat: Flat) -> Plan:
        """The cheapest order of a sum of products at the bound dimensions."""
        lengths = {a: self.weights.model.length(axis.length) for a, axis in flat.axes.items()}
        factors = tuple(x for _, x in flat.factors)
        key = (factors, flat.result, tuple(sorted(lengths.items())))
        if key not in self._plans:
            self._plans[key] = cheapest(factors, flat.result, lengths.__getitem__, units)
        return self._plans[key]

    def cost(self, nodes: Iterable[ENode]) -> int:
        return sum(self.weights.units(n.head, self.reader.types(n)) for n in nodes)

    def better(self, class_: ClassId) -> list[Better]:
        """The readings of a class whose cheapest order costs less than what is read, those that save most first."""
        found: list[Better] = []
        for reading, flat in self.reader.readings(class_):
            plan, nodes = self.plan(flat), reading.nodes().values()
            there = self.cost(nodes)
            if plan.units < there and self.no_more(nodes, plan.price):
                found.append(Better(reading, flat, plan, there - plan.units))
        return sorted(found, key=lambda b: -b.saved)[:WRITTEN]

    def no_more(self, nodes: Iterable[ENode], price: Price) -> bool:
        """Whether a sum of products takes no more arithmetic and traffic than what is read: launches are not all."""
        types = self.terms.table.types
        flops = moved = 0
        for node in nodes:
            head = self.terms.heads[node.head]
            operands = tuple(types[t] for t in self.reader.types(node))
            work = self.weights.model.work(head.op, head.attrs, operands, types[head.type])
            flops, moved = flops + work.flops, moved + work.bytes
        return price.flops <= flops and 4 * price.moved <= moved

    def write(self, better: Better) -> None:
        class_ = better.reading.class_
        views = better.saved <= 2 * len(better.reading.nodes())
        new = self.written(class_, better.flat, better.plan, simple=views)
        if new is not None:
            self.unfold.equal(self.unfold.flat(self.read(better.reading)), new)

    def written(self, class_: ClassId, flat: Flat, plan: Plan, *, simple: bool = False) -> TermId | None:
        """A sum of products that is to be a node of the class, and the flat `ein` that this node is. None where the
        class has it; and where nothing is saved but views, an `ein` in place of what composites are made of."""
        head, parts = self.operation(
            self.operands(plan.order, flat), flat, Wanted(flat.result, self.graph.types[class_])
        )
        node = ENode(self.terms.intern(head), tuple(p.class_ for p in parts))
        if node in self.graph.nodes[class_] or class_ in node.args or (simple and head.op == "ein"):
            return None
        self.graph.nodes[class_].append(node)
        return self.unfold.flat(Expr(self.term(node), tuple(p.expr for p in parts)))

    def read(self, reading: Reading) -> Expr:
        """What is read as an expression."""
        parts = tuple(self.read(p) if isinstance(p, Reading) else None for p in reading.parts)
        return Expr(self.term(reading.node), parts)

    def term(self, node: ENode) -> TermId:
        args = (self.reader.representative[a] if a >= 0 else self.terms.template(-1 - a) for a in node.args)
        return self.terms.make(node.head, tuple(args))

    # ------------------------------------------------------------------------------------------------ parts

    def operands(self, order: Order, flat: Flat) -> list[_Part]:
        """What the last operation of an order works on."""
        if isinstance(order, Leaf):
            class_, labels = flat.factors[order.factor]
            return [_Part(class_, labels, None)]
        if isinstance(order, Sum):
            return [self.part(order.part, flat)]
        return [self.part(order.left, flat), self.part(order.right, flat)]

    def part(self, order: Order, flat: Flat) -> _Part:
        operands = self.operands(order, flat)
        if isinstance(order, Leaf) and operands[0].labels == order.labels:
            return operands[0]
        head, parts = self.operation(operands, flat, Wanted(order.labels, None))
        types = tuple(self.terms.table.types[self.graph.types[p.class_]] for p in parts)
        product = product_of(head.op, head.attrs, types)
        assert product is not None
        there = placed(product.factors, [Factor(self.graph.types[p.class_], p.labels) for p in parts])
        assert there is not None
        node = ENode(self.terms.intern(head), tuple(p.class_ for p in parts))
        term = self.term(node)
        class_ = self.class_of(node, term)
        return _Part(class_, tuple(there[a] for a in product.result), Expr(term, tuple(p.expr for p in parts)))

    def class_of(self, node: ENode, term: TermId) -> ClassId:
        known = self._index.get((node.head, node.args))
        if known is not None and known in self.reader.representative:
            return known
        self.graph.nodes.append([node])
        self.graph.types.append(self.terms.heads[node.head].type)
        made = self._index[node.head, node.args] = len(self.graph.nodes) - 1
        self.reader.representative[made] = term
        return made

    # ------------------------------------------------------------------------------------------------ operations

    def operation(self, parts: list[_Part], flat: Flat, wanted: Wanted) -> tuple[Head, list[_Part]]:
        """The operation that makes a product of its operands, summed over what is not wanted; an `ein` if nothing
        else. Where its type is free, axes that both have come first: as products of matrices are made."""
        table = self.terms.table
        found = operation(table, [Factor(self.graph.types[p.class_], p.labels) for p in parts], wanted)
        if found is not None:
            return found[0], parts[::-1] if found[1] else parts
        result, own = wanted.labels, wanted.type
        if own is None:
            first = [a for a in parts[0].labels if a in parts[-1].labels]
            every = dict.fromkeys([*first, *(a for p in parts for a in p.labels)])
            result = tuple(a for a in every if a in wanted.labels)
        called = {a: axis.name for a, axis in flat.axes.items()}
        given = self.unfold.shape(own) if own is not None else tuple(Axis(None, flat.axes[a].length) for a in result)
        spec = named([p.labels for p in parts], result, called, given)
        if own is None:
            made = ((n if n == called[a] else None, a) for n, a in zip(spec.result, result, strict=True))
            axes = tuple(Axis(n, flat.axes[a].length) for n, a in made)
            own = table.intern(Real(Shape(None, axes)))
        return Head("ein", (str(spec),), own), parts


def units(price: Price) -> int:
    """As `choices.Weights` counts operations."""
    work = LAUNCH * price.launches + BYTE * 4 * price.moved + FLOP * price.flops
    return 4 * min(LARGEST, work) + 2 * price.launches
