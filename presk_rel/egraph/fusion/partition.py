"""Which kernels: the equation of fusion, `Ld (Mat v) = v`, solved for the least cost.

Values in memory are one sort, values inside a kernel another: `Mat v` launches a kernel that computes v and writes it,
`Ld e` reads a value of memory inside one, and reading what was just written is the value itself. The terms of the
second sort that the equation gives are the candidates (`candidates`): each is a way to have what it writes in memory,
once what it loads is there. A selection of kernels computes the result if every value that the result, or a kernel of
the selection, reads is written by a kernel that can run before it. It costs what its kernels cost: a kernel is paid
once, whatever it writes; what several kernels compute anew is paid in each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from presk_rel.core.ir import Prim
from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.cost import BYTE, LAUNCH
from presk_rel.egraph.fusion.candidates import ORDERS, Found, best, candidates
from presk_rel.egraph.fusion.graph import Graph
from presk_rel.egraph.fusion.parts import parts_of
from presk_rel.egraph.fusion.space import Kernel, Space, bits, mask_of

WHOLE, PART = 800, 300
"""A graph of more operations than `WHOLE` is partitioned in parts of `PART`, one after the other, each by itself."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The kernels in an order in which they can run. `gap` is 0 where no selection of the candidates is cheaper, else
    how far below it the cheapest may lie, relative to it; the largest of all parts of a large graph. `cut`: the growing
    of candidates ended before there was nothing left to gain."""

    kernels: tuple[Kernel, ...]
    units: int
    gap: float
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """What is selected from: per kernel the values it needs in memory and those it puts there, as bits; and what the
    result needs; `live` is the work that has to be done in any case."""

    kernels: tuple[Kernel, ...]
    needs: tuple[int, ...]
    result: int
    live: int

    @property
    def writers(self) -> dict[int, list[int]]:
        """By value, the kernels that write it."""
        found: dict[int, list[int]] = {}
        for k, kernel in enumerate(self.kernels):
            for v in kernel.outputs:
                found.setdefault(v, []).append(k)
        return found


def partition(graph: Graph, limit: float, late: Callable[[], float | None] = lambda: None) -> Partition:
    """The cheapest kernels for the result of a function, as far as the solver gets within `limit` seconds of its
    deterministic clock. Equal inputs give equal partitions, unless the user's seconds, of which `late` tells how many
    are left, end first."""
    if sum(n.work for n in graph.nodes) <= WHOLE:
        return _partition(graph, limit, len(ORDERS), late)
    kernels: list[Kernel] = []
    units, gap, cut = 0, 0.0, False
    for part in parts_of(graph, PART):
        found = _partition(part, limit, 1, late)
        place = [graph.number[n.binding.name] for n in part.nodes]
        kernels += [_moved(k, place) for k in found.kernels]
        units, gap, cut = units + found.units, max(gap, found.gap), cut or found.cut
    return Partition(tuple(kernels), units, gap, cut)


def _moved(kernel: Kernel, place: list[int]) -> Kernel:
    """A kernel of a part as one of the whole graph."""
    ops, outputs = (tuple(place[i] for i in indices) for indices in (kernel.ops, kernel.outputs))
    return replace(kernel, work=mask_of(place[i] for i in bits(kernel.work)), ops=ops, outputs=outputs)


def _partition(graph: Graph, limit: float, orders: int, late: Callable[[], float | None]) -> Partition:
    from presk_rel.egraph.fusion.solver import solve

    space = Space(graph)
    found = candidates(graph, space, orders, lambda: late() == 0.0)
    task = task_of(graph, space, found)
    start = min((selected(task, space, groups) for groups in found.partitions), key=lambda s: _units(task, s))
    chosen, bound = solve(task, start, limit, late())
    better = min((pruned(task, chosen), start), key=lambda s: _units(task, s))
    units = _units(task, better)
    gap = max(0.0, 1 - bound / units) if units else 0.0
    return Partition(tuple(task.kernels[k] for k in better), units, gap, found.cut)


def task_of(graph: Graph, space: Space, found: Found) -> Task:
    memory = _memory(graph)
    kernels = [k for m in found.sets for k in space.kernels(m)]
    kernels += [_anew(graph, n.index) for n in graph.nodes if n.inline]

    def needed(names: tuple[str, ...]) -> int:
        mask = 0
        for v in names:
            i = graph.number.get(v)
            mask |= 0 if i is None else memory[i]
        return mask

    needs = tuple(needed(k.loads) for k in kernels)
    return Task(tuple(kernels), needs, needed(tuple(sorted(graph.results))), _live(graph))


def _live(graph: Graph) -> int:
    """The work that the results depend on."""
    mask = 0
    for i in (graph.number[v] for v in graph.results if v in graph.number):
        mask |= graph.before[i] | 1 << i
    return mask & mask_of(n.index for n in graph.nodes if n.work)


def _memory(graph: Graph) -> list[int]:
    """What kernels must have written for a value to be in memory: itself, or, of a view or fold, what that reads."""
    found: list[int] = []
    for n in graph.nodes:
        mask = 1 << n.index if n.work or n.inline else 0
        if not mask:
            for v, _ in n.reads:
                i = graph.number.get(v)
                mask |= 0 if i is None else found[i]
        found.append(mask)
    return found


def _anew(graph: Graph, index: int) -> Kernel:
    """The kernel that writes a value which kernels compute anew (zeros that are a result, say)."""
    members, loads = {index}, dict[str, None]()
    stack = [index]
    while stack:
        for v, places in graph.nodes[stack.pop()].reads:
            node = graph.node(v)
            if node is None or places is None or not node.inline:
                loads[v] = None
            elif node.index not in members:
                members.add(node.index)
                stack.append(node.index)
    moved = graph.bytes(graph.nodes[index].binding.name) + sum(map(graph.bytes, loads))
    ops = [graph.nodes[i].binding.op for i in sorted(members)]
    known = all(isinstance(op, Prim) and PRIMS[op.op].view for op in ops)  # a number, without a launch
    units = 0 if known else LAUNCH + BYTE * moved
    return Kernel(0, tuple(sorted(members)), tuple(loads), (index,), units, moved, 0, whole=True)


# ---------------------------------------------------------------------------------------------------- selections


def selected(task: Task, space: Space, groups: list[int]) -> list[int]:
    """The selection that has these groups for kernels."""
    number = {id(k): i for i, k in enumerate(task.kernels)}
    chosen = [number[id(k)] for m in groups if (k := best(space, m)) is not None]
    chosen += [i for i, k in enumerate(task.kernels) if not k.work]
    return pruned(task, chosen)


def pruned(task: Task, chosen: list[int]) -> list[int]:
    """What the result needs of a selection, in an order in which it runs; PreskBug if it does not compute it."""
    order, _ = schedule(task, chosen)
    available = {v for k in order for v in task.kernels[k].outputs}
    if not available.issuperset(bits(task.result)):
        raise PreskBug("fusion", "a selection of kernels does not compute the result")
    wanted, kept = task.result, list[int]()
    for k in reversed(order):
        written = sum(1 << v for v in task.kernels[k].outputs)
        if written & wanted:
            kept.append(k)
            wanted = (wanted & ~written) | task.needs[k]
    return kept[::-1]


def schedule(task: Task, chosen: list[int]) -> tuple[list[int], list[int]]:
    """The kernels of a selection that can run, in order, and those that cannot."""
    available: set[int] = set()
    waiting: dict[int, list[int]] = {}
    missing = {k: set(bits(task.needs[k])) for k in chosen}
    for k in chosen:
        for v in sorted(missing[k]):
            waiting.setdefault(v, []).append(k)
    ready, order = [k for k in chosen if not missing[k]], list[int]()
    while ready:
        k = ready.pop()
        order.append(k)
        for v in task.kernels[k].outputs:
            if v in available:
                continue
            available.add(v)
            for user in waiting.get(v, []):
                missing[user].discard(v)
                if not missing[user]:
                    ready.append(user)
    done = set(order)
    return order, [k for k in chosen if k not in done]


def _units(task: Task, chosen: list[int]) -> int:
    return sum(task.kernels[k].units for k in chosen)
