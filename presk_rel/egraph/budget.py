"""How far the phases of the optimizer may go: counts, so that a run does the same on every machine under any load.

Seconds count only where the user asks for it (`--time-limit`); such a run may differ from another one. Saturation
ends when 40 % of them are over, since what follows grows with the graph; the search for something cheaper ends at 60 %;
the rest is for writing down what was found and why it holds. Whatever is cut short ends with the best that was found,
and is named in the report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts that grow with a program are at least what is said here, and `times` its number of terms.

    `e_nodes`, of the loaded program too, `instances` that rules log and `matches` that they find bound saturation, with
    `expansions`, the rounds of rules that grow the graph (on gradients, more than four make the choice harder and the
    result no better), `simplifications` between two of them, and `growth`, how often a rule that pairs nodes may match
    in one step. `places` bounds the instances that move factors back inwards, `compared` the choices that extraction
    compares, `entries` those of the tables by which it solves what is narrow, `searched` the edges that are looked
    through for short proofs. `sums` are the terms and steps of sums that are put in order, `rewrites` the steps of
    recognition and of long chains, `planned` the bindings that are looked through to make folds smaller, `priced`
    those to decide what they keep. `solver` is the deterministic time of CP-SAT for choices of a large program, in its
    seconds. `terms` bounds what is loaded at all: a larger program stays as it is. `seconds`, of the user, bound all
    phases together."""

    e_nodes: int = 10_000
    instances: int = 20_000
    matches: int = 200_000
    expansions: int = 4
    simplifications: int = 1_000
    growth: int = 5_000
    places: int = 20_000
    compared: int = 2_000_000
    searched: int = 6_000_000
    solver: float = 1.0
    times: int = 4
    terms: int = 1_000_000
    sums: int = 200_000
    rewrites: int = 20_000
    priced: int = 1_000_000
    planned: int = 2_000_000
    entries: int = 100_000_000
    seconds: float | None = None


SATURATING, SEARCHING, WHOLE = 0.4, 0.6, 1.0
"""The parts of the user's seconds after which the graph stays as it is, nothing cheaper is looked for, and nothing is
done that can be left out."""

FUNCTIONS = 3
"""What all functions of a program together get of the solver, as many times as one of them."""


class OutOfBudget(Exception):
    """A limit is met in a phase of which half is no use. Caught in `optimize`."""

    def __init__(self, phase: str) -> None:
        super().__init__(phase)
        self.phase = phase


@dataclass(slots=True)
class Budget:
    """What is left in one run, which `started` at a moment of the monotonic clock. `cuts` are what ended before it was
    done, in order."""

    limits: Limits
    started: float
    solver: float
    compared: int
    places: int
    searched: int
    sums: int
    rewrites: int
    priced: int
    planned: int
    entries: int
    cuts: list[str] = field(default_factory=list[str])

    @staticmethod
    def of(limits: Limits, size: int = 0) -> Budget:
        """For a program of this many terms."""
        compared, places, searched, sums, rewrites, priced, planned = (
            max(n, 20 * limits.times * size) for n in _growing(limits)
        )
        solver = FUNCTIONS * limits.solver
        return Budget(
            limits, monotonic(), solver, compared, places, searched, sums, rewrites, priced, planned, limits.entries
        )

    def cut(self, what: str) -> None:
        """Note, once, what was cut short."""
        if what not in self.cuts:
            self.cuts.append(what)

    def late(self, part: float = SEARCHING) -> bool:
        """Whether this part of the user's seconds is over."""
        left = self.seconds_left(part)
        if left is None or left > 0:
            return False
        self.cut("seconds")
        return True

    def watch(self, phase: str, part: float = SEARCHING) -> None:
        """OutOfBudget if this part of the user's seconds is over."""
        if self.late(part):
            raise OutOfBudget(phase)

    def seconds_left(self, part: float = WHOLE) -> float | None:
        """Until this part of the user's seconds is over; None where there are none."""
        seconds = self.limits.seconds
        return None if seconds is None else max(0.0, self.started + part * seconds - monotonic())


def _growing(limits: Limits) -> tuple[int, ...]:
    return limits.compared, limits.places, limits.searched, limits.sums, limits.rewrites, limits.priced, limits.planned
