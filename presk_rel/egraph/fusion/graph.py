"""A flat function as the graph that fusion partitions: which bindings are work, which are free, and who reads what."""

from __future__ import annotations

from dataclasses import dataclass, field

from presk_rel.core.ir import Binding, Function, Op, Prim, operands
from presk_rel.core.prims import PRIMS
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.fusion.roles import ROLES, Indexing, Places, Role, indexing, rank_of, shape_of
from presk_rel.egraph.places import lying_stacks
from presk_rel.elab.ty import Hyper, Type

OUTSIDE = -1
"""Reads a value from memory: the function's result, a fold, a view, or a launch of its own."""

Reads = tuple[tuple[str, Places | None], ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A binding. `reads` are the operands whose values it reads, with the axes at which it reads them (None: from
    memory). `role` is `alone` for whatever no kernel holds; `inline`: needs next to no work, so that every kernel that
    reads it computes it anew."""

    index: int
    binding: Binding
    role: Role
    indexing: Indexing | None
    reads: Reads
    inline: bool

    @property
    def work(self) -> bool:
        """Whether it is work that a kernel has to do."""
        return not self.inline and self.role not in ("view", "alone")

    @property
    def axes(self) -> int:
        """The number of axes of its points: those of its result, and those it sums over."""
        return 0 if self.indexing is None else self.indexing.rank + self.indexing.summed


@dataclass(slots=True)
class Graph:
    """`number` is the index of a binding's node by name. `readers[i]` are the nodes that read node i inside kernels,
    through those that are computed anew, and OUTSIDE; `before[i]` has a bit for every node that node i depends on.
    `results` is what is read when all is done."""

    function: Function
    model: CostModel
    results: frozenset[str]
    types: dict[str, Type]
    nodes: list[Node] = field(default_factory=list[Node])
    number: dict[str, int] = field(default_factory=dict[str, int])
    readers: list[frozenset[int]] = field(default_factory=list[frozenset[int]])
    before: list[int] = field(default_factory=list[int])
    lying: frozenset[str] = frozenset()
    """Stacks of tensors that lie at equal distances already, or that only contractions and sums read, which read each
    part where it lies (a launch over a group): views."""
    _lengths: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _flops: dict[int, int] = field(default_factory=dict[int, int])

    def node(self, name: str) -> Node | None:
        """The node of a name; None for a parameter."""
        index = self.number.get(name)
        return None if index is None else self.nodes[index]

    def bytes(self, name: str) -> int:
        return self.model.bytes(self.types[name])

    def lengths(self, node: Node) -> list[int]:
        """The lengths of the axes of an operation, those it sums over last."""
        known = self._lengths.get(node.index)
        if known is None:
            known = self._lengths[node.index] = _lengths(self, node)
        return known

    def flops(self, node: Node) -> int:
        """The arithmetic of one operation."""
        known = self._flops.get(node.index)
        if known is None:
            op, ty = node.binding.op, node.binding.type
            assert isinstance(op, Prim)
            types = tuple(self.types[v] for v in op.args)
            found = 0 if isinstance(ty, Hyper) else self.model.work(op.op, op.attrs, types, ty).flops
            known = self._flops[node.index] = found
        return known


def graph_of(function: Function, model: CostModel, results: frozenset[str] | None = None) -> Graph:
    """The graph of a function, or of a part of one that has several results."""
    types = {p.name: p.type for p in function.params} | {b.name: b.type for b in function.bindings}
    graph = Graph(function, model, frozenset({function.ret}) if results is None else results, types)
    graph.lying = lying_stacks(function, model.modules, model.items) | _grouped(function, graph.results)
    for i, b in enumerate(function.bindings):
        graph.number[b.name] = i
        graph.nodes.append(_node(graph, i, b))
        mask = 0
        for v, _ in graph.nodes[i].reads:
            j = graph.number.get(v)
            mask |= 0 if j is None else graph.before[j] | 1 << j
        graph.before.append(mask)
    graph.readers = _readers(graph)
    return graph


def _grouped(function: Function, results: frozenset[str]) -> frozenset[str]:
    """The stacks that only contractions and sums read."""
    stacks = {b.name for b in function.bindings if isinstance(b.op, Prim) and b.op.op == "stack_params"} - results
    for b in function.bindings if stacks else ():
        if not (isinstance(b.op, Prim) and ROLES[b.op.op] in ("contraction", "reduction")):
            stacks -= set(operands(b.op))
    return frozenset(stacks)


def _lengths(graph: Graph, node: Node) -> list[int]:
    model, found = graph.model, dict[int, int]()
    shape = shape_of(node.binding.type)
    sides = [] if shape is None else [(shape, tuple(range(node.axes)))]
    sides += [(s, p) for v, p in node.reads if p is not None and (s := shape_of(graph.types[v])) is not None]
    for s, places in sides:
        lead = [] if s.prefix is None else [model.entries(type(s)(s.prefix, ()))]
        front, rest = ([model.length(a.length) for a in run] for run in (s.front, s.axes))
        found |= dict(zip(places, [*front, *lead, *rest]))
    return [found.get(k, 1) for k in range(node.axes)]


def value_operands(op: Op) -> tuple[str, ...]:
    """The operands whose values are read: not those that only lend their type."""
    if not isinstance(op, Prim):
        return operands(op)
    return tuple(v for i, v in enumerate(op.args) if i not in PRIMS[op.op].shape_only)


def _node(graph: Graph, index: int, b: Binding) -> Node:
    args = value_operands(b.op)
    from_memory: Reads = tuple((v, None) for v in args)
    if not isinstance(b.op, Prim):
        return Node(index, b, "alone", None, from_memory, inline=False)
    if isinstance(b.type, Hyper):
        free = all(_inline(graph, v) for v in args)
        return Node(index, b, "generator" if free else "view", None, tuple((v, ()) for v in args), inline=free)
    role = "view" if b.name in graph.lying else ROLES[b.op.op]
    found = indexing(b.op, tuple(graph.types[v] for v in b.op.args), b.type)
    if found is None:
        return Node(index, b, "view" if role == "view" else "alone", None, from_memory, inline=False)
    if role == "contraction":
        role = _product_role(found)
    unread = PRIMS[b.op.op].shape_only
    places = found.operands
    if len(places) == len(b.op.args):
        places = tuple(p for i, p in enumerate(places) if i not in unread)
    reads = tuple((v, () if isinstance(graph.types[v], Hyper) else p) for v, p in zip(args, places, strict=True))
    return Node(index, b, role, found, reads, inline=_costs_nothing(graph, role, b, reads))


def _product_role(x: Indexing) -> Role:
    """What a sum of products is: entry by entry where nothing is summed, and a reduction of what is computed entry by
    entry where one operand has all axes, unless no operand does: a product of matrices."""
    if x.summed == 0:
        return "pointwise"
    whole = any(p is not None and len(set(p)) == x.rank + x.summed for p in x.operands)
    return "reduction" if whole else "contraction"


def _inline(graph: Graph, name: str) -> bool:
    node = graph.node(name)
    return node is not None and node.inline


def _costs_nothing(graph: Graph, role: Role, b: Binding, reads: Reads) -> bool:
    """Constants, what follows from constants alone at one point, and repetitions of something smaller."""
    shape = shape_of(b.type)
    if role == "generator":
        return True
    if role == "expand":
        return shape is not None and all(p is not None and len(p) < rank_of(shape) for _, p in reads)
    return role == "pointwise" and shape is not None and shape.is_scalar and all(_inline(graph, v) for v, _ in reads)


def _readers(graph: Graph) -> list[frozenset[int]]:
    found: list[set[int]] = [set() for _ in graph.nodes]
    for name in graph.results & graph.number.keys():
        found[graph.number[name]].add(OUTSIDE)
    for node in reversed(graph.nodes):
        for v, places in node.reads:
            j = graph.number.get(v)
            if j is None:
                continue
            if places is None:
                found[j].add(OUTSIDE)
            elif node.inline or node.role == "view":
                found[j] |= found[node.index] if node.inline else {OUTSIDE}
            else:
                found[j].add(node.index)
    return [frozenset(s) for s in found]
