"""The kernels that a partition may choose from.

Small graphs: every set of operations that one launch can compute. Larger ones: kernels are grown by joining two that
gain by it, again and again, in several orders; every kernel on the way is a candidate, and so is each of the last ones
with one operation more or less. Of these an integer program takes the best (`partition`).
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from presk_rel.egraph.fusion.graph import Graph
from presk_rel.egraph.fusion.space import Kernel, Space, bits

EVERY_SET = 10
"""Up to this many operations, all sets are candidates."""

MANY = 40
"""No more readers of one value than this are looked at as partners of one of them; of large ones, fewer."""

SMALL, LARGER = 32, 8
"""Kernels are grown up to `SMALL` operations, then from those up to `LARGER` times as many, and so on: a look at a
kernel takes time by its operations, so that there are few where kernels are large. None of more than `SMALL` is tried
with one operation more or less."""

LOOKS = 200
"""Up to each of these sizes, in each order, a look at no more operations than this for each one of the graph."""

Order = Callable[["_Pair"], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two groups that may become one: what that gains, whether one reads the other, and the place of the later one."""

    gain: int
    reads: bool
    place: int


ORDERS: tuple[Order, ...] = (
    lambda p: (-p.gain,),
    lambda p: (not p.reads, -p.gain),
    lambda p: (not p.reads, p.place, -p.gain),
    lambda p: (not p.reads, -p.place, -p.gain),
)
"""The pair that is joined next is the least: by gain; producers and consumers first; from the front; from the back."""


@dataclass(frozen=True, slots=True)
class Found:
    """Sets of operations as bits, each a kernel; partitions of all work into some of them; and whether growing them
    ended before there was nothing left to gain."""

    sets: list[int]
    partitions: list[list[int]]
    cut: bool = False


def candidates(graph: Graph, space: Space, orders: int, late: Callable[[], bool] = lambda: False) -> Found:
    """The candidates of a graph, grown in the first `orders` of `ORDERS`; where `late` says so, no further."""
    work = [n.index for n in graph.nodes if n.work]
    alone = [1 << i for i in work]
    if len(work) <= EVERY_SET:
        return Found([m for m in _subsets(work) if space.kernels(m)], [alone])
    found: dict[int, None] = dict.fromkeys(alone)
    partitions: list[list[int]] = []
    cut = False
    for order in ORDERS[:orders]:
        growth = _Growth(graph, space, alone, late)
        _grow(growth, order, found)
        partitions.append(list(growth.groups))
        cut |= growth.cut
    for groups in partitions:
        if not late():
            found.update(dict.fromkeys(_neighbours(graph, space, groups)))
    return Found(list(found), partitions, cut)


def _subsets(work: list[int]) -> Iterator[int]:
    for chosen in range(1, 1 << len(work)):
        yield sum(1 << work[k] for k in bits(chosen))


def best(space: Space, work: int) -> Kernel | None:
    """The kernel for this work that writes all that others read."""
    found = space.kernels(work)
    return found[0] if found and found[0].whole else None


# ------------------------------------------------------------------------------------------------------ growing


def _grow(growth: _Growth, order: Order, found: dict[int, None]) -> None:
    """Join groups as long as it gains; every group on the way is added to `found`."""
    growing = True
    while growing:
        growth.looks_end = growth.space.looked + LOOKS * len(growth.of)
        growing = _grow_to(growth, order, found)
        growth.most *= LARGER


def _grow_to(growth: _Growth, order: Order, found: dict[int, None]) -> bool:
    """Join groups to up to `growth.most` operations; whether there were pairs that are more."""
    growth.larger = False
    heap: list[tuple[tuple[int, ...], int, int]] = []

    def offer(a: int, b: int) -> None:
        pair = growth.pair(a, b)
        if pair is not None:
            heapq.heappush(heap, (order(pair), min(a, b), max(a, b)))

    for a in list(growth.groups):
        for b in growth.near(a):
            if a < b:
                offer(a, b)
    while heap:
        _, a, b = heapq.heappop(heap)
        if a not in growth.groups or b not in growth.groups or growth.cyclic(a, b):
            continue
        joined = growth.join(a, b)
        found[joined] = None
        for other in growth.near(joined):
            offer(joined, other)
    return growth.larger


class _Growth:
    """A partition into groups, each a kernel, and which group reads which. Groups become no larger than `most`; where
    that kept two apart, it is noted in `larger`. Once `looks_end` operations have been looked at, or it is late, no
    pair is, which is noted in `cut`."""

    def __init__(self, graph: Graph, space: Space, groups: list[int], late: Callable[[], bool]) -> None:
        self.graph, self.space, self.late = graph, space, late
        self.most, self.looks_end, self.larger, self.cut = SMALL, 0, False, False
        self.groups: dict[int, None] = dict.fromkeys(groups)
        self.of: dict[int, int] = {m.bit_length() - 1: m for m in groups}
        self.parts: dict[int, list[int]] = {m: [m.bit_length() - 1] for m in groups}
        self.loaders: dict[str, dict[int, None]] = {}
        self.edges: dict[int, set[int]] = {}
        self.spans: list[tuple[int, int]] = []  # first and last of each group of several, in order
        for n in graph.nodes:
            for v, _ in n.reads:
                self.edges.setdefault(graph.number.get(v, -1), set()).add(n.index)
        for m in groups:
            self._register(m)

    def _register(self, group: int) -> None:
        kernel = best(self.space, group)
        for v in kernel.loads if kernel else ():
            self.loaders.setdefault(v, {})[group] = None

    def near(self, group: int) -> list[int]:
        """The groups that read what this one writes, that write what it reads, or that read something it reads."""
        kernel = best(self.space, group)
        found: dict[int, None] = {}
        if kernel is None:
            return []
        for v in kernel.loads:
            source = self.of.get(self.graph.number.get(v, -1))
            if source is not None:
                found[source] = None
            readers = [g for g in self.loaders.get(v, ()) if g in self.groups]
            found.update(dict.fromkeys(readers[: MANY if self.most == SMALL else MANY // LARGER]))
        for i in kernel.outputs:
            found.update(dict.fromkeys(self.of[r] for r in sorted(self.graph.readers[i]) if r in self.of))
        found.pop(group, None)
        return list(found)

    def pair(self, a: int, b: int) -> _Pair | None:
        if len(self.parts[a]) + len(self.parts[b]) > self.most:
            self.larger = True
            return None
        if self.space.looked > self.looks_end or self.late():
            self.cut = True
            return None
        one, other, both = best(self.space, a), best(self.space, b), best(self.space, a | b)
        if one is None or other is None or both is None:
            return None
        gain = one.units + other.units - both.units
        reads = any(self.of.get(self.graph.number.get(v, -1)) in (a, b) for v in (*one.loads, *other.loads))
        return _Pair(gain, reads, max(a, b).bit_length()) if gain > 0 else None

    def cyclic(self, a: int, b: int) -> bool:
        """Whether a path leads from one to the other through a third: then both cannot be one kernel."""
        return self._reaches(a, b) or self._reaches(b, a)

    def _reaches(self, a: int, b: int) -> bool:
        stack, target = self._beyond(a, b), set(self.parts[b])
        seen = set(self.parts[a])
        limit = self._limit(max(target))
        while stack:
            i = stack.pop()
            if i in seen or i >= limit:
                continue
            for j in self.members(i):
                seen.add(j)
                after = self.edges.get(j, set[int]())
                if not after.isdisjoint(target):
                    return True
                stack.extend(after - seen)
        return False

    def _limit(self, last: int) -> int:
        """The operation from which on nothing leads back to one before `last`: groups are of operations far apart, so
        what is later may be of one group with what is earlier."""
        limit = last
        for lo, hi in self.spans:
            if lo >= limit:
                break
            limit = max(limit, hi + 1)
        return limit

    def members(self, index: int) -> list[int]:
        """The operations of the group of one, or itself if it has none."""
        group = self.of.get(index)
        return [index] if group is None else self.parts[group]

    def _beyond(self, a: int, b: int) -> list[int]:
        """What reads the first group and is neither group, nor computed anew by its readers."""
        found: list[int] = []
        stack, seen = list(self.parts[a]), {*self.parts[a], *self.parts[b]}
        while stack:
            for r in sorted(self.edges.get(stack.pop(), ())):
                if r not in seen:
                    seen.add(r)
                    (stack if self.graph.nodes[r].inline else found).append(r)
        return found

    def join(self, a: int, b: int) -> int:
        both = a | b
        for m in (a, b):
            del self.groups[m]
            if len(self.parts[m]) > 1:
                self.spans.remove((min(self.parts[m]), max(self.parts[m])))
        self.groups[both] = None
        self.parts[both] = [*self.parts.pop(a), *self.parts.pop(b)]
        insort(self.spans, (min(self.parts[both]), max(self.parts[both])))
        for i in self.parts[both]:
            self.of[i] = both
        self._register(both)
        return both


# --------------------------------------------------------------------------------------------------- neighbours


def _neighbours(graph: Graph, space: Space, groups: list[int]) -> list[int]:
    """Every small group with one of the operations around it more, or with one of its own less."""
    found: list[int] = []
    for group in groups:
        kernel = best(space, group) if group.bit_count() <= SMALL else None
        if kernel is None:
            continue
        around = {graph.number[v] for v in kernel.loads if v in graph.number and graph.nodes[graph.number[v]].work}
        around |= {r for i in kernel.outputs for r in graph.readers[i] if r >= 0}
        changed = [group | 1 << i for i in sorted(around)] + [group & ~(1 << i) for i in bits(group)]
        found += [m for m in changed if m and space.kernels(m)]
    return found
