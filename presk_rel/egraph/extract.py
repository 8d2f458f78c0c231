"""The cheapest program in an e-graph: pruning, tree cost as a first answer, then an integer program.

A class is *chosen* with one of its nodes; a chosen node's operands are chosen; shared classes are paid once. Cycles are
excluded by an order inside every cyclic component. CP-SAT solves it, single-threaded, with a fixed seed and a limit in
deterministic time, so that equal inputs give equal outputs.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

ClassId = int


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to compute a class: its own cost, the classes it needs, and the caller's number for it."""

    cost: int
    needs: frozenset[ClassId]
    key: int


Choices = dict[ClassId, list[Choice]]
"""Per class, cheapest first."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The chosen choice of every class that is needed; `cost` of all of them; `gap` is 0 where proven optimal, else how
    far below `cost` the optimum may lie, relative to it."""

    chosen: dict[ClassId, Choice]
    cost: int
    gap: float


def extract(choices: Choices, root: ClassId, limit: float) -> Extraction | None:
    """The cheapest acyclic selection for `root`; None if there is none. `limit` bounds the solver in seconds of its
    deterministic clock; when it runs out the best selection found is returned with its gap."""
    kept = prune(choices, root)
    best = tree_cost(kept)
    if root not in best:
        return None
    hint = selection(best, root)
    kept = {c: [x for x in ways if x.needs <= best.keys()] for c, ways in kept.items() if c in best}
    kept, free = settled(reachable(undominated(kept, frozenset(), {}), root), root)
    if all(len(ways) == 1 for ways in kept.values()):
        chosen = selection({c: ways[0] for c, ways in kept.items()}, root)
        return Extraction(chosen, total(chosen), 0.0)
    from presk_rel.egraph.extract_parts import solve

    start = tree_cost(kept)
    found = solve(kept, selection(start, root), free, limit)
    better = min(selection({**start, **found.choice}, root), hint, key=total)
    return Extraction(better, total(better), found.gap(total(better)))


def total(chosen: dict[ClassId, Choice]) -> int:
    return sum(c.cost for c in chosen.values())


# ------------------------------------------------------------------------------------------------ pruning


def prune(choices: Choices, root: ClassId) -> Choices:
    """Without self-loops and without what the root does not reach."""
    looped = {c: [x for x in ways if c not in x.needs] for c, ways in choices.items()}
    return reachable(looped, root)


def reachable(choices: Choices, root: ClassId) -> Choices:
    seen = {root}
    stack = [root]
    while stack:
        for choice in choices.get(stack.pop(), []):
            fresh = sorted(choice.needs - seen)
            seen.update(fresh)
            stack += fresh
    return {c: choices.get(c, []) for c in sorted(seen)}


def undominated(choices: Choices, free: frozenset[ClassId], component: dict[ClassId, tuple[int, int]]) -> Choices:
    """Without choices that need no less and cost no less than another of their class. What is `free` (needed anyway)
    counts only within a cyclic component, where the order still matters."""
    out: Choices = {}
    for c, ways in choices.items():
        kept: list[tuple[Choice, frozenset[ClassId]]] = []
        open_ = [(x, _open(c, x, free, component)) for x in ways]
        for way, needs in sorted(open_, key=lambda x: (x[0].cost, len(x[1]), len(x[0].needs), x[0].key)):
            if not any(better <= needs for _, better in kept):
                kept.append((way, needs))
        out[c] = [way for way, _ in kept]
    return out


def _open(
    c: ClassId, way: Choice, free: frozenset[ClassId], component: dict[ClassId, tuple[int, int]]
) -> frozenset[ClassId]:
    if way.needs.isdisjoint(free):
        return way.needs
    return frozenset(n for n in way.needs if n not in free or component[n][0] == component[c][0])


def settled(choices: Choices, root: ClassId) -> tuple[Choices, frozenset[ClassId]]:
    """Choices without those that lose once it is known which classes every selection needs; and these classes."""
    free: frozenset[ClassId] = frozenset()
    while True:
        found = _needed(choices, root)
        if found == free:
            return choices, free
        free = found
        choices = reachable(undominated(choices, free, components(choices)), root)


def _needed(choices: Choices, root: ClassId) -> frozenset[ClassId]:
    """The classes that all selections need: the root, and what all choices of a needed class need."""
    seen = {root}
    stack = [root]
    while stack:
        ways = choices[stack.pop()]
        common = frozenset[ClassId].intersection(*(x.needs for x in ways)) if ways else frozenset[ClassId]()
        fresh = sorted(common - seen)
        seen.update(fresh)
        stack += fresh
    return frozenset(seen)


# ------------------------------------------------------------------------------------------------ the first answer


def tree_cost(choices: Choices) -> dict[ClassId, Choice]:
    """The choice of least cost as a tree, per class that has one (Knuth's generalization of Dijkstra's algorithm)."""
    users: dict[ClassId, list[tuple[ClassId, Choice]]] = {}
    missing: dict[int, int] = {}
    heap: list[tuple[int, ClassId, int, Choice]] = []
    for c, ways in choices.items():
        for way in ways:
            missing[id(way)] = len(way.needs)
            for need in way.needs:
                users.setdefault(need, []).append((c, way))
            if not way.needs:
                heapq.heappush(heap, (way.cost, c, way.key, way))
    cost: dict[ClassId, int] = {}
    best: dict[ClassId, Choice] = {}
    while heap:
        so_far, c, _, way = heapq.heappop(heap)
        if c in cost:
            continue
        cost[c], best[c] = so_far, way
        for user, using in users.get(c, []):
            missing[id(using)] -= 1
            if missing[id(using)] == 0 and user not in cost:
                amount = using.cost + sum(cost[n] for n in using.needs)
                heapq.heappush(heap, (amount, user, using.key, using))
    return best


def selection(best: dict[ClassId, Choice], root: ClassId) -> dict[ClassId, Choice]:
    """What of a choice per class the root needs."""
    chosen: dict[ClassId, Choice] = {}
    stack = [root]
    while stack:
        c = stack.pop()
        if c not in chosen:
            chosen[c] = best[c]
            stack += sorted(best[c].needs)
    return chosen


# ------------------------------------------------------------------------------------------------ components


def components(choices: Choices) -> dict[ClassId, tuple[int, int]]:
    """Tarjan's strongly connected components, iteratively: per class the number and the size of its component."""
    index: dict[ClassId, int] = {}
    low: dict[ClassId, int] = {}
    found: dict[ClassId, tuple[int, int]] = {}
    path: list[ClassId] = []
    for start in choices:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        path.append(start)
        work = [(start, iter(_successors(choices, start)))]
        while work:
            c, rest = work[-1]
            step = next(rest, None)
            if step is None:
                work.pop()
                _close(c, work[-1][0] if work else None, index, low, path, found)
            elif step not in index:
                index[step] = low[step] = len(index)
                path.append(step)
                work.append((step, iter(_successors(choices, step))))
            elif step not in found:
                low[c] = min(low[c], index[step])
    return found


def _successors(choices: Choices, c: ClassId) -> list[ClassId]:
    return sorted({n for way in choices[c] for n in way.needs})


def _close(
    c: ClassId,
    parent: ClassId | None,
    index: dict[ClassId, int],
    low: dict[ClassId, int],
    path: list[ClassId],
    found: dict[ClassId, tuple[int, int]],
) -> None:
    if parent is not None:
        low[parent] = min(low[parent], low[c])
    if low[c] != index[c]:
        return
    members = [path.pop()]
    while members[-1] != c:
        members.append(path.pop())
    for m in members:
        found[m] = (index[c], len(members))
