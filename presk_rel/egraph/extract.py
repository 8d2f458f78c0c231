"""The cheapest program in an e-graph: pruning, tree cost as a first answer, then an integer program.

A class is *chosen* with one of its nodes; a chosen node's operands are chosen; shared classes are paid once. Cycles are
excluded by an order inside every cyclic component. CP-SAT solves it, single-threaded, with a fixed seed and a limit in
deterministic time, so that equal inputs give equal outputs.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from presk_rel.egraph.budget import Budget, Limits

ClassId = int


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to compute a class: its own cost, the classes it needs, and the caller's number for it."""

    cost: int
    needs: frozenset[ClassId]
    key: int


Choices = dict[ClassId, list[Choice]]
"""Per class, its ways."""

Components = dict[ClassId, tuple[int, int]]
"""Per class the number and the size of its strongly connected component."""


@dataclass(frozen=True, slots=True)
class Part:
    """Classes to be decided together, with the cyclic components of all classes. What is `free` is computed anyway."""

    choices: Choices
    free: frozenset[ClassId]
    component: Components


@dataclass(frozen=True, slots=True)
class Extraction:
    """The chosen choice of every class that is needed; `cost` of all of them; `gap` is 0 where proven optimal, else how
    far below `cost` the optimum may lie, relative to it."""

    chosen: dict[ClassId, Choice]
    cost: int
    gap: float


CHEAP = 10**8
"""What costs less than this part of a whole program (a number) is given away while its choices are made: a number that
many read would tie all of them together."""


PartShape = tuple[tuple[bool, tuple[tuple[int, tuple[int, ...]], ...]], ...]
"""A part of a problem with its classes counted from 0: whether each is free, and the costs and needs of its choices."""

SolvedShapes = dict[PartShape, tuple[list[int | None], float]]
"""The answer for every shape of a part that was met: the number of each class's choice, and a lower bound of the
cost."""


def extract(
    choices: Choices, root: ClassId, limit: float, budget: Budget | None = None, solved: SolvedShapes | None = None
) -> Extraction | None:
    """The cheapest acyclic selection for `root`, up to numbers; None if there is none. `limit` bounds the solver in
    seconds of its deterministic clock; when it runs out the best selection found is returned with its gap. `budget` is
    what is left for several of these together, `solved` what these have solved."""
    budget = budget or Budget.of(Limits(solver=limit))
    kept = prune(choices, root)
    best = tree_cost(kept)
    if root not in best:
        return None
    hint = selection(best, root)
    kept = {c: [x for x in ways if x.needs <= best.keys()] for c, ways in kept.items() if c in best}
    problem = settled(kept, root, total(hint) // CHEAP, budget)
    kept = problem.choices
    if all(len(ways) == 1 for ways in kept.values()):
        chosen = min(selection({c: ways[0] for c, ways in kept.items()}, root), hint, key=total)
        return Extraction(chosen, total(chosen), 0.0)
    from presk_rel.egraph.extract_parts import solve

    start = tree_cost(kept)
    found = solve(problem, selection(start, root), limit, budget, {} if solved is None else solved)
    better = min(selection({**start, **found.choice}, root), hint, key=total)
    given_away = sum(way.cost for c, way in better.items() if c in problem.cheap)
    return Extraction(better, total(better), found.gap(total(better) - given_away))


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


@dataclass(frozen=True, slots=True)
class Problem:
    """What is left to choose. `needed` are the classes that every selection needs; `cheap` others that cost next to
    nothing. Neither ties what needs it together: both are `free`."""

    choices: Choices
    needed: frozenset[ClassId]
    cheap: frozenset[ClassId]

    @property
    def free(self) -> frozenset[ClassId]:
        return self.needed | self.cheap


def settled(choices: Choices, root: ClassId, cheap: int, budget: Budget) -> Problem:
    """Choices without those that lose once it is known which classes are free; up to `cheap` a class costs nothing."""
    trees = trees_of(choices, frozenset())
    small = frozenset(c for c, cost in trees.cost.items() if cost <= cheap)
    kept = reachable({c: [trees.best[c]] if c in small else ways for c, ways in choices.items()}, root)
    problem = Problem(kept, frozenset(), small & kept.keys())
    from presk_rel.egraph.extract_rivals import undominated

    while True:
        found = reachable(undominated(problem.choices, problem.free, budget), root)
        needed = _needed(found, root)
        same = needed == problem.needed and sum(map(len, found.values())) == sum(map(len, problem.choices.values()))
        problem = Problem(found, needed, (small & found.keys()) - needed)
        if same or budget.compared <= 0:
            return problem


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


@dataclass(frozen=True, slots=True)
class Trees:
    """Per class that has one, its cheapest tree: the cost, and the choice at its root (none where it is free)."""

    cost: dict[ClassId, int]
    best: dict[ClassId, Choice]


def tree_cost(choices: Choices) -> dict[ClassId, Choice]:
    """The choice of least cost as a tree, per class that has one."""
    return trees_of(choices, frozenset()).best


def trees_of(choices: Choices, free: frozenset[ClassId]) -> Trees:
    """Knuth's generalization of Dijkstra's algorithm; what is free costs nothing where it is needed."""
    users: dict[ClassId, list[tuple[ClassId, Choice]]] = {}
    missing: dict[int, int] = {}
    heap: list[tuple[int, ClassId, int, Choice | None]] = [(0, c, -1, None) for c in sorted(free)]
    for c, ways in choices.items():
        for way in ways:
            missing[id(way)] = len(way.needs)
            for need in way.needs:
                users.setdefault(need, []).append((c, way))
            if not way.needs:
                heap.append((way.cost, c, way.key, way))
    heapq.heapify(heap)
    found = Trees({}, {})
    while heap:
        so_far, c, _, way = heapq.heappop(heap)
        if c in found.cost:
            continue
        found.cost[c] = so_far
        if way is not None:
            found.best[c] = way
        for user, using in users.get(c, []):
            missing[id(using)] -= 1
            if missing[id(using)] == 0 and user not in found.cost:
                amount = using.cost + sum(found.cost[n] for n in using.needs)
                heapq.heappush(heap, (amount, user, using.key, using))
    return found


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


def components(choices: Choices) -> Components:
    """Tarjan's strongly connected components, iteratively: per class the number and the size of its component."""
    index: dict[ClassId, int] = {}
    low: dict[ClassId, int] = {}
    found: Components = {}
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
    found: Components,
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
