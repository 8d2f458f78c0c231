"""Stacks written as their calls: the same weights at several places of one straight line, and slices of stacks of
zeros."""

from pathlib import Path

import pytest

from presk_rel.session import Session

TEXT = """
dim B
dim D

type Acts = ℝ[batch: B, model: D]

module Step {
  param w : ℝ[D, D]  init = xavier_uniform
  fn apply(x : Acts, e : ℝ[model: D]) -> Acts = x + tanh(x · w) * e
}

module Twice {
  use steps : stack{3}(Step)
  fn apply(x : Acts, e : ℝ[model: D]) -> Acts = steps.apply(steps.apply(x, e), e) - steps.apply(x, e)
}

fn same_weights(θ : params Twice, x : Acts, e : ℝ[model: D]) -> ℝ[model: D] =
  grad(λ e. mean(Twice.apply(θ, x, e)^2))(e)

module Gate {
  param v : ℝ[D]  init = ones
  fn apply(x : Acts, a : Acts, _c : Acts) -> Acts = x + tanh(a * v) + a * x
}

module Gates {
  use gates : stack{2}(Gate)
  fn apply(x : Acts, a : Acts) -> Acts = gates.apply(x, a, x)
}

fn zero_slices(θ : params Gates, x : Acts, a : Acts) -> Acts =
  grad(λ x. sum(grad(λ a. mean(Gates.apply(θ, x, a)^2))(a)^2))(x)
"""


@pytest.mark.parametrize("entry", ["same_weights", "zero_slices"])
def test_an_unrolled_stack_is_optimized_and_verified(entry: str, tmp_path: Path):
    """`same_weights`: kernels of operations far apart make no circle, and sums that are put in order make new terms."""
    path = tmp_path / "program.psk"
    path.write_text(TEXT, encoding="utf-8")
    verdict = Session(str(path), engine="embedded", unroll_stack=True).verified(entry)
    assert verdict.accepted, verdict.summary()
