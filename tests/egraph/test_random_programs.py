"""Generated programs: optimized, they compute the same, cost no more, and the proof is accepted."""

from __future__ import annotations

import random

import mpmath as mp
import pytest

from presk_rel.core.ir import Binding, Function, Prim, Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.optimize import live, optimize
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.saturate import Limits
from presk_rel.elab.ty import TupleOf
from tests.ad.interpreter import evaluate, flat, random_value
from tests.egraph.random_programs import random_program

DIMS = {"B": 2, "D": 3}
LIMITS = Limits(e_nodes=3_000, instances=6_000, expansions=3, solver=0.2)
EPS = mp.mpf(10) ** -25


def with_everything(program: Program) -> Program:
    """The program with a function `all` of every value that `f` computes."""
    f = program.functions["f"]
    whole = Binding("all", TupleOf(tuple(b.type for b in f.bindings)), Prim("tuple", (), tuple(b.name for b in f.bindings)))
    everything = Function("all", f.dims, f.params, whole.type, (*f.bindings, whole), "all")
    return Program(program.modules, {**program.functions, "all": everything})


def defined(value: object) -> bool:
    return all(isinstance(x, mp.mpf) and mp.isfinite(x) and abs(x) < 1e9 for x in flat(value))


@pytest.mark.parametrize("seed", range(40))
def test_same_values_cost_no_more_proof_accepted(seed: int):
    program = random_program(seed, 12 + seed)
    program.functions["f"] = live(program.functions["f"])
    done = optimize(program, "f", DIMS, LIMITS)
    assert check(done.proof, RULES, program, done.program) == []
    model = CostModel({}, DIMS)
    before, after = program.functions["f"], done.program.functions["f"]
    assert model.function(after).units <= model.function(before).units
    rng = random.Random(seed)
    whole = with_everything(program)
    with mp.workdps(40):
        for _ in range(3):
            args = [random_value(program, p.type, DIMS, (), lambda: mp.mpf(rng.uniform(-1, 2))) for p in before.params]
            try:
                if not defined(evaluate(whole, "all", DIMS, args)):
                    continue
            except (ZeroDivisionError, ValueError, TypeError, OverflowError):
                continue
            expected, found = evaluate(program, "f", DIMS, args), evaluate(done.program, "f", DIMS, args)
            for x, y in zip(flat(expected), flat(found), strict=True):
                assert mp.almosteq(x, y, rel_eps=EPS, abs_eps=EPS), (x, y)
