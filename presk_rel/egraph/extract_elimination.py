"""Extraction by eliminating classes, one after the other (Bertelè and Brioschi, "Nonserial dynamic programming", 1972).

Whether a class is needed is a variable; a class costs the cheapest of its choices whose needs are all needed. A
variable that few others stand beside is minimized out of the costs that mention it, which leaves a table over these
others. So what is long but narrow, as chains are, is solved exactly in linear time, whatever its length. Where more
than `WIDTH` stand beside it, costs are minimized apart from each other (Dechter and Rish, "Mini-buckets", 2003): their
sum is a lower bound then, and the values found suggest a selection.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.extract import Choice, Choices, ClassId, Part, trees_of

WIDTH, NARROW = 16, 10
"""Variables of a table, and of those that are kept apart from each other."""

JOINT = 500
"""Selections of a cyclic component that are looked at one by one."""

WIDE = 9
"""A class with more to choose from has a variable for each of its choices, so that no table has them all."""

LOOKS = 500_000
"""Variables that are looked at to find those with the fewest beside them."""

IMPOSSIBLE = 1 << 60
"""More than all costs together."""

Var = int
Scope = tuple[Var, ...]
Array = Any
"""A numpy array of int64."""


@dataclass(frozen=True, slots=True)
class Table:
    """A cost for all values of some variables, each an axis."""

    scope: Scope
    cost: Array


@dataclass(frozen=True, slots=True)
class Eliminated:
    """A selection, and a lower bound of what all cost; `exact` where it is reached."""

    choice: dict[ClassId, Choice]
    bound: int
    exact: bool


def eliminated(part: Part, budget: Budget) -> Eliminated | None:
    """The cheapest selection of a part, or a good one with a bound; None where a cyclic component is large, or the
    budget is spent. What is `free` is there: one with several choices takes one of them, the others cost nothing."""
    choices, groups = part.choices, _grouped(part)
    if any(len(g) > 1 and not _few(choices, g) for g in groups):
        return None
    if 2 * sum(max(x.cost for x in ways) for ways in choices.values()) > IMPOSSIBLE:
        return None
    problem = _Problem(part)
    for group in groups:
        problem.add(group)
    solver = _Elimination(problem.tables, problem.count, budget)
    if not solver.run():
        budget.cut("extract")
        return None
    value = solver.values()
    needed = {c for c, v in problem.number.items() if value[v]}
    chosen = problem.chosen(groups, needed) if solver.exact else _suggested(part, needed)
    return Eliminated(chosen, solver.constant, solver.exact)


def _grouped(part: Part) -> list[list[ClassId]]:
    """The classes, those of one cyclic component together."""
    groups: dict[int, list[ClassId]] = {}
    for c in part.choices:
        groups.setdefault(part.component[c][0], []).append(c)
    return list(groups.values())


def _few(choices: Choices, group: list[ClassId]) -> bool:
    """Whether all selections of a cyclic component can be looked at, in one table."""
    beside = {n for c in group for way in choices[c] for n in way.needs if n in choices}
    return len(beside.union(group)) <= WIDTH and prod(1 + len(choices[c]) for c in group) <= JOINT


def _suggested(part: Part, needed: set[ClassId]) -> dict[ClassId, Choice]:
    """The selection of cheapest trees where what was found to be needed costs next to nothing."""
    choices, there = part.choices, needed | part.free
    inside = {
        c: [replace(x, needs=frozenset(n for n in x.needs if n in choices)) for x in w] for c, w in choices.items()
    }
    cheaper = {c: [replace(x, cost=x.cost if c in there else x.cost << 20) for x in ways] for c, ways in inside.items()}
    best = trees_of(cheaper, frozenset()).best
    by_key = {c: {x.key: x for x in ways} for c, ways in choices.items()}
    return {c: by_key[c][x.key] for c, x in best.items()}


@dataclass(slots=True)
class _Problem:
    """Costs as tables; `number` has the variable of every class that may be needed or not."""

    part: Part
    tables: list[Table] = field(default_factory=list[Table])
    number: dict[ClassId, Var] = field(default_factory=dict[ClassId, Var])
    count: int = 0

    @property
    def choices(self) -> Choices:
        return self.part.choices

    @property
    def free(self) -> frozenset[ClassId]:
        return self.part.free

    def fresh(self) -> Var:
        self.count += 1
        return self.count - 1

    def variable(self, c: ClassId) -> Var:
        if c not in self.number:
            self.number[c] = self.fresh()
        return self.number[c]

    def needs(self, way: Choice) -> list[ClassId]:
        """What a choice needs that may not be there."""
        return sorted(n for n in way.needs if n in self.choices and n not in self.free)

    def add(self, group: list[ClassId]) -> None:
        """The costs of a class, or of a cyclic component."""
        if len(group) > 1:
            self.add_joint(group)
            return
        (c,) = group
        ways = self.choices[c]
        if c in self.free and len(ways) == 1:
            return
        given = None if c in self.free else self.variable(c)
        needs = [[self.variable(n) for n in self.needs(way)] for way in ways]
        if len({n for some in needs for n in some}) > WIDE:
            self.add_chain(given, ways, needs)
            return
        cubes = [(way.cost, dict.fromkeys(some, 1)) for way, some in zip(ways, needs, strict=True)]
        self.tables.append(_table([*_unless(given), *cubes]))

    def add_chain(self, given: Var | None, ways: list[Choice], needs: list[list[Var]]) -> None:
        """The same, with a variable that says whether one of the first choices is taken, for each of them: it may be 1
        if that of the choices before is, or at the cost of this choice if all needs are there."""
        before: Var | None = None
        for k, (way, some) in enumerate(zip(ways, needs, strict=True)):
            after = given if k == len(ways) - 1 else self.fresh()
            cubes = [*_unless(after), (way.cost, dict.fromkeys(self.narrowed(some), 1))]
            self.tables.append(_table(cubes if before is None else [*cubes, (0, {before: 1})]))
            before = after

    def narrowed(self, needs: list[Var]) -> list[Var]:
        """Few variables that say that all needs are there."""
        while len(needs) > WIDE:
            together, needs = needs[:WIDE], needs[WIDE:]
            whole = self.fresh()
            self.tables.append(_table([(0, {whole: 0}), (0, dict.fromkeys(together, 1))]))
            needs = [*needs, whole]
        return needs

    def add_joint(self, group: list[ClassId]) -> None:
        """The costs of all selections of a cyclic component that have an order."""
        own = {c: self.variable(c) for c in group if c not in self.free}
        cubes: list[_Cube] = []
        for picked in self.joint(group):
            cost = sum(way.cost for c, way in picked.items() if not (c in self.free and len(self.choices[c]) == 1))
            needs = {self.variable(n): 1 for way in picked.values() for n in self.needs(way)}
            cubes.append((cost, needs | {v: int(c in picked) for c, v in own.items()}))
        self.tables.append(_table(cubes))

    def joint(self, group: list[ClassId]) -> list[dict[ClassId, Choice]]:
        """The selections of some of a cyclic component that have an order; those of what is free have all that is."""
        options: list[list[Choice | None]] = [
            [*self.choices[c]] if c in self.free else [None, *self.choices[c]] for c in group
        ]
        found = [{c: w for c, w in zip(group, p, strict=True) if w is not None} for p in product(*options)]
        return [picked for picked in found if _has_order(picked, set(group))]

    def chosen(self, groups: list[list[ClassId]], needed: set[ClassId]) -> dict[ClassId, Choice]:
        """The cheapest choices where this is needed."""
        there = needed | self.free
        found: dict[ClassId, Choice] = {}
        for group in groups:
            members = {c for c in group if c in there}

            def fits(way: Choice) -> bool:
                return all(n in there for n in way.needs if n in self.choices)

            if len(group) > 1:
                fitting = [p for p in self.joint(group) if p.keys() == members and all(map(fits, p.values()))]
                found |= min(fitting, key=lambda p: sum(w.cost for w in p.values()))
            elif members:
                found[group[0]] = min(filter(fits, self.choices[group[0]]), key=lambda w: (w.cost, w.key))
        return found


def _has_order(picked: dict[ClassId, Choice], inside: set[ClassId]) -> bool:
    """Whether what each needs of the component is picked, and nothing needs itself."""
    waiting = {c: way.needs & inside for c, way in picked.items()}
    while waiting:
        ready = [c for c, needs in waiting.items() if needs.isdisjoint(waiting) and needs <= picked.keys()]
        if not ready:
            return False
        for c in ready:
            del waiting[c]
    return True


@dataclass(frozen=True, slots=True)
class _Step:
    """What was minimized over a variable: over the scope of each table, how much more it costs with the variable than
    without; of a single one, only whether it costs less."""

    variable: Var
    tables: list[tuple[Scope, Array]]


@dataclass(slots=True)
class _Elimination:
    """`constant` is what is left when all variables are gone; `looks` of those that stand beside one are left."""

    tables: list[Table]
    count: int
    budget: Budget
    constant: int = 0
    looks: int = LOOKS
    exact: bool = True
    steps: list[_Step] = field(default_factory=list[_Step])
    _of: dict[Var, dict[int, Table]] = field(default_factory=dict[Var, dict[int, Table]])
    _made: int = 0

    def run(self) -> bool:
        """Eliminate all, the one with the fewest beside it first; whether the budget was enough."""
        for t in self.tables:
            self.put(t)
        heap = [(len(self.beside(v)), v) for v in range(self.count)]
        heapq.heapify(heap)
        while heap:
            _, v = heapq.heappop(heap)
            beside = self.beside(v)
            self.looks -= 1 + len(beside)
            if heap and len(beside) > heap[0][0]:
                heapq.heappush(heap, (len(beside), v))
                continue
            if self.looks <= 0 or self.budget.entries <= 0 or self.budget.late():
                return False
            self.eliminate(v, beside)
        return True

    def put(self, table: Table) -> None:
        if not table.scope:
            self.constant += int(table.cost)
        self._made += 1
        for v in table.scope:
            self._of.setdefault(v, {})[self._made] = table

    def beside(self, v: Var) -> set[Var]:
        """Which variables stand beside one, and itself."""
        return {x for t in self._of.get(v, {}).values() for x in t.scope}

    def eliminate(self, v: Var, beside: set[Var]) -> None:
        mentioned = self._of.pop(v, {})
        for number, table in mentioned.items():
            for x in table.scope:
                if x != v:
                    del self._of[x][number]
        tables = list(mentioned.values())
        parts = [tables] if len(beside) <= WIDTH else _apart(tables)
        single = len(parts) == 1
        self.exact = self.exact and len(parts) <= 1
        done: list[tuple[Scope, Array]] = []
        for part in parts if mentioned else ():
            scope = tuple(sorted({x for t in part for x in t.scope} - {v}))
            self.budget.entries -= (1 + len(part)) << len(scope)
            without, with_ = _summed(part, (v, *scope))
            done.append((scope, with_ < without if single else with_ - without))
            self.put(Table(scope, _least(without, with_)))
        self.steps.append(_Step(v, done))

    def values(self) -> list[bool]:
        """A value for every variable, the last one that was eliminated first."""
        found = [False] * self.count
        for step in reversed(self.steps):
            more = [table[tuple(int(found[x]) for x in scope)] for scope, table in step.tables]
            found[step.variable] = bool(more[0]) if len(more) == 1 else sum(map(int, more)) < 0
        return found


def _apart(tables: list[Table]) -> list[list[Table]]:
    """Tables in groups whose sum is narrow."""
    groups: list[tuple[set[Var], list[Table]]] = []
    for t in sorted(tables, key=lambda t: (-len(t.scope), t.scope)):
        for scope, group in groups:
            if len(scope.union(t.scope)) <= NARROW:
                scope.update(t.scope)
                group.append(t)
                break
        else:
            groups.append((set(t.scope), [t]))
    return [group for _, group in groups]


def _summed(tables: list[Table], scope: Scope) -> Array:
    """The sum of some tables as one over this scope."""
    from numpy import int64, minimum, zeros

    whole = zeros((2,) * len(scope), int64)
    for t in tables:
        order = sorted(t.scope, key=scope.index)
        spread = [2 if x in t.scope else 1 for x in scope]
        whole = minimum(whole + t.cost.transpose([t.scope.index(x) for x in order]).reshape(spread), IMPOSSIBLE)
    return whole


def _least(one: Array, other: Array) -> Array:
    from numpy import minimum

    return minimum(one, other)


_Cube = tuple[int, dict[Var, int]]
"""A cost for all values of variables that agree with some."""


def _unless(variable: Var | None) -> list[_Cube]:
    """No cost where the variable is 0; None stands for one that is always 1."""
    return [] if variable is None else [(0, {variable: 0})]


def _table(cubes: list[_Cube]) -> Table:
    """The least of some costs, wherever there is one."""
    from numpy import full, int64, minimum

    scope = tuple(sorted({v for _, fixed in cubes for v in fixed}))
    costs = full((2,) * len(scope), IMPOSSIBLE, int64)
    for cost, fixed in cubes:
        place = tuple(fixed.get(v, slice(None)) for v in scope)
        costs[place] = minimum(costs[place], cost)
    return Table(scope, costs)
