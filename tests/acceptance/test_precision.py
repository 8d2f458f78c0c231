"""Every example in every type on torch against its proven result: within the bounds of its type, if not of the given
inputs then of these rounded to it; and where the function magnifies rounding, within a small multiple of what that
does. No example is an exception."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.exec.conform import BOUNDS, distance
from presk_rel.exec.exact.run import Options
from presk_rel.exec.torch.run import Dtype
from presk_rel.session import Request, Session
from tests.acceptance.examples import EXAMPLES, Example

FIELD = Path(__file__).parents[2] / "examples" / "field"
DTYPES: tuple[Dtype, ...] = ("f64", "f32", "bf16")
QUICK = ("hessian_vector", "linear_attention", "gaussian_process", "polynomial_fit", "softmax_regression")


def _marked(example: Example) -> object:
    return pytest.param(example, id=str(example), marks=() if example.file in QUICK else pytest.mark.slow)


@pytest.mark.parametrize("example", [_marked(e) for e in EXAMPLES])
def test_examples_are_as_near_as_their_condition_allows(example: Example):
    session, request = Session(str(FIELD / f"{example.file}.psk")), Request(example.args, example.dims)
    exact = session.run_exact(example.entry, request, Options(bits=96))
    for dtype in DTYPES:
        value = session.run_torch(example.entry, request, dtype, "cpu", planned=True).value
        far = distance(exact.value, value)
        assert far.differing == 0
        if far.relative > BOUNDS[dtype]:
            found = session.judged(example.entry, request, exact.args, value, dtype)
            assert found.holds, (dtype, float(far.relative), float(found.relative), float(found.bound))


def test_bf16_is_rounded_where_tensors_come_in_and_go_out_only():
    """Differences of nearly equal terms: 0.42 where every operation rounds to bf16."""
    session = Session(str(FIELD / "linear_attention.psk"))
    request = Request(dims={"B": 2, "T": 2, "D": 2})
    exact = session.run_exact("loss_grad", request, Options(bits=96)).value
    assert distance(exact, session.run_torch("loss_grad", request, "bf16", "cpu").value).relative < 0.03
