"""Generated programs: optimized, they compute the same, cost no more, and the proof is accepted."""

from __future__ import annotations

import random
from typing import Any

import mpmath as mp
import pytest

from presk_rel.core.ir import Program
from presk_rel.egraph.budget import Limits
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.parts import live
from presk_rel.egraph.rules import RULES
from tests.egraph.interpreter import Undefined, entries, environment, random_value
from tests.egraph.random_programs import random_program

DIMS = {"B": 2, "D": 3}
LIMITS = Limits(e_nodes=3_000, instances=6_000, expansions=3, solver=0.2)
EPS = mp.mpf(10) ** -25


def result(program: Program, args: list[Any]) -> list[Any] | None:
    """The entries of the result, None where any value of the program is undefined, or large."""
    try:
        computed = environment(program, program.functions["f"], DIMS, args)
    except Undefined:
        return None
    if any(abs(x) > 1e9 for value in computed.values() for x in entries(value)):
        return None
    return entries(computed[program.functions["f"].ret])


@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(s, marks=pytest.mark.slow) for s in range(30, 150))])
def test_same_values_cost_no_more_proof_accepted(seed: int):
    program = random_program(seed, 12 + seed % 40)
    program.functions["f"] = live(program.functions["f"])
    done = optimize(program, "f", DIMS, LIMITS)
    assert check(done.proof, RULES, program, done.program) == []
    model = CostModel({}, DIMS)
    before, after = program.functions["f"], done.program.functions["f"]
    assert model.function(after).units <= model.function(before).units
    rng = random.Random(seed)
    with mp.workdps(40):
        for _ in range(3):
            args = [random_value(program, p.type, DIMS, lambda: mp.mpf(rng.uniform(-1, 2))) for p in before.params]
            expected = result(program, args)
            if expected is None:
                continue
            found = result(done.program, args)
            assert found is not None
            for x, y in zip(expected, found, strict=True):
                assert mp.almosteq(x, y, rel_eps=EPS, abs_eps=EPS), (x, y)
