"""The choice of kernels as an integer program, for CP-SAT: single-threaded, with a fixed seed and a limit in its
deterministic clock. A selection whose kernels wait for each other is cut off when it is met.
"""

from __future__ import annotations

from time import monotonic

from presk_rel.egraph.cp_sat import Model
from presk_rel.egraph.fusion.partition import Task, schedule
from presk_rel.egraph.fusion.space import bits

ROUNDS = 20
"""How often cycles are cut off before the start is taken instead."""


def solve(task: Task, start: list[int], limit: float, seconds: float | None = None) -> tuple[list[int], float]:
    """The cheapest selection found and a lower bound of all; `start` where none is found within `limit` of the
    deterministic clock, or in the user's `seconds`."""
    deadline = None if seconds is None else monotonic() + seconds
    model = Model()
    scale = max(1, sum(k.units for k in task.kernels) >> 50)
    taken = [model.boolean() for _ in task.kernels]
    writers = task.writers
    for v in bits(task.result):
        model.at_least([(taken[k], 1) for k in writers[v]], 1)
    for k, needs in enumerate(task.needs):
        for v in bits(needs):
            if k not in writers[v]:
                model.at_least([*((taken[w], 1) for w in writers[v]), (taken[k], -1)], 0)
    workers: dict[int, list[int]] = {i: [] for i in bits(task.live)}
    for k, kernel in enumerate(task.kernels):
        for i in bits(kernel.work & task.live):
            workers[i].append(k)
    for ks in workers.values():  # follows from the rest, and makes the relaxation tighter
        model.at_least([(taken[k], 1) for k in ks], 1)
    chosen_first = set(start)
    for k, t in enumerate(taken):
        model.hint(t, int(k in chosen_first))
    model.minimize([(t, -(-k.units // scale)) for t, k in zip(taken, task.kernels, strict=True)])
    slack = 0 if scale == 1 else len(start)  # every cost was rounded up
    for _ in range(ROUNDS):
        left = limit - model.spent
        late = None if deadline is None else deadline - monotonic()
        found = model.solve(left, 2, late) if left > 0 and (late is None or late > 0) else None
        if found is None:
            return start, 0.0
        chosen = [k for k, t in enumerate(taken) if found.values[t]]
        _, stuck = schedule(task, chosen)
        if not stuck:
            return chosen, (found.bound - slack) * scale
        cycle = _cycle(task, stuck, writers)
        waiting = {k for k, _ in cycle}
        others = sorted({w for _, v in cycle for w in writers[v]} - waiting)
        broken = [*((taken[k], -1) for k in sorted(waiting)), *((taken[w], 1) for w in others)]
        model.at_least(broken, 1 - len(cycle))
    return start, 0.0


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
