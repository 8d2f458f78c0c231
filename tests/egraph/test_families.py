"""Twice the program is about twice the work, counted: no family of programs makes a phase endless; and wherever the
user's seconds are over, what comes out is right, proven, and no worse than what went in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from presk_rel.core.ir import Program
from presk_rel.core.printer import print_program
from presk_rel.egraph import budget as budgets
from presk_rel.egraph.budget import Budget, Limits
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.rules import RULES
from tests.egraph.families import FAMILIES, alternating, nested
from tests.egraph.programs import residual_gradient

COUNTS = ("compared", "places", "sums", "rewrites", "priced", "planned", "entries")
"""What must grow as the program does. (A search for a short proof may look through 2,000 terms, however many there are:
`searched` grows faster until then.)"""

OPEN = ("powers", "quotients", "balanced quotients")
"""Families whose small programs the rules turn into more than the solver orders in its time."""


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Budget]]:
    """The budgets of the runs, as they are left."""
    made: list[Budget] = []
    of = Budget.of

    def remembered(limits: Limits, size: int = 0) -> Budget:
        made.append(of(limits, size))
        return made[-1]

    monkeypatch.setattr(Budget, "of", staticmethod(remembered))
    yield made


def work(done: Optimized, budget: Budget, size: int) -> dict[str, int]:
    """What a run took, by what it is counted in; `size` is that of the program."""
    steps = sum(len(lemma.steps) for part in (done.proof, *done.proof.bodies) for lemma in part.lemmas)
    full = Budget.of(budget.limits, size)
    left = {name: getattr(full, name) - getattr(budget, name) for name in COUNTS}
    instances = sum(n for _, n in done.report.fired)
    return {"e-nodes": done.report.e_nodes[1], "instances": instances, "steps": steps, **left}


@pytest.mark.parametrize("name", FAMILIES)
def test_twice_the_program(name: str, spent: list[Budget]):
    """Linear; and, but for some, optimal and uncut."""
    found: list[dict[str, int]] = []
    for n in (40, 80):
        program = FAMILIES[name](n)
        done = optimize(program, "f")
        found.append(work(done, spent[-1], done.report.before.bindings))
        assert check(done.proof, RULES, program, done.program) == []
        assert (done.report.gap, done.report.cuts) == (0, ()) or name in OPEN
    few, many = found
    assert {k: n for k, n in many.items() if n > 2.6 * few[k] + 500} == {}


def test_two_folds_in_every_body_are_no_more_bodies():
    few, many = (optimize(nested(n), "f") for n in (8, 16))
    assert many.report.e_nodes[1] <= 2.2 * few.report.e_nodes[1]
    assert many.report.after.bindings <= 2.2 * few.report.after.bindings
    assert check(few.proof, RULES, nested(8), few.program) == []


def test_folds_nest_deeper_than_they_are_looked_into():
    done = optimize(nested(150), "f")
    assert done.report.cuts == ("folds",)


def test_no_count_of_its_own_is_met_without_a_word():
    """Each limit at 0 ends its phase, says so, and leaves a program that is right."""
    limits = {"sums": Limits(sums=0, times=0), "folds": Limits(planned=0, times=0)}
    limits |= {"recognise": Limits(rewrites=0, times=0), "residuals": Limits(priced=0, times=0)}
    programs = {"sums": FAMILIES["cancelling"](40), "folds": FAMILIES["folds"](3)}
    for phase, limit in limits.items():
        program = programs.get(phase, residual_gradient(2))
        done = optimize(program, "f", {}, limit)
        assert check(done.proof, RULES, program, done.program) == []
        assert phase in done.report.cuts or phase == "residuals"


# ------------------------------------------------------------------------------------------------ seconds

CLOCKED: dict[str, Callable[[], Program]] = {
    "gradient": lambda: residual_gradient(3),
    "chain": lambda: alternating(60),
    "sums": lambda: FAMILIES["cancelling"](60),
    "folds": lambda: FAMILIES["folds"](8),
}


@pytest.mark.parametrize("name", CLOCKED)
def test_wherever_the_seconds_end(name: str, monkeypatch: pytest.MonkeyPatch):
    """On a clock that moves on by a second whenever it is read, the seconds end in one phase after the other."""
    program = CLOCKED[name]()
    model = CostModel(program.modules, {}, dict(program.functions))
    phases: set[str] = set()
    seconds, asked = 1, 0
    while True:
        ticks = count()
        monkeypatch.setattr(budgets, "monotonic", lambda ticks=ticks: float(next(ticks)))
        done = optimize(program, "f", {}, Limits(seconds=float(seconds)))
        asked = next(ticks)
        assert check(done.proof, RULES, program, done.program) == []
        after = CostModel(program.modules, {}, dict(done.program.functions))
        assert after.function(done.program.functions["f"]).units <= model.function(program.functions["f"]).units
        phases.update(done.report.cuts)
        if not done.report.cuts:
            break
        assert "seconds" in done.report.cuts
        seconds *= 2
    assert asked <= seconds
    assert "seconds" in phases
    assert len(phases) > 2
    assert print_program(done.program) == print_program(optimize(program, "f", {}).program)
