"""The choice of kernels as an integer program, for CP-SAT: single-threaded, with a fixed seed and a limit in its
deterministic clock. A selection whose kernels wait for each other is cut off when it is met.
"""

from __future__ import annotations

# pyright: reportUnknownMemberType=false
from ortools.sat.python import cp_model

from presk_rel.egraph.fusion.partition import Task, schedule
from presk_rel.egraph.fusion.space import bits

ROUNDS = 20
"""How often cycles are cut off before the start is taken instead."""


def solve(task: Task, start: list[int], limit: float) -> tuple[list[int], float]:
    """The cheapest selection found and a lower bound of all; `start` where none is found in time."""
    model = cp_model.CpModel()
    scale = max(1, sum(k.units for k in task.kernels) >> 50)
    taken = [model.new_bool_var("") for _ in task.kernels]
    writers = task.writers
    for v in bits(task.result):
        model.add_bool_or([taken[k] for k in writers[v]])
    for k, needs in enumerate(task.needs):
        for v in bits(needs):
            model.add(cp_model.LinearExpr.sum([taken[w] for w in writers[v]]) >= taken[k])
    for i in bits(task.live):  # follows from the rest, and makes the relaxation tighter
        model.add(
            cp_model.LinearExpr.sum([taken[k] for k, kernel in enumerate(task.kernels) if kernel.work >> i & 1]) >= 1
        )
    chosen_first = set(start)
    for k, t in enumerate(taken):
        model.add_hint(t, k in chosen_first)
    costs = [-(-k.units // scale) for k in task.kernels]
    model.minimize(cp_model.LinearExpr.weighted_sum(taken, costs))
    slack = 0 if scale == 1 else len(start)  # every cost was rounded up
    for _ in range(ROUNDS):
        solver = _solver(limit)
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return start, 0.0
        chosen = [k for k, t in enumerate(taken) if solver.boolean_value(t)]
        _, stuck = schedule(task, chosen)
        if not stuck:
            return chosen, (solver.best_objective_bound - slack) * scale
        cycle = _cycle(task, stuck, writers)
        others = {w for _, v in cycle for w in writers[v]} - {k for k, _ in cycle}
        left = cp_model.LinearExpr.sum([taken[k] for k, _ in cycle])
        model.add(left <= len(cycle) - 1 + cp_model.LinearExpr.sum([taken[w] for w in sorted(others)]))
    return start, 0.0


def _solver(limit: float) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.linearization_level = 2
    solver.parameters.max_deterministic_time = limit
    solver.parameters.max_time_in_seconds = 10 * limit
    return solver


def _cycle(task: Task, stuck: list[int], writers: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Kernels that wait for each other, each with the value that it gives to the one before."""
    waiting = set(stuck)
    running = {v for v, ks in writers.items() if any(k in waiting for k in ks)}
    path: list[tuple[int, int]] = []
    seen: dict[int, int] = {}
    at, given = stuck[0], -1
    while at not in seen:
        seen[at] = len(path)
        path.append((at, given))
        given = next(v for v in bits(task.needs[at]) if v in running and _all_wait(v, writers, waiting))
        at = next(k for k in writers[given] if k in waiting)
    tail = path[seen[at] :]
    return [(at, given), *tail[1:]]


def _all_wait(value: int, writers: dict[int, list[int]], waiting: set[int]) -> bool:
    return any(k in waiting for k in writers[value])
