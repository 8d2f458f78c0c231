"""Ten times the program is at most fifteen times the work (counted, not timed), and every limit ends with grace."""

from __future__ import annotations

from fractions import Fraction

import pytest

from presk_rel.core.ir import Program
from presk_rel.egraph.budget import Limits
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.fusion.graph import graph_of
from presk_rel.egraph.fusion.partition import partition
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.egraph.parts import live
from presk_rel.egraph.rules import RULES
from tests.egraph.programs import Builder, real, residual_gradient
from tests.egraph.random_programs import random_program


def work(done: Optimized) -> tuple[int, int, int]:
    """E-nodes, logged instances, steps of the proof."""
    steps = sum(len(lemma.steps) for part in done.proof.parts for lemma in part.lemmas)
    return done.report.e_nodes[1], sum(n for _, n in done.report.fired), steps


@pytest.mark.parametrize("layers", [7, pytest.param(66, marks=pytest.mark.slow)])
def test_ten_times_the_layers(layers: int):
    """200 against 2,000 bindings; with `-m slow`, 2,000 against 18,500."""
    few, many = (optimize(residual_gradient(n), "f") for n in (layers, 10 * layers))
    assert many.report.stopped == few.report.stopped == "saturated"
    assert many.report.gap == few.report.gap == 0
    for one, ten in zip(work(few), work(many), strict=True):
        assert ten <= 15 * one + 100


def chain(op: str, length: int) -> Program:
    """Every factor of a long product, every doubling, every sign is one more."""
    b = Builder()
    x = b.param("x", real(3))
    for i in range(length):
        match op:
            case "factor":
                c = b.prim("const", real(), attrs=(Fraction(1 + i % 7),))
                x = b.prim("mul", real(3), x, c)
            case "double":
                x = b.prim("add", real(3), x, x)
            case _:
                x = b.prim("neg", real(3), b.prim("sin", real(3), x))
    return b.program(x)


@pytest.mark.parametrize("op", ["factor", "double", "sign"])
def test_twice_the_chain(op: str):
    few, many = (optimize(chain(op, n), "f") for n in (40, 80))
    assert many.report.stopped == few.report.stopped
    for one, two in zip(work(few), work(many), strict=True):
        assert two <= 2.6 * one + 40
    assert check(many.proof, RULES, chain(op, 80), many.program) == []


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(e_nodes=0, times=0), "e-nodes"),
        (Limits(instances=0, times=0), "instances"),
        (Limits(seconds=0.0), "seconds"),
        (Limits(simplifications=1), "rounds"),
        (Limits(expansions=0), "rounds"),
        (Limits(solver=1e-9), "saturated"),
        (Limits(growth=0), "saturated"),
    ],
)
def test_every_limit(limits: Limits, reason: str):
    """The best that was found, no worse than the program, proven; the report says which limit was met."""
    met = 0
    for seed in (3, 11, 17):
        program = random_program(seed, 40)
        program.functions["f"] = live(program.functions["f"])
        done = optimize(program, "f", {"B": 2, "D": 3}, limits)
        assert check(done.proof, RULES, program, done.program) == []
        model = CostModel({}, {"B": 2, "D": 3})
        before, after = (model.function(p.functions["f"]).units for p in (program, done.program))
        assert after <= before
        assert 0 <= done.report.gap <= 1
        met += done.report.stopped == reason
    assert met


def test_a_partition_without_time():
    """Fusion keeps the partition it starts with."""
    program = residual_gradient(4)
    model = CostModel(program.modules, {"B": 2, "D": 3, "H": 4})
    graph = graph_of(live(program.functions["f"]), model)
    none, some = partition(graph, 1e-9), partition(graph, 1.0)
    assert none.units >= some.units
    assert 0 <= some.gap <= none.gap <= 1
