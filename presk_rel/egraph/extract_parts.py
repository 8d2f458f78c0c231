"""Extraction in parts: what every selection needs separates a problem into parts that do not depend on each other; a
small part is solved by trying all, a narrow one by elimination, any other as an integer program.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.extract import (
    Choice,
    Choices,
    ClassId,
    Components,
    Part,
    PartShape,
    Problem,
    SolvedShapes,
    components,
)
from presk_rel.egraph.extract_elimination import eliminated

FEW = 1_000
"""Selections of a part that are tried one by one."""

FIRST, EACH = 0.5, 0.0001
"""Of the solver's deterministic seconds, what a problem gets in any case, and for each of its choices."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A choice for every class that the solution needs, and for some others; and a lower bound of the cost."""

    choice: dict[ClassId, Choice]
    bound: float

    def gap(self, cost: int) -> float:
        """How far below `cost` the optimum may lie, relative to it; 0 where it does not."""
        return max(0.0, 1 - self.bound / max(1, cost))


def solve(problem: Problem, hint: dict[ClassId, Choice], limit: float, budget: Budget, solved: SolvedShapes) -> Solved:
    """The cheapest acyclic selection, or the best found within the limit; cheap classes are not counted. A part without
    an answer keeps the hint. `solved` has the answers of parts, and gets those of new ones."""
    choices, free = problem.choices, problem.free
    component = components(choices)
    parts = _parts(choices, free, component)
    chosen = {c: ways[0] for c, ways in choices.items() if len(ways) == 1}
    bound = float(sum(choices[c][0].cost for c in problem.needed if len(choices[c]) == 1))
    size = sum(len(choices[c]) for classes in parts for c in classes)
    limit = min(limit, FIRST + EACH * size)
    for classes in parts:
        part = Part({c: choices[c] for c in classes}, free, component)
        inner = part.choices
        share = limit * (0.1 + 0.9 * sum(map(len, inner.values())) / max(1, size))
        ordered, shape = _shape(part)
        if shape not in solved:
            found = _enumerated(part) or _large(part, hint, share, budget)
            solved[shape] = _picked(ordered, found)
        found = _same(ordered, *solved[shape])
        chosen |= found.choice
        bound += found.bound - sum(ways[0].cost for c, ways in inner.items() if c in free and len(ways) == 1)
    return Solved(chosen, bound)


_Ordered = list[tuple[ClassId, list[Choice]]]


def _shape(part: Part) -> tuple[_Ordered, PartShape]:
    """The classes of a part and their choices in an order that mostly does not depend on their numbers, and what of the
    part that leaves. Parts of one shape have one solution: layers of a model are alike."""
    inner, free = part.choices, part.free
    place: dict[ClassId, int] = {}
    queue = [*(c for c in inner if c in free), *(c for c in inner if c not in free)]
    starts = sum(c in free for c in inner)
    queue, rest = queue[:starts], queue[starts:]
    for c in queue:
        place[c] = len(place)
    for c in queue:
        for way in sorted(inner[c], key=lambda x: (x.cost, len(x.needs))):
            fresh = [n for n in sorted(way.needs) if n in inner and n not in place]
            place |= {n: len(place) + k for k, n in enumerate(fresh)}
            queue += fresh
    for c in rest:
        if c not in place:
            place[c] = len(place)
            queue.append(c)

    def sign(way: Choice) -> tuple[int, tuple[int, ...]]:
        return way.cost, tuple(sorted(place[n] for n in way.needs if n in place))

    ordered = [(c, sorted(inner[c], key=lambda x: (sign(x), x.key))) for c in queue]
    return ordered, tuple((c in free, tuple(map(sign, ways))) for c, ways in ordered)


def _picked(ordered: _Ordered, found: Solved) -> tuple[list[int | None], float]:
    """A solution by the places of what it chose."""
    return [ways.index(found.choice[c]) if c in found.choice else None for c, ways in ordered], found.bound


def _same(ordered: _Ordered, picked: list[int | None], bound: float) -> Solved:
    """The same solution of another part of that shape."""
    chosen = {c: ways[k] for (c, ways), k in zip(ordered, picked, strict=True) if k is not None}
    return Solved(chosen, bound)


def _parts(choices: Choices, free: frozenset[ClassId], component: Components) -> list[list[ClassId]]:
    """The classes to decide, in groups that do not depend on each other."""
    leader = {c: c for c in choices}

    def find(c: ClassId) -> ClassId:
        while leader[c] != c:
            leader[c] = leader[leader[c]]
            c = leader[c]
        return c

    cyclic: dict[int, ClassId] = {}
    for c, ways in choices.items():
        number, size = component[c]
        if size > 1:
            leader[find(c)] = find(cyclic.setdefault(number, c))
        for n in {n for way in ways for n in way.needs if n not in free}:
            leader[find(n)] = find(c)
    groups: dict[ClassId, list[ClassId]] = {}
    for c in choices:
        groups.setdefault(find(c), []).append(c)
    return [g for g in groups.values() if any(len(choices[c]) > 1 for c in g)]


def _large(part: Part, hint: dict[ClassId, Choice], limit: float, budget: Budget) -> Solved:
    """By elimination where the part is narrow; else that suggests a start and a bound for the integer program."""
    found = eliminated(part, budget)
    if found is None:
        return _program(part, hint, limit, budget)
    roots = [c for c in part.choices if c in part.free]
    certain = sum(part.choices[c][0].cost for c in roots if len(part.choices[c]) == 1)
    if found.exact:
        return Solved(_within(found.choice, roots), found.bound + certain)
    starts = [_within(way, roots) for way in (found.choice, hint)]
    start = min(starts, key=_cost)
    solved = _program(part, start, limit, budget)
    better = min(start, _within(solved.choice, roots), key=_cost)
    return Solved(better, max(found.bound + certain, solved.bound))


def _cost(chosen: dict[ClassId, Choice]) -> int:
    return sum(way.cost for way in chosen.values())


def _program(part: Part, hint: dict[ClassId, Choice], limit: float, budget: Budget) -> Solved:
    from presk_rel.egraph.extract_solver import solve_part

    found = solve_part(part, hint, limit, budget)
    return found or Solved({c: hint[c] for c in part.choices if c in hint}, 0.0)


def _enumerated(part: Part) -> Solved | None:
    """The cheapest choices by trying all, where there are few; None where there are many."""
    choices = part.choices
    undecided = [c for c, ways in choices.items() if len(ways) > 1]
    if prod(len(choices[c]) for c in undecided) > FEW:
        return None
    roots = [c for c in choices if c in part.free]
    fixed = {c: ways[0] for c, ways in choices.items() if len(ways) == 1}
    best: Solved | None = None
    for pick in product(*(choices[c] for c in undecided)):
        chosen = _within({**fixed, **dict(zip(undecided, pick, strict=True))}, roots)
        cost = sum(way.cost for way in chosen.values())
        if (best is None or cost < best.bound) and _ordered(chosen, part.component):
            best = Solved(chosen, cost)
    return best


def _within(whole: dict[ClassId, Choice], roots: list[ClassId]) -> dict[ClassId, Choice]:
    """What the roots of a part need inside it."""
    chosen: dict[ClassId, Choice] = {}
    stack = list(roots)
    while stack:
        c = stack.pop()
        if c not in chosen and c in whole:
            chosen[c] = whole[c]
            stack += whole[c].needs
    return chosen


def _ordered(chosen: dict[ClassId, Choice], component: Components) -> bool:
    """Whether no class needs itself; only in a cyclic component can one."""
    waiting = {
        c: {n for n in way.needs if component[n][0] == component[c][0]}
        for c, way in chosen.items()
        if component[c][1] > 1
    }
    done: set[ClassId] = set()
    grew = True
    while grew:
        fresh = {c for c, needs in waiting.items() if c not in done and needs <= done}
        done |= fresh
        grew = bool(fresh)
    return len(done) == len(waiting)
