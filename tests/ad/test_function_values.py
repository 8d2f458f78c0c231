"""`grad` of any function value known at compile time: named, captured, passed on, itself a gradient."""

from __future__ import annotations

import pytest

from presk_rel.ad.reverse import differentiate
from presk_rel.core.verify import verify
from presk_rel.diagnostics import PreskError
from tests.ad.check import check_gradient, with_directional
from tests.ad.programs import read

DIMS = {"B": 2, "D": 3}


CAPTURED = """
fn f.lambda0{D}(y : ℝ[D], a : ℝ[D]) -> ℝ[D] {
  %2 : ℝ[D] = mul a, y
  %3 : ℝ[D] = sin %2
  return %3
}
fn f.lambda1{D}(g : (ℝ[D]) -> ℝ[D], x : ℝ[D], θ : ℝ[D]) -> ℝ[] {
  %3 : ℝ[D] = apply g(θ)
  %4 : ℝ[D] = apply g(%3)
  %5 : ℝ[D] = mul %4, x
  %6 : ℝ[] = sum %5
  return %6
}
fn f{D}(x : ℝ[D], y : ℝ[D]) -> ℝ[] {
  g : (ℝ[D]) -> ℝ[D] = closure f.lambda0[y]
  %3 : (ℝ[D]) -> ℝ[] = closure f.lambda1[g, x]
  %4 : (ℝ[D]) -> ℝ[D] = grad %3
  %5 : ℝ[D] = apply %4(y)
  %6 : ℝ[D] = exp %5
  %7 : ℝ[] = sum %6
  return %7
}
"""

GRADIENT_CAPTURED = """
fn f.lambda0{D}(y : ℝ[D], a : ℝ[D]) -> ℝ[] {
  %2 : ℝ[D] = mul a, y
  %3 : ℝ[D] = sin %2
  %4 : ℝ[] = sum %3
  return %4
}
fn f.lambda1{D}(g : (ℝ[D]) -> ℝ[D], θ : ℝ[D]) -> ℝ[] {
  %2 : ℝ[D] = apply g(θ)
  %3 : ℝ[D] = mul %2, θ
  %4 : ℝ[] = sum %3
  return %4
}
fn f{D}(x : ℝ[D], y : ℝ[D]) -> ℝ[] {
  %2 : (ℝ[D]) -> ℝ[] = closure f.lambda0[x]
  g : (ℝ[D]) -> ℝ[D] = grad %2
  %4 : (ℝ[D]) -> ℝ[] = closure f.lambda1[g]
  h : (ℝ[D]) -> ℝ[D] = grad %4
  %6 : ℝ[D] = apply h(y)
  %7 : ℝ[] = sum %6
  return %7
}
"""

PASSED = """
fn square{D}(c : ℝ[D], x : ℝ[D]) -> ℝ[] {
  %2 : ℝ[D] = pow 3 x
  %3 : ℝ[D] = mul %2, c
  %4 : ℝ[] = sum %3
  return %4
}
fn step{N}(f : (ℝ[N]) -> ℝ[], x : ℝ[N]) -> ℝ[N] {
  g : (ℝ[N]) -> ℝ[N] = grad f
  %3 : ℝ[N] = apply g(x)
  %4 : ℝ[N] = sub x, %3
  return %4
}
fn f{D}(c : ℝ[D], x : ℝ[D]) -> ℝ[] {
  %2 : (ℝ[D]) -> ℝ[] = closure square[c]
  %3 : ℝ[D] = call step{N = D}(%2, x)
  %4 : ℝ[D] = call step{N = D}(%2, %3)
  %5 : ℝ[] = sum %4
  return %5
}
"""

TUPLED = """
fn f.lambda0{D}(y : ℝ[D], a : ℝ[D]) -> ℝ[] {
  %2 : ℝ[D] = mul a, y
  %3 : ℝ[] = mean %2
  return %3
}
fn f{D}(x : ℝ[D], y : ℝ[D]) -> ℝ[] {
  %2 : (ℝ[D]) -> ℝ[] = closure f.lambda0[x]
  %3 : (ℝ[D], (ℝ[D]) -> ℝ[]) = (y, %2)
  %4 : (ℝ[D]) -> ℝ[] = %3.1
  %5 : (ℝ[D]) -> ℝ[D] = grad %4
  %6 : ℝ[D] = apply %5(y)
  %7 : ℝ[D] = mul %6, y
  %8 : ℝ[] = sum %7
  return %8
}
"""


RETURNED = """
fn scale.lambda0{D}(y : ℝ[D], z : ℝ[D], a : ℝ[D]) -> ℝ[D] {
  %3 : ℝ[D] = mul a, y
  %4 : ℝ[D] = add %3, z
  %5 : ℝ[D] = sin %4
  return %5
}
fn scale{D}(y : ℝ[D]) -> (ℝ[D]) -> ℝ[D] {
  %1 : ℝ[D] = exp y
  %2 : (ℝ[D]) -> ℝ[D] = closure scale.lambda0[y, %1]
  return %2
}
fn then.lambda0{D}(f : (ℝ[D]) -> ℝ[D], g : (ℝ[D]) -> ℝ[D], x : ℝ[D]) -> ℝ[] {
  %3 : ℝ[D] = apply f(x)
  %4 : ℝ[D] = apply g(%3)
  %5 : ℝ[] = sum %4
  return %5
}
fn then{N}(f : (ℝ[N]) -> ℝ[N], g : (ℝ[N]) -> ℝ[N]) -> (ℝ[N]) -> ℝ[] {
  %2 : (ℝ[N]) -> ℝ[] = closure then.lambda0{D = N}[f, g]
  return %2
}
fn f{D}(c : ℝ[D], x : ℝ[D]) -> ℝ[] {
  s : (ℝ[D]) -> ℝ[D] = call scale{D = D}(c)
  t : (ℝ[D]) -> ℝ[D] = call scale{D = D}(x)
  %4 : (ℝ[D]) -> ℝ[] = call then{N = D}(s, t)
  %5 : (ℝ[D]) -> ℝ[D] = grad %4
  %6 : ℝ[D] = apply %5(x)
  %7 : ℝ[] = sum %6
  return %7
}
"""


@pytest.mark.parametrize("text", [RETURNED, CAPTURED, GRADIENT_CAPTURED, PASSED, TUPLED])
def test_function_values_are_seen_through(text: str):
    program = read(text)
    check_gradient(program, "f", DIMS)
    check_gradient(with_directional(program, "f"), "f∂", DIMS)


def test_a_function_value_used_twice_has_one_version():
    done = differentiate(read(PASSED), "recompute")
    assert [n for n in done.functions if n.startswith("step")] == ["step.of0"]


def test_an_unknown_function_is_refused_at_its_grad():
    program = read("""
fn apply_to{D}(f : (ℝ[D]) -> ℝ[], x : ℝ[D]) -> ℝ[D] {
  g : (ℝ[D]) -> ℝ[D] = grad f
  %3 : ℝ[D] = apply g(x)
  return %3
}
fn main{D}(f : (ℝ[D]) -> ℝ[], x : ℝ[D]) -> ℝ[D] {
  %2 : ℝ[D] = call apply_to{D = D}(f, x)
  return %2
}
""")
    # `main` is no entry and nothing calls it: there is nothing to refuse
    assert not differentiate(program).functions


def test_a_gradient_by_something_that_holds_a_key_is_refused_with_the_reason():
    program = read("""
fn draw(p : (ℝ[], key)) -> ℝ[] {
  %1 : ℝ[] = p.0
  return %1
}
fn main(p : (ℝ[], key)) -> (ℝ[], key) {
  %1 : ((ℝ[], key)) -> ℝ[] = closure draw[]
  %2 : ((ℝ[], key)) -> (ℝ[], key) = grad %1
  %3 : (ℝ[], key) = apply %2(p)
  return %3
}
""")
    with pytest.raises(PreskError) as refused:
        differentiate(program)
    (said,) = refused.value.diagnostics
    assert said.code == "E6002"
    assert "holds a key" in said.message


def test_the_parts_without_a_gradient_are_unit_where_the_type_says_so():
    program = read("""
fn draw(p : (ℝ[], key)) -> ℝ[] {
  %1 : ℝ[] = p.0
  %2 : ℝ[] = mul %1, %1
  return %2
}
fn main(p : (ℝ[], key)) -> (ℝ[], ()) {
  %1 : ((ℝ[], key)) -> ℝ[] = closure draw[]
  %2 : ((ℝ[], key)) -> (ℝ[], ()) = grad %1
  %3 : (ℝ[], ()) = apply %2(p)
  return %3
}
""")
    verify(differentiate(program), "ad")
