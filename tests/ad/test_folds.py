"""Folds in reverse: stacked parameters, tensors, extras, tuples as accumulators, folds that run backwards or scan."""

from __future__ import annotations

import pytest

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Program
from presk_rel.diagnostics import Diagnostic, PreskError
from tests.ad.check import check_duality, check_gradient, with_directional
from tests.ad.interpreter_values import flat
from tests.ad.programs import read

DIMS = {"B": 2, "D": 2, "L": 3}

TOWER = """
module Layer{D} {
  param w : ℝ[D, D]  init = zeros
  param b : ℝ[D]  init = zeros
}
module Tower{D L} {
  param head : ℝ[D]  init = zeros
  use blocks : stack{L}(Layer{D})
}
fn Layer.apply{D B}(θ : params Layer{D}, x : ℝ[batch: B, model: D], s : ℝ[]) -> ℝ[batch: B, model: D] {
  w : ℝ[D, D] = θ.w
  %4 : ℝ[batch: B, D] = dot x, w
  b : ℝ[D] = θ.b
  %6 : ℝ[batch: B, D] = add %4, b
  %7 : ℝ[batch: B, D] = tanh %6
  %8 : ℝ[batch: B, D] = mul %7, s
  %9 : ℝ[batch: B, model: D] = add %8, x
  return %9
}
fn loss{D B L}(x : ℝ[batch: B, model: D], s : ℝ[], θ : params Tower{D, L}) -> ℝ[] {
  blocks : params stack{L}(Layer{D}) = θ.blocks
  y : ℝ[batch: B, model: D] = fold L Layer.apply{D = D, B = B}(stacked blocks; acc x; s)
  head : ℝ[D] = θ.head
  %6 : ℝ[batch: B, model: D] = mul y, head
  %7 : ℝ[batch: B, model: D] = pow 2 %6
  %8 : ℝ[] = mean %7
  return %8
}
fn loss_x{D B L}(θ : params Tower{D, L}, p : (ℝ[batch: B, model: D], ℝ[])) -> ℝ[] {
  %2 : ℝ[batch: B, model: D] = p.0
  %3 : ℝ[] = p.1
  %4 : ℝ[] = call loss{D = D, B = B, L = L}(%2, %3, θ)
  return %4
}
"""

TUPLE = """
fn body{D}(s : ℝ[D], t : ℝ[], p : (ℝ[D], ℝ[]), e : ℝ[D], g : ℝ[]) -> (ℝ[D], ℝ[]) {
  a : ℝ[D] = p.0
  c : ℝ[] = p.1
  %7 : ℝ[D] = mul a, s
  %8 : ℝ[D] = sin %7
  %9 : ℝ[D] = add %8, e
  %10 : ℝ[D] = mul %9, g
  %11 : ℝ[] = mean %10
  %12 : ℝ[] = mul %11, c
  %13 : ℝ[] = add %12, t
  %14 : (ℝ[D], ℝ[]) = (%9, %13)
  return %14
}
fn loss{D L}(s : ℝ[L, D], p : ((ℝ[L, D], ℝ[L]), (ℝ[D], ℝ[]), ℝ[D], ℝ[])) -> ℝ[] {
  st : (ℝ[L, D], ℝ[L]) = p.0
  %3 : ℝ[L, D] = st.0
  %4 : ℝ[L] = st.1
  a : (ℝ[D], ℝ[]) = p.1
  e : ℝ[D] = p.2
  g : ℝ[] = p.3
  %8 : (ℝ[D], ℝ[]) = fold L body{D = D}(stacked %3, %4; acc a; e, g)DIRECTION
  %9 : ℝ[D] = %8.0
  %10 : ℝ[] = %8.1
  %11 : ℝ[] = sum %9
  %12 : ℝ[] = mul %11, %10
  return %12
}
"""

SCAN = """
fn body{D}(s : ℝ[D], a : ℝ[D]) -> ℝ[D] {
  %2 : ℝ[D] = mul s, a
  %3 : ℝ[D] = sin %2
  return %3
}
fn loss{D L}(c : ℝ[L, D], p : (ℝ[L, D], ℝ[D])) -> ℝ[] {
  s : ℝ[L, D] = p.0
  a : ℝ[D] = p.1
  both : (ℝ[D], ℝ[L, D]) = fold L body{D = D}(stacked s; acc a) DIRECTION
  %5 : ℝ[D] = both.0
  %6 : ℝ[L, D] = both.1
  %7 : ℝ[L, D] = mul %6, c
  %8 : ℝ[L, D] = mul %7, %5
  %9 : ℝ[] = sum %8
  return %9
}
"""

GENERIC = """
module Layer{D} {
  param w : ℝ[D, D]  init = zeros
  param b : ℝ[D]  init = zeros
}
module Tower{D L} {
  use blocks : stack{L}(Layer{D})
}
fn Layer.apply{D}(θ : params Layer{D}, x : ℝ[..., D], s : ℝ[...]) -> ℝ[..., D] {
  w : ℝ[D, D] = θ.w
  %4 : ℝ[..., D] = dot x, w
  %5 : ℝ[..., D] = tanh %4
  b : ℝ[D] = θ.b
  %7 : ℝ[..., D] = add %5, b
  %8 : ℝ[..., D] = broadcast_like s, %7
  %9 : ℝ[..., D] = mul %7, %8
  return %9
}
fn Tower.apply{D L}(θ : params Tower{D, L}, x : ℝ[..., D], s : ℝ[...]) -> ℝ[..., D] {
  blocks : params stack{L}(Layer{D}) = θ.blocks
  y : ℝ[..., D] = fold L Layer.apply{D = D}(stacked blocks; acc x; s)
  %5 : ℝ[..., D] = fold L Layer.apply{D = D}(stacked blocks; acc y; s)
  return %5
}
fn twice{D L}(θ : params Tower{D, L}, x : ℝ[..., D], s : ℝ[...]) -> ℝ[..., D] {
  %3 : ℝ[..., D] = call Tower.apply{D = D, L = L}(θ, x, s)
  %4 : ℝ[..., D] = mul %3, x
  return %4
}
fn loss{D B L}(x : ℝ[batch: B, D], s : ℝ[batch: B], p : (params Tower{D, L}, ℝ[D])) -> ℝ[] {
  θ : params Tower{D, L} = p.0
  v : ℝ[D] = p.1
  one : ℝ[] = const 1
  %6 : ℝ[batch: B, D] = call twice{D = D, L = L}(θ, x, s)
  %7 : ℝ[D] = call twice{D = D, L = L}(θ, v, one)
  %8 : ℝ[batch: B, D] = mul %6, %7
  %9 : ℝ[] = mean %8
  return %9
}
"""

PROGRAMS = {
    "any number of leading axes": (GENERIC, "loss"),
    "parameters of a tower": (TOWER, "loss"),
    "input and extra of a tower": (TOWER, "loss_x"),
    "tuples": (TUPLE.replace("DIRECTION", ""), "loss"),
    "tuples, reverse": (TUPLE.replace("DIRECTION", " reverse"), "loss"),
    "scan": (SCAN.replace("DIRECTION", "scan"), "loss"),
    "scan, reverse": (SCAN.replace("DIRECTION", "reverse scan"), "loss"),
}


def program(name: str) -> tuple[Program, str]:
    text, of = PROGRAMS[name]
    return read(text), of


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_the_central_difference_and_store_changes_no_bit(name: str):
    p, of = program(name)
    _, kept = check_gradient(p, of, DIMS, remat="store")
    _, computed = check_gradient(p, of, DIMS, remat="recompute")
    assert flat(kept) == flat(computed)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_the_second_derivative_is_the_central_difference_of_the_first(name: str, remat: Remat):
    p, of = program(name)
    check_gradient(with_directional(p, of), f"{of}∂", DIMS, remat=remat)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_mode_is_dual_to_reverse_mode(name: str):
    p, of = program(name)
    check_duality(p, of, DIMS)


def refusal(text: str) -> Diagnostic:
    with pytest.raises(PreskError) as refused:
        differentiate(read(text))
    (said,) = refused.value.diagnostics
    assert said.code == "E6002"
    assert refused.value.exit_status == 1
    return said


OPEN = f"""{GENERIC[: GENERIC.index("fn loss")]}
fn loss{{D L}}(x : ℝ[..., D], s : ℝ[...], p : (params Tower{{D, L}}, ℝ[..., D])) -> ℝ[] {{
  θ : params Tower{{D, L}} = p.0
  v : ℝ[..., D] = p.1
  %5 : ℝ[..., D] = call twice{{D = D, L = L}}(θ, x, s)
  %6 : ℝ[..., D] = call twice{{D = D, L = L}}(θ, v, s)
  %7 : ℝ[..., D] = mul %5, %6
  %8 : ℝ[] = mean %7
  return %8
}}
"""
"""No caller says how many leading axes there are: the stacks of the accumulators have the type ℝ[L, ..., D]."""


@pytest.mark.parametrize("lead", [(), (2,), (2, 1, 3)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_leading_axes_that_stay_open(lead: tuple[int, ...], count: int):
    p, dims = read(OPEN), DIMS | {"L": count}
    _, kept = check_gradient(p, "loss", dims, lead=lead, remat="store")
    _, again = check_gradient(p, "loss", dims, lead=lead, remat="recompute")
    assert flat(kept) == flat(again)
    check_duality(p, "twice", dims, lead=lead)


def test_leading_axes_that_stay_open_twice_differentiated():
    check_gradient(with_directional(read(OPEN), "loss"), "loss∂", DIMS | {"L": 2}, lead=(2,), remat="store")


def test_a_hyperparameter_in_the_accumulator_is_refused_with_the_reason():
    said = refusal("""
fn body{D}(s : ℝ[D], a : (ℝ[D], nat)) -> (ℝ[D], nat) {
  %2 : ℝ[D] = a.0
  n : nat = a.1
  %4 : ℝ[D] = mul %2, s
  %5 : (ℝ[D], nat) = (%4, n)
  return %5
}
fn loss{D L}(s : ℝ[L, D], n : nat, x : ℝ[D]) -> ℝ[] {
  %3 : (ℝ[D], nat) = (x, n)
  %4 : (ℝ[D], nat) = fold L body{D = D}(stacked s; acc %3)
  %5 : ℝ[D] = %4.0
  %6 : ℝ[] = mean %5
  return %6
}
fn main{D L}(s : ℝ[L, D], n : nat, x : ℝ[D]) -> ℝ[D] {
  %3 : (ℝ[D]) -> ℝ[] = closure loss{D = D, L = L}[s, n]
  %4 : (ℝ[D]) -> ℝ[D] = grad %3
  %5 : ℝ[D] = apply %4(x)
  return %5
}
""")
    assert "a hyperparameter (nat)" in said.message
