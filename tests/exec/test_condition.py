"""The condition of a function: how much more its result changes than its inputs do."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from presk_rel.exec.condition import BITS, GROWTH, UNITS, allowed, condition, rounded
from presk_rel.exec.conform import BOUNDS, distance
from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import arguments
from presk_rel.exec.torch.run import Dtype
from presk_rel.exec.values import Tensor
from presk_rel.session import Request, Session


def kappa(path: Path, text: str, *given: str, dtype: Dtype = "f64") -> float:
    path.write_text(text, encoding="utf-8")
    session, request = Session(str(path)), Request(arguments(given))
    args = session.run_exact("f", request, Options(bits=64)).args
    return float(condition(lambda v: session.run_exact("f", request, Options(bits=BITS), v).value, args, dtype))


@pytest.mark.parametrize(
    ("body", "x", "expected"),
    [
        ("x", "3", 1),
        ("x^5", "3", 5),
        ("exp(x)", "12.5", 12.5),
        ("x - 1", "1.001", 1001),
        ("2", "7", 0),
        ("sin(x)", "0", 0),  # 0 is never rounded
    ],
)
def test_it_is_the_logarithmic_derivative_of_one_number(body: str, x: str, expected: float, tmp_path: Path):
    found = kappa(tmp_path / "f.psk", f"fn f(x : ℝ[]) -> ℝ[] = {body} + 0 * x", f"x={x}")
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_inputs_change_in_the_worst_of_several_directions(tmp_path: Path):
    """x - y at nearly equal numbers: worst where one grows and the other shrinks."""
    text = "fn f(x : ℝ[], y : ℝ[]) -> ℝ[] = x - y"
    assert kappa(tmp_path / "f.psk", text, "x=1.001", "y=1") == pytest.approx(2001, rel=1e-9)


def test_indices_do_not_move_and_undefined_directions_do_not_count(tmp_path: Path):
    text = "fn f(x : ℝ[], i : idx[3]) -> ℝ[] = sqrt(1 - x) + x"
    assert kappa(tmp_path / "f.psk", text, "x=1", "i=2") > 1e5


def test_a_kink_that_rounding_crosses_is_no_error_of_the_run(tmp_path: Path):
    """The slope of relu at 1.001 - 1: rounding 1.001 to bf16 gives 1."""
    path = tmp_path / "f.psk"
    path.write_text("fn g(x : ℝ[]) -> ℝ[] = relu(x - 1)\nfn f(x : ℝ[]) -> ℝ[] = 1 + grad(g)(x)\n", encoding="utf-8")
    session, request = Session(str(path)), Request(arguments(["x=1.001"]))
    exact = session.run_exact("f", request, Options(bits=64))
    for dtype, off in (("f32", 0), ("bf16", Fraction(1, 2))):
        value = session.run_torch("f", request, dtype, "cpu").value
        assert distance(exact.value, value).relative == off
        assert session.judged("f", request, exact.args, value, dtype).relative == 0


def test_what_is_wrong_at_the_rounded_inputs_too_is_refused(tmp_path: Path):
    path = tmp_path / "f.psk"
    path.write_text("fn f(x : ℝ[]) -> ℝ[] = x\n", encoding="utf-8")
    session, request = Session(str(path)), Request(arguments(["x=3"]))
    args = session.run_exact("f", request, Options(bits=64)).args
    found = session.judged("f", request, args, Tensor((), np.float64(3.001)), "f32")
    assert (found.holds, found.condition) == (False, 1)


def test_bf16_on_a_cpu_is_computed_in_f32_and_judged_so(tmp_path: Path):
    """κ·u of bf16 would allow 0.14 of a function of condition 4.5, on a GPU, whose large products round to it."""
    path = tmp_path / "f.psk"
    path.write_text("fn f(x : ℝ[]) -> ℝ[] = x^4\n", encoding="utf-8")
    session, request = Session(str(path)), Request(arguments(["x=1.5"]))
    exact = session.run_exact("f", request, Options(bits=64))
    wrong = Tensor((), np.float64(1.5**4 * 1.1))
    assert not session.judged("f", request, exact.args, wrong, "bf16", "cpu").holds
    assert session.judged("f", request, exact.args, wrong, "bf16", "cuda").holds


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_inputs_are_rounded_as_torch_rounds_them(dtype: str):
    given = np.concatenate(
        [np.random.default_rng(0).standard_normal(2000), [0.0, -0.0, 1.0, 2.0**-130, 1.00390625, 3e38]]
    )
    (found,) = rounded((Tensor((("i", given.size),), given),), dtype)
    kind = torch.float32 if dtype == "f32" else torch.bfloat16
    assert isinstance(found, Tensor)
    assert np.array_equal(found.data, torch.from_numpy(given).to(kind).double().numpy())


def test_what_is_allowed_grows_with_the_condition_from_a_bound_on():
    assert allowed("f32", Fraction(1)) == BOUNDS["f32"]
    assert allowed("f32", Fraction(10**6)) == GROWTH * 10**6 * UNITS["f32"]
    assert all(allowed(t, Fraction(0)) == b for t, b in BOUNDS.items())
