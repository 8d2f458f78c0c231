"""Running the rules within limits: simplification to a fixed point, then one rule at a time of those that can make the
graph grow, with a ban on a rule that matches too often (back-off), until nothing changes or a limit is met.

Every call into the engine is one step of one ruleset, so a limit is overrun by one step at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from presk_rel.egraph.egglog_dialect import Session

Stop = Literal["saturated", "e-nodes", "instances", "seconds", "rounds"]


@dataclass(frozen=True, slots=True)
class Limits:
    """`e_nodes` counts those of the loaded program too; `instances` is what rules may log. At least four times the
    program's size is always allowed. `seconds` is a safety net: a run that meets it may differ from another one, and
    its report says so. `solver` is in CP-SAT's deterministic seconds. `expansions` bounds the rounds of rules that grow
    the graph, `growth` what one of them may add in a step before it is banned for the next rounds."""

    e_nodes: int = 10_000
    instances: int = 20_000
    seconds: float = 30.0
    expansions: int = 6
    simplifications: int = 1_000
    growth: int = 5_000
    solver: float = 2.0


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
    banned: dict[str, int] = field(default_factory=dict[str, int])
    bans: dict[str, int] = field(default_factory=dict[str, int])
    stop: Stop | None = None

    def over(self) -> bool:
        if self.nodes > max(self.limits.e_nodes, 4 * self.before):
            self.stop = "e-nodes"
        elif self.instances > max(self.limits.instances, 4 * self.before):
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

    def named(self, kind: str) -> list[str]:
        return [r for r in self.session.rulesets if r.startswith(kind)]

    def simplify(self) -> bool:
        """To a fixed point; whether anything changed."""
        changed = False
        for _ in range(self.limits.simplifications):
            grown = self.step("simplify")
            for ruleset in self.named("collect"):
                if self.over():
                    return True
                grown += self.step(ruleset, self.most())
            if self.over() or not grown:
                return changed or grown > 0
            changed = True
        self.stop = "rounds"
        return changed

    def expand(self, round_: int) -> bool:
        """One step of each growing rule that is not banned; whether anything changed, or may yet."""
        changed = False
        for ruleset in self.named("expand"):
            if self.banned.get(ruleset, 0) > round_:
                changed = True
                continue
            grown = self.step(ruleset, self.most())
            changed |= grown > 0
            if grown > self.limits.growth << self.bans.get(ruleset, 0):
                self.bans[ruleset] = self.bans.get(ruleset, 0) + 1
                self.banned[ruleset] = round_ + 1 + self.bans[ruleset]
            if self.over():
                break
        return changed


def saturate(session: Session, limits: Limits) -> Saturation:
    """Run the session's rules; PreskBug if the engine fails."""
    before, _ = session.counts()
    run = _Run(session, limits, before, before, 0, monotonic() + limits.seconds)
    run.simplify()
    for round_ in range(limits.expansions):
        if run.stop is not None or not run.expand(round_) or run.stop is not None:
            break
        run.simplify()
    else:
        run.stop = run.stop or "rounds"
    return Saturation(run.stop or "saturated", before, run.nodes)
