"""Folds on torch, as loops and unrolled: forward, reverse, scans, of trees, tuples and keys, and within each other."""

from typing import Any

import pytest

from ..programs import program
from .against import agrees, on_torch

PROGRAM = """
module Linear{In Out} {
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]  init = normal(std = 1)
}
fn layer{D}(θ : params Linear{D, D}, x : ℝ[..., D], s : ℝ[]) -> ℝ[..., D] {
  w : ℝ[D, D] = θ.w
  %4 : ℝ[..., D] = dot x, w
  b : ℝ[D] = θ.b
  %6 : ℝ[..., D] = add %4, b
  %7 : ℝ[..., D] = tanh %6
  %8 : ℝ[..., D] = mul %7, s
  return %8
}
fn forward{B D}(θ : params stack{3}(Linear{D, D}), x : ℝ[batch: B, D], s : ℝ[]) -> ℝ[batch: B, D] {
  %3 : ℝ[batch: B, D] = fold 3 layer{D = D}(stacked θ; acc x; s)
  return %3
}
fn scanned{B D}(θ : params stack{3}(Linear{D, D}), x : ℝ[batch: B, D], s : ℝ[]) -> (ℝ[batch: B, D], ℝ[3, batch: B, D]) {
  %3 : (ℝ[batch: B, D], ℝ[3, batch: B, D]) = fold 3 layer{D = D}(stacked θ; acc x; s) scan
  return %3
}
fn reversed{B D}(θ : params stack{3}(Linear{D, D}), x : ℝ[batch: B, D], s : ℝ[])
    -> (ℝ[batch: B, D], ℝ[3, batch: B, D]) {
  %3 : (ℝ[batch: B, D], ℝ[3, batch: B, D]) = fold 3 layer{D = D}(stacked θ; acc x; s) reverse scan
  return %3
}
fn none{B D}(θ : params stack{0}(Linear{D, D}), x : ℝ[batch: B, D], s : ℝ[]) -> (ℝ[batch: B, D], ℝ[0, batch: B, D]) {
  %3 : (ℝ[batch: B, D], ℝ[0, batch: B, D]) = fold 0 layer{D = D}(stacked θ; acc x; s) scan
  return %3
}
fn draw{D}(s : (ℝ[D], key)) -> (ℝ[D], key) uses Rand {
  %1 : key = s.1
  %2 : (key, key) = split_key 2 %1
  %3 : key = %2.0
  %4 : key = %2.1
  %5 : ℝ[D] = normal 1 %3
  %6 : ℝ[D] = s.0
  %7 : ℝ[D] = add %5, %6
  %8 : (ℝ[D], key) = (%7, %4)
  return %8
}
fn draws{D}(x : ℝ[D], k : key) -> ((ℝ[D], key), (ℝ[4, D], key[4])) uses Rand {
  %2 : (ℝ[D], key) = (x, k)
  %3 : ((ℝ[D], key), (ℝ[4, D], key[4])) = fold 4 draw{D = D}(stacked; acc %2) scan
  return %3
}
fn twice{B D}(θ : params stack{3}(Linear{D, D}), x : ℝ[batch: B, D], s : ℝ[]) -> ℝ[batch: B, D] {
  %3 : ℝ[batch: B, D] = fold 3 layer{D = D}(stacked θ; acc x; s)
  return %3
}
fn nested{B D}(θ : params stack{2}(stack{3}(Linear{D, D})), x : ℝ[batch: B, D], s : ℝ[]) -> ℝ[batch: B, D] {
  %3 : ℝ[batch: B, D] = fold 2 twice{B = B, D = D}(stacked θ; acc x; s)
  return %3
}
"""
DIMS = {"B": 2, "D": 3}


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("entry", ["forward", "scanned", "reversed", "none", "draws", "nested"])
def test_fold(entry: str, unroll: Any):
    found = program(PROGRAM)
    dims = {d: n for d, n in DIMS.items() if d in found.functions[entry].dims}
    agrees(found, entry, dims, unroll=unroll)


def test_a_loop_is_written_once_and_counted_as_often_as_it_runs():
    found = program(PROGRAM)
    loop, unrolled = (on_torch(found, "forward", DIMS, {}, unroll=u) for u in (False, True))
    assert loop.source.count("torch.tanh") == 1
    assert unrolled.source.count("torch.tanh") == 3
    assert loop.kernels == unrolled.kernels == 12
