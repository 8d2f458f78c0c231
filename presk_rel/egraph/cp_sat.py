"""Integer programs for OR-tools' CP-SAT: single-threaded, with a fixed seed and a limit in its deterministic clock, so
that equal inputs give equal outputs. The only file that knows OR-tools (9.15), of which it loads the compiled part
only: `cp_model` imports pandas, which takes longer than most programs take to solve.
"""

from __future__ import annotations

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model_helper

LARGE = 2**62
"""No bound."""
CLOSE = 1e-9
"""A solution this near the optimum, relative to it, is one: less than a binding more or less."""

Var = int
Linear = Iterable[tuple[Var, int]]
"""Variables with their coefficients."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The values of the variables; no solution costs less than `bound`."""

    values: list[int]
    cost: float
    bound: float


class Model:
    """An integer program, built up constraint by constraint. `spent` is what solving took of the deterministic
    clock."""

    def __init__(self) -> None:
        self._proto: Any = cp_model_helper.CpModelProto()
        self._count = 0
        self.spent = 0.0

    def integer(self, low: int, high: int) -> Var:
        self._proto.variables.add().domain.extend([low, high])
        self._count += 1
        return self._count - 1

    def boolean(self) -> Var:
        return self.integer(0, 1)

    def between(self, sum_: Linear, low: int, high: int, only_if: Var | None = None) -> None:
        """`low <= sum <= high`, wherever `only_if` is 1."""
        constraint = self._proto.constraints.add()
        if only_if is not None:
            constraint.enforcement_literal.append(only_if)
        pairs = list(sum_)
        constraint.linear.vars.extend([v for v, _ in pairs])
        constraint.linear.coeffs.extend([c for _, c in pairs])
        constraint.linear.domain.extend([low, high])

    def at_least(self, sum_: Linear, low: int, only_if: Var | None = None) -> None:
        self.between(sum_, low, LARGE, only_if)

    def hint(self, variable: Var, value: int) -> None:
        """A value of a solution to start from."""
        self._proto.solution_hint.vars.append(variable)
        self._proto.solution_hint.values.append(value)

    def minimize(self, sum_: Linear) -> None:
        pairs = list(sum_)
        self._proto.objective.vars.extend([v for v, _ in pairs])
        self._proto.objective.coeffs.extend([c for _, c in pairs])

    def solve(self, limit: float, level: int, seconds: float | None = None) -> Answer | None:
        """The best solution found in `limit` seconds of the deterministic clock; None if none was. `level` says how
        much is made of the linear relaxation (0 to 2); `seconds`, in real time, is the user's limit."""
        parameters: Any = cp_model_helper.SatParameters()
        parameters.num_workers = 1
        parameters.random_seed = 1
        parameters.linearization_level = level
        parameters.max_deterministic_time = limit
        if seconds is not None:
            parameters.max_time_in_seconds = seconds
        parameters.relative_gap_limit = CLOSE
        solver: Any = cp_model_helper.SolveWrapper()
        solver.set_parameters(parameters)
        response: Any = solver.solve(self._proto)
        self.spent += response.deterministic_time
        status = cp_model_helper.CpSolverStatus
        if response.status not in (status.OPTIMAL, status.FEASIBLE):
            return None
        bound = float(response.objective_value if response.status == status.OPTIMAL else response.best_objective_bound)
        return Answer(list(response.solution), float(response.objective_value), bound)
