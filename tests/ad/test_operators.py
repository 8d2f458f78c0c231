"""`vjp` and `jvp` as operators of PSK-Core: by value, of each other, of what holds keys, and what is refused."""

from __future__ import annotations

import random

import mpmath as mp
import pytest

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Program
from presk_rel.core.verify import verify
from presk_rel.diagnostics import Diagnostic, PreskError
from tests.ad.check import BITS, check_duality, check_gradient
from tests.ad.interpreter import evaluate
from tests.ad.interpreter_values import Value, flat, random_value
from tests.ad.programs import mlp, read
from tests.ad.test_function_values import CAPTURED, PASSED, RETURNED, TUPLED

DIMS = {"B": 2, "D": 3, "L": 2}

BOTH = """
fn f{D}(c : ℝ[D], x : ℝ[D]) -> ℝ[] {
  %2 : ℝ[D] = mul x, c
  %3 : ℝ[D] = sin %2
  %4 : ℝ[D] = exp %3
  %5 : ℝ[] = mean %4
  %6 : ℝ[] = mul %5, %5
  return %6
}
fn pushed{D}(c : ℝ[D], x : ℝ[D], v : ℝ[D]) -> ℝ[D] {
  %3 : (ℝ[D]) -> ℝ[] = closure f{D = D}[c]
  g : (ℝ[D]) -> ℝ[D] = grad %3
  h : (ℝ[D], ℝ[D]) -> ℝ[D] = jvp g
  %6 : ℝ[D] = apply h(x, v)
  return %6
}
fn pulled{D}(c : ℝ[D], x : ℝ[D], v : ℝ[D]) -> ℝ[D] {
  %3 : (ℝ[D]) -> ℝ[] = closure f{D = D}[c]
  g : (ℝ[D]) -> ℝ[D] = grad %3
  h : (ℝ[D], ℝ[D]) -> ℝ[D] = vjp g
  %6 : ℝ[D] = apply h(x, v)
  return %6
}
fn slope{D}(c : ℝ[D], v : ℝ[D], x : ℝ[D]) -> ℝ[] {
  %3 : (ℝ[D]) -> ℝ[] = closure f{D = D}[c]
  g : (ℝ[D], ℝ[D]) -> ℝ[] = jvp %3
  %5 : ℝ[] = apply g(x, v)
  return %5
}
fn crossed{D}(c : ℝ[D], x : ℝ[D], v : ℝ[D]) -> ℝ[D] {
  %3 : (ℝ[D]) -> ℝ[] = closure slope{D = D}[c, v]
  g : (ℝ[D]) -> ℝ[D] = grad %3
  %5 : ℝ[D] = apply g(x)
  return %5
}
"""


def values(program: Program, name: str, seed: int = 1) -> list[Value]:
    rng = random.Random(seed)
    f = program.functions[name]
    return [random_value(program, p.type, DIMS, (), lambda: mp.mpf(rng.uniform(0.3, 1.4))) for p in f.params]


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_four_ways_to_a_product_of_the_hessian_agree(remat: Remat):
    done = differentiate(read(BOTH), remat)
    verify(done, "ad")
    with mp.workprec(BITS):
        args = values(done, "pushed")
        first, *others = (flat(evaluate(done, name, DIMS, args)) for name in ("pushed", "pulled", "crossed"))
        for other in others:
            assert all(abs(a - b) < mp.mpf(2) ** -280 for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_a_function_that_takes_a_tangent_has_a_gradient(remat: Remat):
    check_gradient(read(BOTH), "slope", DIMS, remat=remat)


@pytest.mark.parametrize("text", [RETURNED, CAPTURED, PASSED, TUPLED])
def test_function_values_are_seen_through(text: str):
    check_duality(read(text), "f", DIMS)


def test_the_perceptron_is_dual_to_itself():
    done = check_duality(mlp(), "MLP.apply", {"D": 2, "hidden": 3}, lead=(2,))
    assert "Linear.apply.jvp" in done.functions


def test_what_does_not_depend_on_the_argument_has_no_tangent():
    done = check_duality(
        read("""
fn g{D}(a : ℝ[D], b : ℝ[D]) -> ℝ[D] {
  %2 : ℝ[D] = sin a
  %3 : ℝ[D] = mul %2, b
  return %3
}
fn f{D}(c : ℝ[D], x : ℝ[D]) -> ℝ[D] {
  %2 : ℝ[D] = call g{D = D}(c, c)
  %3 : ℝ[D] = call g{D = D}(%2, x)
  return %3
}
"""),
        "f",
        DIMS,
    )
    (jvp,) = (f for name, f in done.functions.items() if name.startswith("g.jvp"))
    assert [p.name for p in jvp.params] == ["a", "b", "db"]
    assert not any(b.op == "cos" for b in jvp.bindings)


KEYED = """
fn draw{D}(p : (ℝ[D], key)) -> (ℝ[D], key) uses Rand {
  x : ℝ[D] = p.0
  k : key = p.1
  %3 : ℝ[D] = dropout_mask 0.5 k, x
  %4 : ℝ[D] = mul %3, x
  %5 : ℝ[D] = mul %4, x
  %6 : (ℝ[D], key) = (%5, k)
  return %6
}
"""

KEYED_USE = """
fn main{D}(p : (ℝ[D], key), c : GIVEN) -> RESULT uses Rand {
  %2 : ((ℝ[D], key)) -> (ℝ[D], key) = closure draw{D = D}[]
  %3 : ((ℝ[D], key), GIVEN) -> RESULT = OP %2
  %4 : RESULT = apply %3(p, c)
  return %4
}
"""


def keyed(op: str, given: str, result: str) -> Program:
    return read(KEYED + KEYED_USE.replace("GIVEN", given).replace("RESULT", result).replace("OP", op))


@pytest.mark.parametrize("op", ["vjp", "jvp"])
@pytest.mark.parametrize("given", ["(ℝ[D], ())", "(ℝ[D], key)"])
def test_the_parts_that_are_no_reals_are_unit_in_a_cotangent_and_are_not_read_in_a_given_one(op: str, given: str):
    done = differentiate(keyed(op, given, "(ℝ[D], ())"))
    verify(done, "ad")
    with mp.workprec(BITS):
        value = evaluate(done, "main", DIMS, values(done, "main"))
    assert len(flat(value)) == 3
    assert value[1] == ()


def refusal(program: Program) -> Diagnostic:
    with pytest.raises(PreskError) as refused:
        differentiate(program)
    (said,) = refused.value.diagnostics
    assert said.span is not None
    assert refused.value.exit_status == 1
    return said


@pytest.mark.parametrize(
    ("op", "why"), [("vjp", "no cotangent with respect to `p`"), ("jvp", "no tangent of the result")]
)
def test_a_result_that_would_hold_a_key_is_refused_with_the_reason(op: str, why: str):
    said = refusal(keyed(op, "(ℝ[D], ())", "(ℝ[D], key)"))
    assert said.code == "E6002"
    assert why in said.message
    assert "a key" in said.message


@pytest.mark.parametrize(("op", "word"), [("vjp", "cotangent"), ("jvp", "tangent")])
def test_an_unknown_function_is_refused_at_its_operator(op: str, word: str):
    said = refusal(
        read(f"""
fn sine{{D}}(x : ℝ[D]) -> ℝ[D] {{
  %1 : ℝ[D] = sin x
  return %1
}}
fn same{{D}}(g : (ℝ[D]) -> ℝ[D]) -> (ℝ[D]) -> ℝ[D] {{
  return g
}}
fn main{{D}}(x : ℝ[D], v : ℝ[D]) -> ℝ[D] {{
  g : (ℝ[D]) -> ℝ[D] = closure sine{{D = D}}[]
  h : (ℝ[D]) -> ℝ[D] = fold 2 same{{D = D}}(stacked; acc g)
  %4 : (ℝ[D], ℝ[D]) -> ℝ[D] = {op} h
  %5 : ℝ[D] = apply %4(x, v)
  return %5
}}
""")
    )
    assert said.code == "E6001"
    assert f"the {word} of `h`" in said.message
