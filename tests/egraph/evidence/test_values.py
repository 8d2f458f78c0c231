"""Results before and after optimization are equal to every proven digit: all entries of all examples, generated
programs, and generated programs with calls, folds, closures and trees, and their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.egraph.budget import Limits
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.parts import live
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.render import to_json
from presk_rel.exec.verdict import verify_proof
from presk_rel.session import Session
from tests.ad.random_programs import DIMS as WHOLE_DIMS
from tests.ad.random_programs import random_program as whole_program
from tests.egraph.random_programs import random_program
from tests.exec.torch.test_random_programs import with_gradient

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}
CONSTS = {"gpt": SMALL, "minigpt": SMALL, "train_minigpt": {f"m.{k}": n for k, n in SMALL.items()}}
FILES = sorted(p for folder in ("", "field", "tour") for p in (EXAMPLES / folder).glob("*.psk"))
SAMPLE = ("mlp", "train_minigpt", "linear_regression", "deep", "hinge", "gru", "huber", "vae")
LIMITS = Limits(e_nodes=3_000, instances=6_000, expansions=3, solver=0.2)
BITS = Options(bits=128)


def value(program: Program, entry: str, dims: Mapping[str, int], seed: int) -> Any:
    """The proven result as text; None where the program has none."""
    given = {"temperature": 3} if any(p.name == "temperature" for p in program.functions[entry].params) else {}
    try:
        return digits(to_json(run_exact(program, entry, given, dims, seed, BITS).value))
    except PreskError as error:
        assert error.diagnostics[0].code.startswith("E70"), error.diagnostics[0]
        return None


def digits(document: Any) -> Any:
    """A result without its error bounds: the sides may differ in what they know to be exact, not in a digit."""
    if isinstance(document, dict):
        return {k: digits(v) for k, v in document.items() if k not in ("error_bound", "zeros_below")}
    return [digits(v) for v in document] if isinstance(document, list) else document


def agree(flat: Program, optimized: Program, entry: str, dims: Mapping[str, int], seed: int) -> bool:
    """Whether there is a result; then it is that of the optimized program too."""
    expected = value(flat, entry, dims, seed)
    if expected is not None:
        assert value(optimized, entry, dims, seed) == expected, (entry, seed)
    return expected is not None


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=() if p.stem in SAMPLE else pytest.mark.slow, id=p.stem) for p in FILES]
)
def test_every_entry_of_an_example(path: Path):
    session = Session(str(path), CONSTS.get(path.stem, {}), mode="training")
    compared = 0
    for name, function in session.core.functions.items():
        if ".lambda" in name or name not in session.differentiated.functions:
            continue
        dims = dict.fromkeys(function.dims, 2)
        compared += agree(session.flat(name), session.optimized(name, dims).program, name, dims, 1)
    assert compared


CHUNKS = [pytest.param(k, marks=() if k == 0 else pytest.mark.slow) for k in range(25)]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_generated_programs(chunk: int):
    """Forty straight-line programs of every primitive in each of twenty-five chunks: a thousand."""
    compared = 0
    for seed in range(1_000 + 40 * chunk, 1_040 + 40 * chunk):
        program = random_program(seed, 8 + seed % 40)
        program.functions["f"] = live(program.functions["f"])
        dims = {"B": 2, "D": 3}
        compared += agree(program, optimize(program, "f", dims, LIMITS).program, "f", dims, seed)
    assert compared > 8


@pytest.mark.parametrize("chunk", [pytest.param(k, marks=() if k == 0 else pytest.mark.slow) for k in range(20)])
def test_generated_programs_with_folds_and_trees(chunk: int):
    """Ten programs of the whole language with their gradients in each of twenty chunks."""
    compared = 0
    for seed in range(5_000 + 10 * chunk, 5_010 + 10 * chunk):
        found = with_gradient(whole_program(Random(seed)))
        for entry in ("loss", "loss.gradient"):
            if entry in found.functions:
                flat = inline_entry(found, entry)
                done = optimize(flat, entry, WHOLE_DIMS, LIMITS).program
                compared += agree(flat, done, entry, WHOLE_DIMS, seed)
    assert compared > 4


def test_a_factor_that_is_known_as_a_sign_only():
    """`(-x) · y` where the e-graph has `-x` and no `x · (-1)`: the way back of the factor needs both."""
    program = random_program(1939, 8 + 1939 % 40)
    program.functions["f"] = live(program.functions["f"])
    done = optimize(program, "f", {"B": 2, "D": 3}, LIMITS)
    assert verify_proof(done.proof, program, done.program).accepted
