"""Running the rules within limits: simplification to a fixed point, then a step of the rules that can make the graph
grow, and so on until nothing changes or a limit is met. A rule that matches too often in one step does nothing in it.

Every call into the engine is one step of one ruleset, so a limit is overrun by one step at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from presk_rel.egraph.budget import SATURATING, Budget, Limits
from presk_rel.egraph.egglog_dialect import Session

Stop = Literal["saturated", "e-nodes", "instances", "matches", "seconds", "rounds"]


SMALL = 100
"""How many times its size a small program may grow to, besides a tenth of the limit."""


@dataclass(slots=True)
class Saturation:
    """How a run ended, and the number of e-nodes before and after."""

    stopped: Stop
    before: int
    after: int


@dataclass(slots=True)
class _Run:
    session: Session
    budget: Budget
    before: int
    nodes: int
    instances: int
    stop: Stop | None = None

    @property
    def limits(self) -> Limits:
        return self.budget.limits

    def allowed(self, most: int) -> int:
        """Of what is limited to `most` in a program of some size; less in a small one, more in a large one."""
        return max(self.limits.times * self.before, min(most, most // 10 + SMALL * self.before))

    def over(self) -> bool:
        if self.nodes > self.allowed(self.limits.e_nodes):
            self.stop = "e-nodes"
        elif self.instances > self.allowed(self.limits.instances):
            self.stop = "instances"
        elif self.session.matches > max(self.limits.matches, 10 * self.limits.times * self.before):
            self.stop = "matches"
        elif self.budget.late(SATURATING):
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

    def nearly(self) -> int | None:
        """How often any other rule may: as it likes until half of the instances are there, so that one step does not
        go far beyond the limit."""
        half = self.instances > self.allowed(self.limits.instances) // 2
        return max(self.limits.growth, self.before) if half else None

    def simplify(self) -> bool:
        """To a fixed point; whether anything changed."""
        changed = False
        for _ in range(self.limits.simplifications):
            grown = self.step("simplify", self.nearly())
            if not self.over():
                grown += self.step("collect", self.most())
            if self.over() or not grown:
                return changed or grown > 0
            changed = True
        self.stop = "rounds"
        return changed


def saturate(session: Session, budget: Budget) -> Saturation:
    """Run the session's rules; PreskBug if the engine fails."""
    before, _ = session.counts()
    run = _Run(session, budget, before, before, 0)
    run.simplify()
    for _ in range(budget.limits.expansions):
        if run.stop is not None or not run.step("expand", run.most()) or run.over():
            break
        run.simplify()
    else:
        run.stop = run.stop or "rounds"
    return Saturation(run.stop or "saturated", before, run.nodes)
