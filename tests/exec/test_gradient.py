"""The perceptron's gradient: against central differences, and against backpropagation written out in mpmath."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from mpmath import mp

from presk_rel.core.ir import Program
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.values import Tensor, TreeValue, Value
from presk_rel.session import Session

from .central import worst_component
from .oracle import agree, texts
from .programs import MLP, program

DIMS = {"B": 2, "D": 4}


EXAMPLE = Path(__file__).parents[2] / "examples" / "mlp.psk"


@pytest.fixture(scope="module")
def mlp() -> Program:
    return program(MLP)


@pytest.fixture(scope="module", params=["store", "recompute"])
def example(request: pytest.FixtureRequest) -> Program:
    """The example through parser, checker, lowering and differentiation."""
    return Session(str(EXAMPLE), remat=request.param).differentiated


@pytest.fixture(scope="module")
def optimized() -> Program:
    return Session(str(EXAMPLE)).optimized("mse_grad", DIMS).program


def test_the_gradient_agrees_with_central_differences_to_2_to_the_minus_100(mlp: Program):
    assert worst_component(mlp, "mse", "mse_grad", wrt="θ", dims=DIMS) < Fraction(1, 2**100)


def test_the_examples_gradient_agrees_with_central_differences(example: Program):
    assert worst_component(example, "mse", "mse_grad", wrt="θ", dims=DIMS) < Fraction(1, 2**100)


def test_a_wrong_gradient_does_not(mlp: Program):
    """The check can fail: twice the gradient is far off."""
    text = MLP.replace("%6 : ℝ[] = mean %5", "%6 : ℝ[] = sum %5")
    wrong = Program(mlp.modules, {**mlp.functions, "mse_grad": program(text).functions["mse_grad"]})
    wrong = Program(wrong.modules, {**program(text).functions, "mse": mlp.functions["mse"]})
    assert worst_component(wrong, "mse", "mse_grad", wrt="θ", dims={"B": 1, "D": 2}) > Fraction(1, 1000)


def matrix(value: Value) -> Any:
    assert isinstance(value, Tensor)
    rows = value.data.tolist()
    return mpmath.matrix(rows if isinstance(rows[0], list) else [rows])


def backpropagation(args: tuple[Value, ...]) -> list[Any]:
    """∂/∂θ of mean((gelu(x·w₁ + b₁)·w₂ + b₂ - y)²), in order w₁, b₁, w₂, b₂."""
    θ, x, y = args
    assert isinstance(θ, TreeValue)
    l1, l2 = θ.fields["l1"], θ.fields["l2"]
    assert isinstance(l1, TreeValue)
    assert isinstance(l2, TreeValue)
    w1, b1, w2, b2 = (matrix(v) for v in (l1.fields["w"], l1.fields["b"], l2.fields["w"], l2.fields["b"]))
    x, y = matrix(x), matrix(y)
    ones = mpmath.ones(x.rows, 1)
    h = x * w1 + ones * b1
    a = h.apply(lambda t: t * mpmath.ncdf(t))
    error = a * w2 + ones * b2 - y
    d_out = error * (mpmath.mpf(2) / (x.rows * y.cols))
    d_a = d_out * w2.T
    slope = h.apply(lambda t: mpmath.ncdf(t) + t * mpmath.npdf(t))
    d_h = mpmath.matrix(h.rows, h.cols)
    for i in range(h.rows):
        for j in range(h.cols):
            d_h[i, j] = d_a[i, j] * slope[i, j]
    parts = [x.T * d_h, ones.T * d_h, a.T * d_out, ones.T * d_out]
    return [p[i, j] for p in parts for i in range(p.rows) for j in range(p.cols)]


@pytest.mark.parametrize("bits", [24, 128, 256])
def test_every_digit_agrees_with_backpropagation_in_mpmath(mlp: Program, bits: int):
    run = run_exact(mlp, "mse_grad", {}, DIMS, options=Options(bits=bits))
    with mp.workprec(bits + 200):
        assert agree(run.value, backpropagation(run.args), run.digits)


def test_the_examples_digits_are_the_same_and_so_are_the_optimized_ones(
    mlp: Program, example: Program, optimized: Program
):
    results = [run_exact(p, "mse_grad", {}, DIMS) for p in (mlp, example, optimized)]
    with mp.workprec(456):
        assert all(agree(r.value, backpropagation(r.args), 77) for r in results)
    assert texts(results[0].value) == texts(results[1].value) == texts(results[2].value)
