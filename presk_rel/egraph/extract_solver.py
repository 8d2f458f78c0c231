"""Extraction as an integer program, solved by OR-tools' CP-SAT: single-threaded, with a fixed seed and a limit in its
deterministic clock, so that equal inputs give equal outputs. The only file that knows OR-tools.
"""

from __future__ import annotations

from dataclasses import dataclass

# pyright: reportUnknownMemberType=false
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, IntVar

from presk_rel.egraph.extract import Choice, Choices, ClassId, components

Components = dict[ClassId, tuple[int, int]]


LARGE, TOO_LARGE = 3_000, 20_000
"""Choices in one program beyond which its relaxation is not built in full, and beyond which it is not solved at all: the
solver looks at its clock too rarely."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A choice for every class that the solution needs, and for some others; and a lower bound of the cost."""

    choice: dict[ClassId, Choice]
    bound: float

    def gap(self, cost: int) -> float:
        """How far below `cost` the optimum may lie, relative to it; 0 where it does not."""
        return max(0.0, 1 - self.bound / max(1, cost))


def solve(choices: Choices, hint: dict[ClassId, Choice], free: frozenset[ClassId], limit: float) -> Solved:
    """The cheapest acyclic selection, or the best found within the limit, part by part: what `free` classes (those that
    every selection needs) separate is chosen apart. A part without an answer keeps the hint."""
    component = components(choices)
    parts = _parts(choices, free, component)
    chosen = {c: ways[0] for c, ways in choices.items() if len(ways) == 1}
    bound = float(sum(choices[c][0].cost for c in free if len(choices[c]) == 1))
    size = sum(len(choices[c]) for part in parts for c in part)
    for part in parts:
        inner = {c: choices[c] for c in part}
        share = limit * (0.1 + 0.9 * sum(map(len, inner.values())) / max(1, size))
        found = _solve(inner, hint, free, component, share)
        chosen |= found.choice
        bound += found.bound
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


def _solve(
    choices: Choices, hint: dict[ClassId, Choice], free: frozenset[ClassId], component: Components, limit: float
) -> Solved:
    size = sum(map(len, choices.values()))
    fallback = Solved({c: hint[c] for c in choices if c in hint}, 0.0)
    if size > TOO_LARGE:
        return fallback
    model = CpModel()
    scale = _scale(choices)
    variables = _formulate(model, choices, hint, free, component, scale)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.linearization_level = 2 if size <= LARGE else 1  # the relaxation is what proves optima here
    solver.parameters.max_deterministic_time = limit
    solver.parameters.max_time_in_seconds = 5 + 5 * limit
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return fallback
    chosen = {c: choices[c][i] for (c, i), y in variables.items() if solver.boolean_value(y)}
    if status == cp_model.OPTIMAL and scale == 1:
        return Solved(chosen, solver.objective_value)
    slack = 0 if scale == 1 else len(choices)  # every cost was rounded up once
    return Solved(chosen, max(0.0, (solver.best_objective_bound - slack) * scale))


def _scale(choices: Choices) -> int:
    """Costs are divided by this, rounded up, so that sums stay below 2^50."""
    worst = sum(max((x.cost for x in ways), default=0) for ways in choices.values())
    return max(1, worst >> 50)


def _formulate(
    model: CpModel,
    choices: Choices,
    hint: dict[ClassId, Choice],
    free: frozenset[ClassId],
    component: Components,
    scale: int,
) -> dict[tuple[ClassId, int], IntVar]:
    """One variable per class and per choice: a needed class takes one of its choices, and is needed by at most as much
    as is taken of the choices that need it. (As sums, not as clauses: the linear relaxation is far tighter.) What is
    needed anyway counts as 1, and has no variables if it has one choice."""
    needed = {c: 1 if c in free else model.new_bool_var("") for c in choices}
    level = {c: model.new_int_var(0, n - 1, "") for c in choices if (n := component[c][1]) > 1}
    variables: dict[tuple[ClassId, int], IntVar] = {}
    objective: list[cp_model.LinearExpr] = []
    for c, ways in choices.items():
        if c in free and len(ways) == 1:
            _certain_order(model, c, ways[0], level, component)
            continue
        taken = [model.new_bool_var("") for _ in ways]
        model.add(cp_model.LinearExpr.sum(taken) == needed[c])
        needing: dict[ClassId, list[IntVar]] = {}
        for i, (way, y) in enumerate(zip(ways, taken, strict=True)):
            variables[c, i] = y
            objective.append(-(-way.cost // scale) * y)
            model.add_hint(y, c in hint and hint[c].key == way.key)
            for n in sorted(way.needs):
                needing.setdefault(n, []).append(y)
                if c in level and component[n][0] == component[c][0]:
                    model.add(level[c] >= level[n] + 1).only_enforce_if(y)
        for n, users in needing.items():
            if n not in free:
                model.add(cp_model.LinearExpr.sum(users) <= needed[n])
    model.minimize(cp_model.LinearExpr.sum(objective))
    return variables


def _certain_order(
    model: CpModel, c: ClassId, way: Choice, level: dict[ClassId, IntVar], component: Components
) -> None:
    for n in sorted(way.needs):
        if c in level and component[n][0] == component[c][0]:
            model.add(level[c] >= level[n] + 1)
