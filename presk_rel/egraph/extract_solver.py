"""Extraction as an integer program, solved by OR-tools' CP-SAT: single-threaded, with a fixed seed and a limit in its
deterministic clock, so that equal inputs give equal outputs. The only file that knows OR-tools.
"""

from __future__ import annotations

# pyright: reportUnknownMemberType=false
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, IntVar

from presk_rel.egraph.extract import Choice, Choices, ClassId, Components
from presk_rel.egraph.extract_parts import Solved

LARGE, TOO_LARGE = 3_000, 20_000
"""Choices in one program beyond which its relaxation is not built in full, and beyond which it is not solved at all:
the solver looks at its clock too rarely."""


def solve_part(
    choices: Choices, hint: dict[ClassId, Choice], free: frozenset[ClassId], component: Components, limit: float
) -> Solved | None:
    """The cheapest choices of a part, or the best found within the limit; None if none was found."""
    size = sum(map(len, choices.values()))
    if size > TOO_LARGE:
        return None
    model = CpModel()
    scale = _scale(choices)
    variables = _formulate(model, choices, hint, free, component, scale)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.linearization_level = 2 if size <= LARGE else 1  # the relaxation proves optima here
    solver.parameters.max_deterministic_time = limit
    solver.parameters.max_time_in_seconds = 5 + 5 * limit
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    chosen = {c: choices[c][i] for (c, i), y in variables.items() if solver.boolean_value(y)}
    certain = {c: ways[0] for c, ways in choices.items() if c in free and len(ways) == 1}
    known = sum(way.cost for way in certain.values())
    if status == cp_model.OPTIMAL and scale == 1:
        return Solved(chosen | certain, known + solver.objective_value)
    slack = 0 if scale == 1 else len(choices)  # every cost was rounded up once
    return Solved(chosen | certain, known + max(0.0, (solver.best_objective_bound - slack) * scale))


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
