"""Folds whose accumulators, slices and extras hold what has no cotangent: keys, indices, masks."""

from __future__ import annotations

import random

import mpmath as mp
import pytest

from presk_rel.ad.graph import callees_first
from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Fold, Prim, Program
from tests.ad.check import BITS, check_duality, check_gradient, with_directional, with_gradient, with_operators
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import flat, random_value
from tests.ad.programs import read

DIMS = {"B": 2, "D": 3, "L": 3, "V": 4}

DROPOUT = """
module Layer{D} {
  param w : ℝ[D, D]  init = zeros
}
module Tower{D L} {
  use blocks : stack{L}(Layer{D})
}
fn Layer.apply{D B}(θ : params Layer{D}, s : (ℝ[batch: B, model: D], key)) -> (ℝ[batch: B, model: D], key) uses Rand {
  x : ℝ[batch: B, model: D] = s.0
  k : key = s.1
  %4 : (key, key) = split_key 2 k
  k1 : key = %4.0
  k2 : key = %4.1
  w : ℝ[D, D] = θ.w
  %8 : ℝ[batch: B, D] = dot x, w
  %9 : ℝ[batch: B, model: D] = tanh %8
  %10 : ℝ[batch: B, model: D] = dropout_mask 0.5 k1, %9
  %11 : ℝ[batch: B, model: D] = mul %9, %10
  %12 : ℝ[batch: B, model: D] = add x, %11
  %13 : (ℝ[batch: B, model: D], key) = (%12, k2)
  return %13
}
fn loss{D B L}(x : ℝ[batch: B, model: D], k : key, θ : params Tower{D, L}) -> ℝ[] uses Rand {
  blocks : params stack{L}(Layer{D}) = θ.blocks
  %4 : (ℝ[batch: B, model: D], key) = (x, k)
  %5 : (ℝ[batch: B, model: D], key) = fold L Layer.apply{D = D, B = B}(stacked blocks; acc %4)
  %6 : ℝ[batch: B, model: D] = %5.0
  %7 : ℝ[batch: B, model: D] = pow 2 %6
  %8 : ℝ[] = mean %7
  return %8
}
"""

UNROLLED = (
    DROPOUT[: DROPOUT.index("fn loss")]
    + """
fn loss{D B L}(x : ℝ[batch: B, model: D], k : key, θ : params Tower{D, 3}) -> ℝ[] uses Rand {
  blocks : params stack{3}(Layer{D}) = θ.blocks
  a0 : (ℝ[batch: B, model: D], key) = (x, k)
  p0 : params Layer{D} = slice_params 0 blocks
  a1 : (ℝ[batch: B, model: D], key) = call Layer.apply{D = D, B = B}(p0, a0)
  p1 : params Layer{D} = slice_params 1 blocks
  a2 : (ℝ[batch: B, model: D], key) = call Layer.apply{D = D, B = B}(p1, a1)
  p2 : params Layer{D} = slice_params 2 blocks
  a3 : (ℝ[batch: B, model: D], key) = call Layer.apply{D = D, B = B}(p2, a2)
  y : ℝ[batch: B, model: D] = a3.0
  %12 : ℝ[batch: B, model: D] = pow 2 y
  %13 : ℝ[] = mean %12
  return %13
}
"""
)

CHOICES = """
fn body{D V}(i : idx[V][], s : ℝ[D], a : (ℝ[D], idx[V][], bool[D]), w : ℝ[V, D], t : idx[V][2], m : bool[D], n : nat)
    -> (ℝ[D], idx[V][], bool[D]) {
  x : ℝ[D] = a.0
  j : idx[V][] = a.1
  before : bool[D] = a.2
  %10 : ℝ[D] = embed w, i
  %11 : ℝ[D] = embed w, j
  %12 : ℝ[2, D] = embed w, t
  %13 : ℝ[D] = sum_to %12, x
  %14 : ℝ[D] = mul %10, %11
  %15 : ℝ[D] = add %14, %13
  %16 : ℝ[D] = mul %15, s
  %17 : ℝ[d: D] = sin %16
  y : ℝ[d: D] = softmax axis d %17, m
  z : ℝ[d: D] = softmax axis d y, before
  %20 : ℝ[] = real n
  %21 : ℝ[d: D] = mul z, %20
  %22 : ℝ[D] = add x, %21
  now : bool[D] = le %16, x
  %24 : (ℝ[D], idx[V][], bool[D]) = (%22, i, now)
  return %24
}
fn loss{D L V}(is : idx[V][L], j : idx[V][], t : idx[V][2], m : bool[D], n : nat, p : (ℝ[L, D], ℝ[D], ℝ[V, D])) -> ℝ[] {
  s : ℝ[L, D] = p.0
  x : ℝ[D] = p.1
  table : ℝ[V, D] = p.2
  %9 : (ℝ[D], idx[V][], bool[D]) = (x, j, m)
  %10 : (ℝ[D], idx[V][], bool[D]) = fold L body{D = D, V = V}(stacked is, s; acc %9; table, t, m, n)DIRECTION
  %11 : ℝ[D] = %10.0
  %12 : idx[V][] = %10.1
  %13 : ℝ[D] = embed table, %12
  %14 : ℝ[D] = mul %11, %13
  %15 : ℝ[] = sum %14
  return %15
}
"""

SCANNED = """
fn body{D}(s : ℝ[D], a : (ℝ[D], key)) -> (ℝ[D], key) uses Rand {
  x : ℝ[D] = a.0
  k : key = a.1
  %4 : ℝ[D] = dropout_mask 0.25 k, x
  %5 : ℝ[D] = mul x, %4
  %6 : ℝ[D] = mul %5, s
  %7 : ℝ[D] = sin %6
  %8 : (key, key) = split_key 2 k
  k2 : key = %8.1
  %10 : (ℝ[D], key) = (%7, k2)
  return %10
}
fn again{D}(a : (ℝ[D], key), e : ℝ[D], c : ℝ[D]) -> ℝ[D] uses Rand {
  x : ℝ[D] = a.0
  k : key = a.1
  %5 : ℝ[D] = dropout_mask 0.5 k, e
  %6 : ℝ[D] = mul %5, c
  %7 : ℝ[D] = mul %6, x
  %8 : ℝ[D] = add %7, e
  return %8
}
fn loss{D L}(k : key, p : (ℝ[L, D], ℝ[D])) -> ℝ[] uses Rand {
  s : ℝ[L, D] = p.0
  x : ℝ[D] = p.1
  %4 : (ℝ[D], key) = (x, k)
  %5 : ((ℝ[D], key), (ℝ[L, D], key[L])) = fold L body{D = D}(stacked s; acc %4) scan
  last : (ℝ[D], key) = %5.0
  all : (ℝ[L, D], key[L]) = %5.1
  end : ℝ[D] = last.0
  %9 : ℝ[D] = fold L again{D = D}(stacked all; acc x; end)
  %10 : ℝ[] = mean %9
  return %10
}
"""

TEXTS = {
    "a stacked module that drops": DROPOUT,
    "indices, masks and a hyperparameter": CHOICES.replace("DIRECTION", ""),
    "indices, masks and a hyperparameter, reverse": CHOICES.replace("DIRECTION", " reverse"),
    "a stack of keys as slices of a fold": SCANNED,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_gradient_is_the_central_difference_and_store_changes_no_bit(name: str):
    p = read(TEXTS[name])
    _, kept = check_gradient(p, "loss", DIMS, remat="store")
    _, computed = check_gradient(p, "loss", DIMS, remat="recompute")
    assert flat(kept) == flat(computed)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_the_second_derivative_is_the_central_difference_of_the_first(name: str, remat: Remat):
    p = read(TEXTS[name])
    check_gradient(with_directional(p, "loss"), "loss∂", DIMS, remat=remat)


@pytest.mark.parametrize("name", TEXTS)
def test_forward_mode_is_dual_to_reverse_mode(name: str):
    check_duality(read(TEXTS[name]), "loss", DIMS)


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_each_layer_drops_by_its_own_key(remat: Remat):
    """The fold's gradient is that of the calls it stands for, and layers do drop differently."""
    with mp.workprec(BITS):
        folded, _ = check_gradient(read(DROPOUT), "loss", DIMS, remat=remat)
        unrolled, _ = check_gradient(read(UNROLLED), "loss", DIMS, remat=remat)
        f = folded.functions["loss"]
        rng = random.Random(2)
        args = [random_value(folded, p.type, DIMS, (), lambda: mp.mpf(rng.random())) for p in f.params]
        a, b = (flat(evaluate(p, "loss∇", DIMS, args)) for p in (folded, unrolled))
        assert a == b
        masks = [v == 0 for v in a]
        assert any(masks) and masks[0:9] != masks[9:18]


@pytest.mark.parametrize("depth", [0, 1])
def test_a_stack_of_no_or_one_layer_has_a_gradient(depth: int):
    p: Program = with_operators(read(DROPOUT), "loss")
    check_gradient(p, "loss", DIMS | {"L": depth}, remat="store")


def test_store_runs_the_forward_pass_of_a_layer_once():
    done = differentiate(with_gradient(read(DROPOUT), "loss"), "store")
    layer = [n for n in callees_first(done.functions, ["loss∇"]) if n.startswith("Layer")]
    assert sorted(layer) == ["Layer.apply.bwd", "Layer.apply.fold_bwd_kept", "Layer.apply.fold_fwd", "Layer.apply.fwd"]
    draws = [n for n in layer for b in done.functions[n].bindings if isinstance(b.op, Prim) and b.op.op == "tanh"]
    assert draws == ["Layer.apply.fwd"]


def test_the_keys_of_the_layers_are_stacked():
    done = differentiate(with_gradient(read(DROPOUT), "loss"), "recompute")
    (scan,) = (b for b in done.functions["loss.vjp"].bindings if isinstance(b.op, Fold) and b.op.body == "Layer.apply")
    assert str(scan.type) == "((ℝ[batch: B, model: D], key), (ℝ[L, batch: B, model: D], key[L]))"
