"""Every phase has a budget of counts: a run does the same under any load, and what is cut short is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from presk_rel.core.ir import Program
from presk_rel.egraph.budget import Limits
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.parts import live
from presk_rel.egraph.rules import RULES
from tests.egraph.programs import Builder, real, residual_gradient

ROOT = Path(__file__).parents[2]

PRINTED = """
import hashlib
from presk_rel.core.printer import print_program
from presk_rel.egraph.fusion.fuse import fuse
from presk_rel.egraph.optimize import optimize
from tests.egraph.test_limits import PROGRAMS
for name, program in PROGRAMS.items():
    done = optimize(program(), "f", {"B": 2, "D": 3, "H": 4})
    fused = fuse(done.program, "f", {"B": 2, "D": 3, "H": 4})
    report = done.report
    said = (report.fired, report.e_nodes, report.stopped, report.cuts, report.gap, fused.gap)
    text = print_program(fused.program) + repr(done.proof) + repr(said)
    print(name, hashlib.sha256(text.encode()).hexdigest())
"""
BUSY = "while True: pass"


def quotients() -> Program:
    """`x / w / w …`: divisions by powers of w can be shared in so many ways that the solver meets its limit."""
    b = Builder()
    x, w = b.param("x", real(3)), b.param("w", real(3))
    for _ in range(60):
        x = b.prim("div", real(3), x, w)
    return b.program(x)


PROGRAMS = {"quotients": quotients, "gradient": lambda: residual_gradient(6)}


def printed(seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PRINTED]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_same_under_load_and_with_other_hashes():
    quiet = printed(1)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(3)]
    try:
        loaded = printed(2)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert quiet == loaded
    assert len(quiet.splitlines()) == len(PROGRAMS)


def test_a_solver_at_its_limit_says_so():
    done = optimize(quotients(), "f", {})
    assert done.report.cuts == ("extract",)
    assert 0 < done.report.gap < 1


@pytest.mark.parametrize(
    ("limits", "cut"),
    [
        (Limits(terms=10), "load"),
        (Limits(seconds=0.0), "seconds"),
        (Limits(solver=0.0), "extract"),
        (Limits(searched=0, times=0), "short proofs"),
        (Limits(compared=0, times=0), None),
    ],
)
def test_a_phase_that_is_cut_short(limits: Limits, cut: str | None):
    """The best that was found, proven, no worse than the program."""
    program = quotients()
    done = optimize(program, "f", {}, limits)
    assert check(done.proof, RULES, program, done.program) == []
    assert cut is None or cut in done.report.cuts
    model = CostModel({}, {})
    assert model.function(done.program.functions["f"]).units <= model.function(program.functions["f"]).units


def test_a_program_that_is_not_loaded_stays_as_it_is():
    program = residual_gradient(3)
    done = optimize(program, "f", {}, Limits(terms=10))
    assert done.report.cuts == ("load",)
    assert done.program.functions["f"] == live(program.functions["f"])
