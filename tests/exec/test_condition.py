"""The condition of a function: how much more its result changes than its inputs do."""

from fractions import Fraction
from pathlib import Path

import pytest

from presk_rel.exec.condition import GROWTH, UNITS, allowed
from presk_rel.exec.conform import BOUNDS
from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import arguments
from presk_rel.pipeline import Request, Session


def kappa(path: Path, text: str, *given: str) -> float:
    path.write_text(text, encoding="utf-8")
    session, request = Session(str(path)), Request(arguments(given))
    args = session.run_exact("f", request, Options(bits=64)).args
    return float(session.condition("f", request, args))


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


def test_what_is_allowed_grows_with_the_condition_from_a_bound_on():
    assert allowed("f32", Fraction(1)) == BOUNDS["f32"]
    assert allowed("f32", Fraction(10**6)) == GROWTH * 10**6 * UNITS["f32"]
    assert all(allowed(t, Fraction(0)) == b for t, b in BOUNDS.items())
