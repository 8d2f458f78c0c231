"""Every primitive on the ball kernel, against an mpmath evaluation written here, at 200 more bits."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.prims import PRIMS
from presk_rel.exec.exact import balls, rationals
from presk_rel.exec.exact import mp as measured
from presk_rel.exec.exact.kernel import ELEMENTWISE
from presk_rel.exec.exact.rows import ROWS
from presk_rel.exec.exact.run import Options, run_exact

from .oracle import agree, decimals, nearest
from .programs import program

BITS, DIGITS = 256, 77
POINTS = [
    "0", "1", "-1", "0.1", "-0.1", "0.5", "2.5", "-2.5", "7", "-7", "30", "-30", "1e-30", "-1e-30", "123.456",
    "-123.456",
]  # fmt: skip


def test_every_primitive_has_one_row():
    assert set(ROWS) == set(PRIMS) - set(COMPOSITES)  # those are written out before anything runs


@pytest.mark.parametrize("table", [balls.UNARY, measured.Measured(64).unary_table, rationals.UNARY])
def test_every_kernel_has_every_function(table: dict[str, Any]):
    assert set(table) == set(ELEMENTWISE)


def phi(x: Any) -> Any:
    """Φ, from the integral of the density rather than from erfc."""
    return mpmath.mpf(1) / 2 + mpmath.erf(x / mpmath.sqrt(2)) / 2


def pdf(x: Any) -> Any:
    return mpmath.exp(-(x**2) / 2) / mpmath.sqrt(2 * mpmath.pi)


ORACLE: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "gelu": lambda x: x * phi(x),
    "relu": lambda x: (x + abs(x)) / 2,
    "exp": lambda x: mpmath.e**x,
    "tanh": lambda x: 1 - 2 / (mpmath.e ** (2 * x) + 1),
    "sqrt": lambda x: mpmath.power(x, mpmath.mpf(1) / 2),
    "abs": lambda x: x if x >= 0 else -x,
    "log": mpmath.ln,
    "sigmoid": lambda x: (1 + mpmath.tanh(x / 2)) / 2,
    "sin": lambda x: mpmath.im(mpmath.exp(mpmath.mpc(0, x))),
    "cos": lambda x: mpmath.re(mpmath.exp(mpmath.mpc(0, x))),
    "gelu'": lambda x: phi(x) + x * pdf(x),
    "normal_pdf": pdf,
    "heaviside": lambda x: mpmath.mpf(x > 0),
    "sign": lambda x: mpmath.mpf((x > 0) - (x < 0)),
}


def test_the_oracle_has_every_function():
    assert set(ORACLE) == set(ELEMENTWISE)


def domain(op: str) -> list[str]:
    """Where the function, and its oracle here, can be evaluated: Φ(-123) is 10^-3300."""
    kept = {
        "log": lambda q: q > 0,
        "sqrt": lambda q: q >= 0,
        "gelu": lambda q: abs(q) < 100,
        "gelu'": lambda q: abs(q) < 100,
    }.get(op, lambda q: True)
    return [p for p in POINTS if kept(Fraction(p))]


@pytest.mark.parametrize("kernel", ["balls", "mpmath"])
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op: str, kernel: Any):
    points = domain(op)
    text = f"fn f{{N}}(x : ℝ[N]) -> ℝ[N] {{\n  y : ℝ[N] = {op} x\n  return y\n}}"
    x = [Fraction(p) for p in points]
    result = run_exact(program(text), "f", {"x": x}, {}, options=Options(kernel=kernel))
    # Φ(-30) is 10^-197: 1 + erf loses as many digits, which this oracle has to pay for.
    with mp.workprec(BITS + 200 + 1_500):
        expected = [ORACLE[op](mpmath.mpf(q.numerator) / q.denominator) for q in x]
        assert agree(result.value, expected, DIGITS)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_powers(n: int):
    text = f"fn f{{N}}(x : ℝ[N]) -> ℝ[N] {{\n  y : ℝ[N] = pow {n} x\n  return y\n}}"
    x = [Fraction(p) for p in POINTS]
    result = run_exact(program(text), "f", {"x": x}, {})
    with mp.workprec(BITS + 200):
        expected = [mpmath.power(mpmath.mpf(q.numerator) / q.denominator, n) if q or n else mpmath.mpf(1) for q in x]
        assert agree(result.value, expected, DIGITS)


# -------------------------------------------------------------------------------------------- broadcasting, by numpy

SHAPES = {
    "a: A, b: B": ("A", "B"),
    "b: B": ("B",),
    "a: A": ("A",),
    "": (),
    "b: B, a: A": ("B", "A"),
    "A, B": ("A", "B"),
    "c: C, a: A, b: B": ("C", "A", "B"),
}
DIMS = {"A": 2, "B": 3, "C": 4}


BROADCASTS = [
    ("a: A, b: B", "b: B", "b->1b"),
    ("a: A, b: B", "a: A", "a->a1"),
    ("a: A, b: B", "", "->11"),
    ("a: A, b: B", "b: B, a: A", "ba->ab"),
    ("a: A, b: B", "A, B", "ab->ab"),
    ("c: C, a: A, b: B", "A, B", "ab->1ab"),
    ("c: C, a: A, b: B", "b: B, a: A", "ba->1ab"),
]
SIDES = [
    (large, small, into, swapped)
    for large, small, into in BROADCASTS
    for swapped in (False, True)
    # Of two equally large shapes the first gives the order of the axes.
    if not (swapped and len(SHAPES[large]) == len(SHAPES[small]))
]


@pytest.mark.parametrize(("large", "small", "into", "swapped"), SIDES)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_broadcasting(op: str, large: str, small: str, into: str, swapped: bool):
    first, second = (small, large) if swapped else (large, small)
    text = (
        f"fn f{{A B C}}(x : ℝ[{first}], y : ℝ[{second}]) -> ℝ[{large}] {{\n  z : ℝ[{large}] = {op} x, y\n  return z\n}}"
    )
    run = run_exact(program(text), "f", {}, DIMS)
    x, y = (np.vectorize(Fraction, otypes=[object])(a.data) for a in run.args)
    spread = expand(x if swapped else y, into)
    operands = (spread, y) if swapped else (x, spread)
    exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op](*operands)
    with mp.workprec(BITS + 200):
        assert agree(run.value, [mpmath.mpf(q.numerator) / q.denominator for q in exact.ravel()], DIGITS)


def expand(x: Any, into: str) -> Any:
    """`ba->1ab`: transpose and put axes of length 1."""
    source, target = into.split("->")
    order = [source.index(c) for c in target if c != "1"]
    return x.transpose(order)[tuple(None if c == "1" else slice(None) for c in target)]


@pytest.mark.parametrize("kernel", ["balls", "mpmath"])
def test_contractions_against_sums_written_out(kernel: Any):
    text = """
fn f{A B K N M}(x : ℝ[a: A, b: B, K], w : ℝ[K, n: N, m: M], ct : ℝ[a: A, b: B, n: N, m: M])
    -> (ℝ[a: A, b: B, n: N, m: M], ℝ[a: A, b: B, K], ℝ[K, n: N, m: M]) {
  y : ℝ[a: A, b: B, n: N, m: M] = dot x, w
  dx : ℝ[a: A, b: B, K] = dot_vjp_l ct, w
  dw : ℝ[K, n: N, m: M] = dot_vjp_r x, ct
  r : (ℝ[a: A, b: B, n: N, m: M], ℝ[a: A, b: B, K], ℝ[K, n: N, m: M]) = (y, dx, dw)
  return r
}"""
    run = run_exact(program(text), "f", {}, {"A": 2, "B": 1, "K": 3, "N": 2, "M": 2}, options=Options(kernel=kernel))
    x, w, ct = (np.vectorize(Fraction, otypes=[object])(a.data) for a in run.args)
    exact = [
        np.tensordot(x, w, axes=(2, 0)),
        np.tensordot(ct, w, axes=((2, 3), (1, 2))),
        np.tensordot(x, ct, axes=((0, 1), (0, 1))),
    ]
    flat = [q for a in exact for q in a.ravel()]
    with mp.workprec(BITS + 200):
        assert agree(run.value, [mpmath.mpf(q.numerator) / q.denominator for q in flat], DIGITS)


FULL, PAIR = "ℝ[a: A, b: B, c: C]", "ℝ[a: A, c: C]"
REDUCED = f"(ℝ[], ℝ[], {PAIR}, {PAIR}, {FULL}, {FULL}, ℝ[c: C, b: B], {FULL}, {FULL})"
REDUCTIONS = f"""
fn f{{A B C}}(x : {FULL}, t : ℝ[c: C, b: B], s : ℝ[], r : {PAIR}) -> {REDUCED} {{
  all : ℝ[] = sum x
  mean_all : ℝ[] = mean x
  over_b : {PAIR} = sum axis b x
  mean_b : {PAIR} = mean axis b x
  vjp : {FULL} = mean_vjp s, x
  vjp_b : {FULL} = mean_vjp axis b r, x
  back : ℝ[c: C, b: B] = sum_to x, t
  like : {FULL} = broadcast_like t, x
  like_b : {FULL} = broadcast_like axis b r, x
  out : {REDUCED} = (all, mean_all, over_b, mean_b, vjp, vjp_b, back, like, like_b)
  return out
}}"""


@pytest.mark.parametrize("kernel", ["balls", "mpmath"])
def test_reductions_and_their_adjoints(kernel: Any):
    run = run_exact(program(REDUCTIONS), "f", {}, {"A": 2, "B": 3, "C": 2}, options=Options(kernel=kernel))
    x, t, s, r = (np.vectorize(Fraction, otypes=[object])(a.data) for a in run.args)
    full = np.full(x.shape, Fraction(1))
    exact = [
        x.sum(), x.sum() / 12, x.sum(axis=1), x.sum(axis=1) / 3, full * s / 12, full * r[:, None, :] / 3,
        x.sum(axis=0).T, full * t.T, full * r[:, None, :],
    ]  # fmt: skip
    flat = [q for a in exact for q in np.asarray(a, dtype=object).ravel()]
    with mp.workprec(BITS + 200):
        assert agree(run.value, [mpmath.mpf(q.numerator) / q.denominator for q in flat], DIGITS)


@settings(max_examples=40, deadline=None)
@given(
    q=st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**9),
    digits=st.integers(1, 77),
)
def test_rational_results_are_rounded_as_decimal_rounds(q: Fraction, digits: int):
    text = "fn f(x : ℝ[]) -> ℝ[] {\n  y : ℝ[] = neg x\n  return y\n}"
    run = run_exact(program(text), "f", {"x": -q}, {}, options=Options(digits=digits))
    scaled = mpmath.mpf(0)
    with mp.workprec(1000):
        scaled = mpmath.mpf(q.numerator) / q.denominator
    expected = nearest(scaled, digits) if not tie(q, digits) else None
    if expected is not None:
        assert decimals(run.value) == [expected]


def tie(q: Fraction, digits: int) -> bool:
    """Whether `q` lies in the middle of two decimals of so many digits: mpmath's rounded quotient would not show it."""
    if q == 0:
        return False
    lead = math.floor(math.log10(abs(q))) if abs(q) > Fraction(1, 10**300) else -300
    return any((q * Fraction(10) ** (digits - e) * 2).denominator == 1 for e in (lead, lead + 1))
