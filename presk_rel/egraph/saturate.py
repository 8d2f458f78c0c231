"""Running the rules within limits: simplification to a fixed point, then a step of the rules that can make the graph
grow, and so on until nothing changes or a limit is met. A rule that matches too often in one step does nothing in it.

Every call into the engine is one step of one ruleset, so a limit is overrun by one step at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Literal

from presk_rel.egraph.egglog_dialect import Session

Stop = Literal["saturated", "e-nodes", "instances", "seconds", "rounds"]


@dataclass(frozen=True, slots=True)
class Limits:
    """`e_nodes` counts those of the loaded program too, `instances` what rules log; up to `times` the program's size of
    either is allowed anyway. `seconds` is a safety net: a run that meets it may differ from another one, and its report
    says so. `solver` is in CP-SAT's deterministic seconds. `expansions` bounds the rounds of rules that grow the graph:
    on gradients, more than four make the choice harder and the result no better. `growth` is how often one of them, or
    a rule that pairs nodes, may match in a step (or as often as the program has nodes)."""

    e_nodes: int = 10_000
    instances: int = 20_000
    seconds: float = 30.0
    expansions: int = 4
    simplifications: int = 1_000
    growth: int = 5_000
    solver: float = 2.0
    times: int = 4


@dataclass(slots=True)
class Saturation:
    """How a run ended, and the number of e-nodes before and after."""

    stopped: Stop
    before: int
    after: int


@dataclass(slots=True)
class _Run:
    session: Session
    limits: Limits
    before: int
    nodes: int
    instances: int
    deadline: float
    stop: Stop | None = None

    def over(self) -> bool:
        if self.nodes > max(self.limits.e_nodes, self.limits.times * self.before):
            self.stop = "e-nodes"
        elif self.instances > max(self.limits.instances, self.limits.times * self.before):
            self.stop = "instances"
        elif monotonic() > self.deadline:
            self.stop = "seconds"
        return self.stop is not None

    def step(self, ruleset: str, most: int | None = None) -> int:
        """One step of a ruleset; by how much the graph and its log grew. (Whatever changes it is logged.)"""
        if not self.session.step(ruleset, most):
            return 0
        seen = self.nodes + self.instances
        self.nodes, self.instances = self.session.counts()
        return self.nodes + self.instances - seen

    def most(self) -> int | None:
        """How often a rule that pairs nodes may match in one step: as it likes while the graph is not much larger than
        the program, for then its classes are small."""
        grown = self.nodes + self.instances > 2 * self.before + 200
        return max(self.limits.growth, self.before) if grown else None

    def simplify(self) -> bool:
        """To a fixed point; whether anything changed."""
        changed = False
        for _ in range(self.limits.simplifications):
            grown = self.step("simplify")
            if not self.over():
                grown += self.step("collect", self.most())
            if self.over() or not grown:
                return changed or grown > 0
            changed = True
        self.stop = "rounds"
        return changed


def saturate(session: Session, limits: Limits) -> Saturation:
    """Run the session's rules; PreskBug if the engine fails."""
    before, _ = session.counts()
    run = _Run(session, limits, before, before, 0, monotonic() + limits.seconds)
    run.simplify()
    for _ in range(limits.expansions):
        if run.stop is not None or not run.step("expand", run.most()) or run.over():
            break
        run.simplify()
    else:
        run.stop = run.stop or "rounds"
    return Saturation(run.stop or "saturated", before, run.nodes)
