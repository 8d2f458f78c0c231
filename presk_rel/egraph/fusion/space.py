"""Whether one launch can compute a set of operations, and what it then costs: the conditions on a kernel.

A kernel runs over one index space, P × R: a block of threads has a point of P and loops over R.

- Every operation of the set is computed at points of that space, as `roles.indexing` says; an axis that would have to
  be two axes of the space at once (`x + xᵀ`) makes it no kernel.
- All reductions and row operations run over the same axes, R, and leave all of P: softmax and layer normalization, with
  what comes before and after them, are such kernels; a sum over rows and a sum over columns are two.
- A kernel with a contraction runs over its result (P) and what it sums over (R). Before it, entry by entry, operands
  may be computed; after it, entry by entry, its result is worked on (bias, activation, residual); and an operand may be
  summed over R on the way (the gradient of a bias with that of its matrix, or of a row of weights: a sum of products
  that is no product of matrices is a reduction). Contractions of one form that share an operand are one launch over a
  group (the three projections of attention).
- Whatever is read from memory is there before the launch: no path leads out of the set and back into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from presk_rel.core.ir import Prim
from presk_rel.egraph.cost import BYTE, FLOP, LARGEST, LAUNCH
from presk_rel.egraph.fusion.graph import OUTSIDE, Graph, Node

TILE = 64
"""Contractions work on tiles of this many rows and columns: what comes before them is computed once per tile."""

Slot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kernel:
    """`work` are the operations it does, as bits; `ops` these and what it computes anew, in order; `loads` what it
    reads and `outputs` what it writes: with `whole` all that others read. `units` is its cost, `bytes` and `flops` are
    parts of it."""

    work: int
    ops: tuple[int, ...]
    loads: tuple[str, ...]
    outputs: tuple[int, ...]
    units: int
    bytes: int
    flops: int
    whole: bool


@dataclass(slots=True)
class Space:
    """Kernels of one graph, each set of operations looked at once; `looked` counts the operations of all sets."""

    graph: Graph
    looked: int = 0
    known: dict[int, tuple[Kernel, ...]] = field(default_factory=dict[int, tuple["Kernel", ...]])

    def kernels(self, work: int) -> tuple[Kernel, ...]:
        """The kernels that do this work: one that writes all that is read elsewhere, and one that writes only what
        nothing of its own reads, the rest being computed anew by its readers. None: no launch does it."""
        found = self.known.get(work)
        if found is None:
            self.looked += work.bit_count()
            found = self.known[work] = tuple(_kernels(self.graph, work))
        return found


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set, ascending."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def mask_of(indices: Iterable[int]) -> int:
    return sum(1 << i for i in set(indices))


# ------------------------------------------------------------------------------------------------------ the set


def _kernels(graph: Graph, work: int) -> list[Kernel]:
    """With what several of its operations load read once; else each for itself; else, of an operation that reads one
    constant in two ways (`w·w` of ones), with that in memory."""
    for anew, joined in ((True, True), (True, False), (False, False)):
        if not anew and work.bit_count() > 1:
            break
        ops, loads = _closed(graph, work, anew=anew)
        outputs = _outputs(graph, work, ops, loads)
        layout = _Layout(graph, ops, loads if joined else ()) if outputs else None
        if layout is None or not layout.fits():
            continue
        found = [
            _priced(graph, work, ops, loads, written, layout, whole=whole)
            for written, whole in outputs
            if layout.writes(written)
        ]
        if found:
            return found
    return []


def _outputs(
    graph: Graph, work: int, ops: tuple[int, ...], loads: tuple[str, ...]
) -> list[tuple[tuple[int, ...], bool]]:
    """What kernels of these operations may write, and whether that is all that others read: none of it that a load
    depends on. (What is not written, the load may depend on: it is computed anew here.)"""
    inside = frozenset(ops)
    before = 0
    for node in (graph.node(v) for v in loads):
        before |= 0 if node is None else graph.before[node.index] | 1 << node.index
    written = tuple(i for i in bits(work) if graph.readers[i] - inside)
    last = tuple(i for i in written if not graph.readers[i] & inside)
    both = [(written, True), (last, False)] if last != written else [(written, True)]
    return [(outputs, whole) for outputs, whole in both if outputs and not before & mask_of(outputs)]


def _closed(graph: Graph, work: int, *, anew: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The operations with those they compute anew, in order, and what they load."""
    members = set(bits(work))
    loads: dict[str, None] = {}
    stack = sorted(members)
    while stack:
        for v, places in graph.nodes[stack.pop()].reads:
            node = graph.node(v)
            if node is None or places is None or not ((node.inline and anew) or node.index in members):
                loads[v] = None
            elif node.index not in members:
                members.add(node.index)
                stack.append(node.index)
    return tuple(sorted(members)), tuple(sorted(loads, key=lambda v: (graph.number.get(v, OUTSIDE), v)))


# ---------------------------------------------------------------------------------------------- the index space


class _Layout:
    """The axes of all operations of a set, those that are one axis of the kernel joined."""

    def __init__(self, graph: Graph, ops: tuple[int, ...], loads: tuple[str, ...]) -> None:
        self.graph = graph
        self.nodes = [graph.nodes[i] for i in ops]
        self.parent: dict[Slot, Slot] = {}
        self.products = [n for n in self.nodes if n.role in ("contraction", "scatter")]
        members = {n.index for n in self.nodes}
        load_number = {v: -1 - k for k, v in enumerate(loads)}
        for n in self.nodes:
            for v, places in n.reads:
                source = graph.node(v)
                key = source.index if source is not None and source.index in members else load_number.get(v)
                for k, place in enumerate(places or ()):
                    if key is not None:
                        self._join((key, k), (n.index, place))
        for other in self.products[1:]:
            for k in range(other.axes):
                self._join((self.products[0].index, k), (other.index, k))
        if not self.products:
            self._join_loops()
        self.after = self._after()
        self.over: frozenset[Slot] | None = None
        self.points = frozenset[Slot]()

    def _join(self, a: Slot, b: Slot) -> None:
        self.parent[self._find(a)] = self._find(b)

    def _join_loops(self) -> None:
        """Reductions of equal lengths whose operands have nothing in common share their loop."""
        loops = [n for n in self.nodes if n.role in ("reduction", "row")]
        for other in loops[1:]:
            one, two = _loop(loops[0]), _loop(other)
            lengths = [self.graph.lengths(loops[0])[k] for k in one], [self.graph.lengths(other)[k] for k in two]
            if lengths[0] == lengths[1] and self.summed(loops[0]).isdisjoint(self.summed(other)):
                for a, b in zip(one, two, strict=True):
                    self._join((loops[0].index, a), (other.index, b))

    def _find(self, a: Slot) -> Slot:
        while (up := self.parent.get(a, a)) != a:
            self.parent[a] = self.parent.get(up, up)
            a = up
        return a

    def _places(self, node: Node, axes: Iterable[int]) -> list[Slot]:
        return [self._find((node.index, k)) for k in axes]

    def result(self, node: Node) -> frozenset[Slot]:
        rank = 0 if node.indexing is None else node.indexing.rank
        return frozenset(self._places(node, range(rank)))

    def summed(self, node: Node) -> frozenset[Slot]:
        """The axes that a reduction, a contraction or a row operation runs over."""
        return frozenset(self._places(node, _loop(node)))

    def _after(self) -> set[int]:
        """What follows from a reduction, a contraction or a row operation of the set, and these."""
        found: set[int] = set()
        for n in self.nodes:
            reads = (self.graph.number.get(v) for v, places in n.reads if places is not None)
            if n.role in ("reduction", "row", "contraction", "scatter") or any(i in found for i in reads):
                found.add(n.index)
        return found

    # ------------------------------------------------------------------------------------------- the conditions

    def fits(self) -> bool:
        if any(self._twice(n) for n in self.nodes):
            return False
        self.over = self._over()
        if self.over is None:
            return False
        every = frozenset[Slot]().union(*(self.result(n) | self.summed(n) for n in self.nodes))
        self.points = every - self.over
        return self._product_fits() if self.products else self._rows_fit()

    def _twice(self, node: Node) -> bool:
        """Whether two axes of one operation are one axis of the kernel."""
        places = self._places(node, range(node.axes))
        return len(set(places)) < len(places)

    def _over(self) -> frozenset[Slot] | None:
        """What all reductions run over; None if they do not agree."""
        found = {s for n in self.nodes if (s := self.summed(n))}
        if len(found) > 1:
            return None
        return next(iter(found), frozenset[Slot]())

    def _rows_fit(self) -> bool:
        loops = [n for n in self.nodes if n.role in ("reduction", "row")]
        whole = [n for n in loops if self.points <= self.result(n)]
        products = [n for n in whole if n.role == "reduction" and len(n.reads) > 1]
        made_from = [self._places(n, places or ()) for n in products for _, places in n.reads]
        return all(n in whole or self._operand_sum(n, made_from) for n in loops)

    def _product_fits(self) -> bool:
        first = self.products[0]
        assert self.over is not None
        if self.points != self.result(first) or not self._one_group():
            return False
        made_from = [self._places(first, places or ()) for _, places in first.reads]
        for n in self.nodes:
            if n.role in ("row", "reduction") and not self._operand_sum(n, made_from):
                return False
            if n.index in self.after and not self._behind(n):
                return False
        return True

    def _behind(self, node: Node) -> bool:
        """Whether an operation that follows from the contraction, or is it, stays within its result."""
        return bool(node.role in ("contraction", "scatter", "reduction")) or (
            self.products[0].role != "scatter" and self.result(node) <= self.points
        )

    def _operand_sum(self, node: Node, made_from: list[list[Slot]]) -> bool:
        """A sum of what a contraction, or a sum of products, reads, over all that this sums over, of nothing that
        follows from it."""
        if node.role != "reduction" or (self.products and self.products[0].role != "contraction"):
            return False
        (first, places), *more = node.reads
        read = set(self._places(node, places or ()))
        follows = self.graph.number.get(first) in self.after
        return not more and not follows and any(read <= set(operand) for operand in made_from)

    def _one_group(self) -> bool:
        """Contractions of one form that share an operand, none of which follows from another."""
        first, *rest = self.products
        if rest and first.role == "scatter":
            return False
        types = [[self.graph.types[v] for v, _ in n.reads] for n in self.products]
        for n, own in zip(rest, types[1:], strict=True):
            if _form(n) != _form(first) or [t.__class__ for t in own] != [t.__class__ for t in types[0]]:
                return False
            if [self.graph.model.bytes(t) for t in own] != [self.graph.model.bytes(t) for t in types[0]]:
                return False
            if not any(a == b for (a, _), (b, _) in zip(n.reads, first.reads, strict=True)):
                return False
        mask = mask_of(n.index for n in self.products)
        return all(not self.graph.before[n.index] & mask for n in self.products)

    def writes(self, outputs: tuple[int, ...]) -> bool:
        """Whether the kernel can write these: at every point of P, by what computes them once."""
        for i in outputs:
            node = self.graph.nodes[i]
            if self.products and node.index not in self.after:
                return False
            if not self.points <= self.result(node) and node.role != "reduction":
                return False
        return True

    def idle(self) -> int:
        """How much slower it is than a machine at work: what follows a reduction and runs over R again keeps a point
        of P within one block, and few points keep most of the machine idle."""
        over = self.over or frozenset()
        again = not self.products and any(n.index in self.after and over & self.result(n) for n in self.nodes)
        return max(1, TILE // self.entries(self.points)) if again else 1

    def entries(self, slots: frozenset[Slot]) -> int:
        """The number of points of some axes."""
        total = 1
        lengths: dict[Slot, int] = {}
        for n in self.nodes:
            for slot, length in zip(self._places(n, range(n.axes)), self.graph.lengths(n)):
                lengths.setdefault(slot, length)
        for slot in sorted(slots):
            total *= lengths.get(slot, 1)
        return max(1, total)


def _loop(node: Node) -> tuple[int, ...]:
    """The axes that an operation runs over: those it sums over, and those along which it normalizes."""
    x = node.indexing
    return () if x is None else (*range(x.rank, x.rank + x.summed), *x.along)


def _form(node: Node) -> tuple[object, ...]:
    assert isinstance(node.binding.op, Prim)
    return (node.binding.op.op, node.binding.op.attrs)


# ------------------------------------------------------------------------------------------------------ the cost


def _priced(
    graph: Graph, work: int, ops: tuple[int, ...], loads: tuple[str, ...], outputs: tuple[int, ...], layout: _Layout,
    *, whole: bool,
) -> Kernel:  # fmt: skip
    flops = 0
    for n in layout.nodes:
        repeat = 1
        if layout.products and n.index not in layout.after:
            repeat = max(1, layout.entries(layout.points - layout.result(n)) // TILE)
        flops += graph.flops(n) * repeat
    written = [graph.bytes(graph.nodes[i].binding.name) for i in outputs]
    moved = sum(_read(graph, layout.nodes, loads)) + sum(written)
    units = LAUNCH + (BYTE * moved + FLOP * flops) * layout.idle()
    return Kernel(work, ops, loads, outputs, min(LARGEST, units), moved, flops, whole)


def _read(graph: Graph, nodes: list[Node], loads: tuple[str, ...]) -> list[int]:
    """Bytes read of each value: of a table that is only gathered from, no more than what is gathered."""
    gathers = [n for n in nodes if _gathers(n)]
    others = frozenset(v for n in nodes if not _gathers(n) for v, _ in n.reads)
    found: list[int] = []
    for v in loads:
        gathered = sum(graph.bytes(n.binding.name) for n in gathers if any(name == v for name, _ in n.reads))
        found.append(graph.bytes(v) if v in others else min(graph.bytes(v), gathered))
    return found


def _gathers(node: Node) -> bool:
    return isinstance(node.binding.op, Prim) and node.binding.op.op == "embed"
