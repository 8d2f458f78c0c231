"""Random well-typed programs of every primitive, with calls, folds, closures and trees, and their gradients: no ball
misses a reference of 2,000 bits, no choice differs from it, and every run ends in a result or a diagnostic."""

from random import Random
from typing import Any

import pytest

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.kernel import Undecided
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.exact.sizes import estimate
from presk_rel.exec.exact.untyped import flint_context
from presk_rel.exec.inputs import prepare
from presk_rel.exec.values import IndexTensor, MaskTensor, Tensor, Value, leaves
from tests.ad.random_programs import DIMS, random_program

from .torch.test_random_programs import with_gradient

EACH = 50
REFERENCE = 2000
CHUNKS = [pytest.param(i, marks=pytest.mark.slow if i else ()) for i in range(25)]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_every_ball_of_random_programs_contains_the_2000_bit_reference(chunk: int):
    compared = 0
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        found = with_gradient(random_program(Random(seed)))
        for entry in ("loss", "loss.gradient"):
            if entry in found.functions:
                compared += contained(found, entry, seed, Random(seed).choice([24, 53, 100, 200]))
    assert compared > EACH


def contained(found: Program, entry: str, seed: int, bits: int) -> int:
    """How many finite balls were compared."""
    rough, fine = evaluate(found, entry, bits), evaluate(found, entry, REFERENCE)
    if rough is None or fine is None:
        return 0
    compared = 0
    for (path, a), (_, b) in zip(leaves(rough), leaves(fine), strict=True):
        match a, b:
            case Tensor(_, x), Tensor(_, y):
                pairs: list[tuple[Any, Any]] = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
                finite = [(p, q) for p, q in pairs if p.is_finite() and q.is_finite()]
                assert all(p.overlaps(q) for p, q in finite), (seed, entry, path)
                compared += len(finite)
            case (IndexTensor(_, _, x), IndexTensor(_, _, y)) | (MaskTensor(_, x), MaskTensor(_, y)):
                assert x.tolist() == y.tolist(), (seed, entry, path)
            case _:
                continue
    return compared


def evaluate(found: Program, entry: str, bits: int) -> Value | None:
    """The result in balls; None where a choice is open, or an operation undefined at these dims."""
    with flint_context.workprec(bits):
        try:
            bound, args = prepare(found, entry, {}, DIMS, 0)
            estimate(found, entry, args, bound.env.dims)  # as a run does: what it refuses is never computed
            kernel = Balls()
            return Interpreter(found, kernel).run(entry, inject(kernel, args), bound.env.dims)
        except (PreskError, Undecided):
            return None


@pytest.mark.parametrize("chunk", CHUNKS)
def test_random_programs_end_in_a_result_or_a_diagnostic(chunk: int):
    proven = 0
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        found = with_gradient(random_program(Random(seed)))
        for entry in ("loss", "loss.gradient"):
            if entry in found.functions:
                proven += ends(found, entry, seed)
    assert proven > EACH


def ends(found: Program, entry: str, seed: int) -> bool:
    try:
        run_exact(found, entry, {}, DIMS, seed, Options(bits=64))
    except PreskError as error:
        assert error.diagnostics[0].code in ("E7003", "E7004", "E7005"), (seed, entry, error.diagnostics[0])
        return False
    return True
