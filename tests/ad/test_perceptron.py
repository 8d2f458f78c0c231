"""The perceptron of the spec: its derivatives by number, and as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Function, Program
from presk_rel.core.printer import print_function, print_program
from presk_rel.core.reader import load
from presk_rel.core.verify import verify
from presk_rel.diagnostics import Diagnostics
from tests.ad.check import check_gradient, with_directional
from tests.ad.programs import mlp

GOLDEN = Path(__file__).parent / "golden"

LINEAR_VJP = """\
fn Linear.apply.vjp{In Out}(θ : params Linear{In, Out}, x : ℝ[..., In], ct : ℝ[..., Out])
    -> (params Linear{In, Out}, ℝ[..., In]) {
  w : ℝ[In, Out] = θ.w
  b : ℝ[Out] = θ.b
  %8 : ℝ[Out] = sum_to ct, b
  %9 : params Linear{In, Out} = zeros_like θ
  %10 : params Linear{In, Out} = set_field b %9, %8
  %11 : ℝ[..., In] = dot_vjp_l ct, w
  %12 : ℝ[In, Out] = dot_vjp_r x, ct
  %13 : params Linear{In, Out} = zeros_like θ
  %14 : params Linear{In, Out} = set_field w %13, %12
  %15 : params Linear{In, Out} = add %10, %14
  %16 : (params Linear{In, Out}, ℝ[..., In]) = (%15, %11)
  return %16
}"""


def bare(function: Function, program: Program) -> str:
    """The text without provenance comments."""
    return re.sub(r" +-- .*", "", print_function(function, program))


def test_the_vjp_of_a_linear_layer_is_the_excerpt_of_the_spec():
    done = differentiate(mlp(), "recompute")
    assert bare(done.functions["Linear.apply.vjp"], done) == LINEAR_VJP


def test_a_binding_says_what_it_was_made_for():
    notes = {b.name: b.note for b in differentiate(mlp(), "recompute").functions["Linear.apply.vjp"].bindings}
    assert notes["b"] == "primal b, kept"
    assert notes["%8"] == "adjoint of %5 (add)"
    assert notes["%9"] == notes["%10"] == "adjoint of b (field)"
    assert notes["%11"] == notes["%12"] == "adjoint of %3 (dot)"


def test_cotangents_no_caller_reads_are_not_computed():
    done = differentiate(mlp(), "recompute")
    for name in ("mse_grad.lambda0.vjp", "mse.vjp"):
        assert str(done.functions[name].result) == "(params MLP{D, 4*D},)"
    assert str(done.functions["MLP.apply.vjp"].result) == "(params MLP{D, hidden},)"


def test_functions_off_the_differentiated_path_are_as_they_were():
    before = mlp()
    after = differentiate(before, "recompute")
    for name in ("Linear.apply", "MLP.apply", "mse", "mse_grad.lambda0"):
        assert after.functions[name] is before.functions[name]


@pytest.mark.parametrize("remat", ["recompute", "store"])
def test_the_whole_program_is_the_golden_text(remat: Remat):
    done = differentiate(mlp(), remat)
    verify(done, "ad")
    text = print_program(done)
    assert text == (GOLDEN / f"mlp_{remat}.core").read_text()
    said = Diagnostics()
    assert load(text, "golden", said) == done, said.items


@pytest.mark.parametrize("remat", ["recompute", "store"])
def test_the_gradient_of_the_loss_is_the_central_difference(remat: Remat):
    check_gradient(mlp(), "mse_grad.lambda0", {"B": 2, "D": 3}, remat=remat)


@pytest.mark.parametrize("remat", ["recompute", "store"])
def test_the_second_derivative_of_the_loss_is_the_central_difference_of_the_gradient(remat: Remat):
    twice = with_directional(mlp(), "mse_grad.lambda0")
    check_gradient(twice, "mse_grad.lambda0∂", {"B": 2, "D": 2}, remat=remat)
