"""Extraction as an integer program."""

from __future__ import annotations

from presk_rel.egraph.budget import SEARCHING, Budget
from presk_rel.egraph.cp_sat import Model, Var
from presk_rel.egraph.extract import Choice, Choices, ClassId, Components, Part
from presk_rel.egraph.extract_parts import Solved

LARGE, TOO_LARGE = 3_000, 20_000
"""Choices in one program beyond which its relaxation is not built (in part, it is work that the solver's clock does not
see: 16 seconds of the processor where it says 0.3), and beyond which it is not solved at all: the solver looks at its
clock too rarely."""


def solve_part(part: Part, hint: dict[ClassId, Choice], limit: float, budget: Budget) -> Solved | None:
    """The cheapest choices of a part, or the best found within `limit` of the deterministic clock, which is taken off
    the budget; None if none was found."""
    choices, free = part.choices, part.free
    size = sum(map(len, choices.values()))
    limit = min(limit, budget.solver)
    if size > TOO_LARGE or limit <= 0 or budget.late():
        budget.cut("extract")
        return None
    model = Model()
    scale = _scale(choices)
    variables = _formulate(model, part, hint, scale)
    level = 2 if size <= LARGE else 0  # the relaxation proves optima here
    found = model.solve(limit, level, budget.seconds_left(SEARCHING))
    budget.solver -= model.spent
    if model.spent >= limit or budget.late():
        budget.cut("extract")
    if found is None:
        return None
    chosen = {c: choices[c][i] for (c, i), y in variables.items() if found.values[y]}
    certain = {c: ways[0] for c, ways in choices.items() if c in free and len(ways) == 1}
    slack = 0 if scale == 1 else len(choices)  # every cost was rounded up once
    bound = sum(way.cost for way in certain.values()) + max(0.0, (found.bound - slack) * scale)
    return Solved(chosen | certain, bound)


def _scale(choices: Choices) -> int:
    """Costs are divided by this, rounded up, so that sums stay below 2^50."""
    worst = sum(max((x.cost for x in ways), default=0) for ways in choices.values())
    return max(1, worst >> 50)


def _formulate(model: Model, part: Part, hint: dict[ClassId, Choice], scale: int) -> dict[tuple[ClassId, int], Var]:
    """One variable per class and per choice: a needed class takes one of its choices, and is needed by at most as much
    as is taken of the choices that need it. (As sums, not as clauses: the linear relaxation is far tighter.) What is
    needed anyway counts as 1, and has no variables if it has one choice."""
    choices, component = part.choices, part.component
    needed = {c: None if c in part.free else model.boolean() for c in choices}
    level = {c: model.integer(0, n - 1) for c in choices if (n := component[c][1]) > 1}
    for c, there in needed.items():
        if there is not None:
            model.hint(there, int(c in hint))
    variables: dict[tuple[ClassId, int], Var] = {}
    objective: list[tuple[Var, int]] = []
    for c, ways in choices.items():
        own = needed[c]
        if own is None and len(ways) == 1:
            _order(model, c, ways[0], level, component, None)
            continue
        taken = [model.boolean() for _ in ways]
        ones = [(y, 1) for y in taken]
        model.between(ones if own is None else [*ones, (own, -1)], int(own is None), int(own is None))
        needing: dict[ClassId, list[Var]] = {}
        for i, (way, y) in enumerate(zip(ways, taken, strict=True)):
            variables[c, i] = y
            objective.append((y, -(-way.cost // scale)))
            model.hint(y, int(c in hint and hint[c].key == way.key))
            _order(model, c, way, level, component, y)
            for n in sorted(way.needs):
                needing.setdefault(n, []).append(y)
        for n, users in needing.items():
            there = needed.get(n)  # what is free may lie in another part
            if there is not None:
                model.at_least([(there, 1), *((y, -1) for y in users)], 0)
    _pairs(model, part, needed, variables)
    model.minimize(objective)
    return variables


def _pairs(
    model: Model, part: Part, needed: dict[ClassId, Var | None], variables: dict[tuple[ClassId, int], Var]
) -> None:
    """Of two classes that may need each other, as `x` and `-x` do, one is computed without the other. (This follows
    from the order, but not for the linear relaxation.)"""
    choices, component = part.choices, part.component
    for c, ways in choices.items():
        near = {n for way in ways for n in way.needs if n > c and n in choices and component[n][0] == component[c][0]}
        for d in sorted(n for n in near if any(c in way.needs for way in choices[n])):
            if (c, 0) not in variables or (d, 0) not in variables:
                continue
            alone = [(variables[c, i], 1) for i, way in enumerate(ways) if d not in way.needs]
            alone += [(variables[d, i], 1) for i, way in enumerate(choices[d]) if c not in way.needs]
            for own in (needed[c], needed[d]):
                model.at_least(alone if own is None else [*alone, (own, -1)], int(own is None))


def _order(
    model: Model, c: ClassId, way: Choice, level: dict[ClassId, Var], component: Components, taken: Var | None
) -> None:
    """What a choice needs of its own cyclic component comes before it."""
    for n in sorted(way.needs):
        if c in level and component[n][0] == component[c][0]:
            model.at_least([(level[c], 1), (level[n], -1)], 1, taken)
