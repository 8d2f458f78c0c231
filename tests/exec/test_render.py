"""Results as JSON, as text, and stored; decimals against Python's `decimal`."""

import decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.diagnostics import PreskError
from presk_rel.exec.exact.rounding import BELOW, Decimal, round_ball, round_rational
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.exact.untyped import arb, flint_context, fmpq
from presk_rel.exec.render import store, to_json, to_text

from .programs import program
from .test_inputs import IDENTITY, MIXED, MIXED_ARGS, code


def expected(q: Fraction, digits: int) -> decimal.Decimal:
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN)
    return context.divide(decimal.Decimal(q.numerator), decimal.Decimal(q.denominator))


RATIONALS = st.one_of(
    st.fractions(max_denominator=10**6),
    st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**6), max_value=10**6).map(Fraction),
    st.builds(lambda n, e: Fraction(n) * Fraction(10) ** e, st.integers(-(10**12), 10**12), st.integers(-40, 40)),
)


@settings(max_examples=500)
@given(q=RATIONALS, digits=st.integers(1, 30))
def test_rationals_round_as_decimal_divides(q: Fraction, digits: int):
    rounded = round_rational(q, digits)
    assert decimal.Decimal(rounded.text) == expected(q, digits)
    distance = abs(Fraction(rounded.text) - q)
    assert distance == 0 if rounded.unit is None else 0 < distance <= Fraction(10) ** rounded.unit / 2


@settings(max_examples=500)
@given(q=RATIONALS, digits=st.integers(1, 30), width=st.integers(20, 200), bits=st.sampled_from([64, 200, 700]))
def test_a_ball_rounds_as_all_its_points_or_not_at_all(q: Fraction, digits: int, width: int, bits: int):
    with flint_context.workprec(bits):
        ball = arb(fmpq(q.numerator, q.denominator)) + arb(0, arb(2) ** -width)
        rounded = round_ball(ball, digits, 300)
        mid, rad = (Fraction(int(m)) * Fraction(2) ** int(e) for m, e in (ball.mid().man_exp(), ball.rad().man_exp()))
    low, high = round_rational(mid - rad, digits), round_rational(mid + rad, digits)
    if isinstance(rounded, Decimal):
        assert rounded.text == low.text == high.text
    assert rounded is not BELOW


def test_a_ball_around_zero_is_below_a_floor_or_undecided():
    with flint_context.workprec(100):
        ball = arb(0, arb(2) ** -50)
        assert round_ball(ball, 10, 40) is BELOW
        assert round_ball(ball, 10, 60) is None
        assert round_ball(arb.nan(), 10, 40) is None
        assert round_ball(arb.pos_inf(), 10, 40) is None


@pytest.mark.parametrize(
    ("q", "text"),
    [
        ("1", "1"), ("0", "0"), ("-0.5", "-0.5"), ("1234.5", "1234.5"), ("99999.5", "1e5"), ("100", "100"),
        ("0.0000001", "0.0000001"), ("0.00000001", "1e-8"), ("123456", "1.2346e5"), ("1e-20", "1e-20"),
    ],
)  # fmt: skip
def test_decimals_are_written_in_one_way(q: str, text: str):
    assert round_rational(Fraction(q), 5).text == text


def test_results_as_json():
    document = to_json(run_exact(program(MIXED), "f", MIXED_ARGS, {"V": 5}).value)
    assert document["type"] == "ℝ[batch: 2]"
    assert document["axes"] == ["batch"]
    assert document["shape"] == [2]
    assert set(document) == {"type", "shape", "axes", "data", "error_bound", "zeros_below"}
    index = "fn f{V N}(t : idx[V][N], m : bool[a: N]) -> (idx[V][N], bool[a: N]) {\n"
    index += "  r : (idx[V][N], bool[a: N]) = (t, m)\n  return r\n}"
    node = {"t": [Fraction(1), Fraction(0)], "m": [True, False]}
    indices, mask = to_json(run_exact(program(index), "f", node, {"V": 5}).value)
    assert (indices["type"], indices["data"]) == ("idx[5][2]", [1, 0])
    assert (mask["type"], mask["data"]) == ("bool[a: 2]", [True, False])


def test_results_as_text_are_shortened_in_the_middle():
    result = run_exact(program(IDENTITY), "f", {"x": np.arange(2000)}, {}).value
    assert to_text(result) == "ℝ[2000]  (error ≤ 0) =\n  [0, 1, 2, …, 1997, 1998, 1999]"
    small = run_exact(program(IDENTITY), "f", {"x": [Fraction(1, 2), Fraction(1, 3)]}, {}, options=Options(digits=3))
    assert to_text(small.value) == "ℝ[2]  (error ≤ 5e-4) =\n  [0.5, 0.333]"


def test_results_are_stored(tmp_path: Path):
    result = run_exact(program(IDENTITY), "f", {"x": np.array([0.1, 0.2])}, {}).value
    store(result, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as loaded:
        assert loaded["value"].tolist() == [0.1, 0.2]
    for path in (tmp_path / "r.txt", tmp_path / "no" / "r.npz"):
        with pytest.raises(PreskError) as raised:
            store(result, path)
        assert code(raised.value) == "E7012"
