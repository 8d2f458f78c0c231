"""A proof is about two programs that can stand in each other's place: the checker sees what denotations do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from presk_rel.core.ir import Call, Fold, Function, Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.fusion.check import check_fused
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.rules import RULES
from presk_rel.smt.linear import symbol
from tests.egraph.programs import read

TEXT = """fn f{D E}(x : ℝ[D], y : ℝ[E]) -> ℝ[] {
  a : ℝ[] = sum x
  b : ℝ[] = sum y
  c : ℝ[] = sub a, b
  return c
}
"""
OTHERS = {
    "parameters": TEXT.replace("x : ℝ[D], y : ℝ[E]", "y : ℝ[E], x : ℝ[D]"),
    "parameters of other types": TEXT.replace("x : ℝ[D], y : ℝ[E]", "x : ℝ[E], y : ℝ[E]"),
    "bound dims": TEXT.replace("{D E}(x : ℝ[D], y : ℝ[E])", "{D}(x : ℝ[D], y : ℝ[D])"),
    "a length": TEXT.replace("y : ℝ[E]", "y : ℝ[4]"),
    "a result": TEXT.replace("-> ℝ[]", "-> (ℝ[], ℝ[])").replace("return c", "d : (ℝ[], ℝ[]) = (c, c)\n  return d"),
}


def refusals(after: Program) -> list[str]:
    before = read(TEXT)
    done = optimize(before, "f", {"D": 4, "E": 4})
    assert check(done.proof, RULES, before, done.program) == []
    return [str(r) for r in check(done.proof, RULES, before, after)]


@pytest.mark.parametrize("what", OTHERS)
def test_another_signature_is_refused(what: str):
    """Dimensions that were bound when it was optimized are no reason to take a program for them alone."""
    other = read(OTHERS[what])
    assert any("f has other" in r for r in refusals(other))
    assert any("f has other" in r for r in check_fused("f", read(TEXT), other))


def test_a_program_without_the_entry_is_refused():
    assert refusals(Program({}, {})) == ["the new program has no f"]


def with_call(name: str) -> Program:
    """The sums computed by a function that calls `name`."""
    program = read(TEXT.replace("c : ℝ[] = sub a, b", "c : ℝ[] = call g(a, b)") + GIVEN)
    g = program.functions["g"]
    loop = replace(g.bindings[0], op=Call(name, (), ("a", "b")))
    return replace(program, functions={**program.functions, "g": replace(g, bindings=(loop,))})


GIVEN = "\nfn g(a : ℝ[], b : ℝ[]) -> ℝ[] {\n  c : ℝ[] = sub a, b\n  return c\n}\n"


def test_a_function_that_calls_itself_is_refused():
    """Read, it would never end."""
    looping = with_call("g")
    assert any("reaches itself" in r for r in refusals(looping))
    kernels = {**looping.functions, "g": replace(looping.functions["g"], kernel=True)}
    assert check_fused("f", read(TEXT), replace(looping, functions=kernels))


def test_an_ill_typed_program_is_refused():
    program = read(TEXT)
    f = program.functions["f"]
    wrong: Function = replace(f, bindings=(replace(f.bindings[0], type=f.params[0].type), *f.bindings[1:]))
    assert any("not well-formed" in r for r in refusals(replace(program, functions={"f": wrong})))


COUNTED = """fn body{D}(a : ℝ[], x : ℝ[]) -> ℝ[] {
  n : nat = dim D
  r : ℝ[] = real n
  b : ℝ[] = mul a, r
  return b
}
fn f{D E}(x : ℝ[D], y : ℝ[E], v : ℝ[3], start : ℝ[]) -> ℝ[] {
  z : ℝ[] = fold 3 body{D = D}(stacked v; acc start)
  return z
}
"""


@pytest.mark.parametrize("given", ["{D = D}", "{D = E}", "{}"])
def test_a_dim_of_a_body_that_its_types_do_not_mention(given: str):
    """Left out it would be read as the entry's dim of that name, which no executor does."""
    before = read(COUNTED)
    done = optimize(before, "f")
    f = before.functions["f"]
    (b,) = f.bindings
    assert isinstance(b.op, Fold)
    dims = {"{D = D}": (("D", symbol("D")),), "{D = E}": (("D", symbol("E")),), "{}": ()}[given]
    fold = replace(b, op=replace(b.op, dim_args=dims))
    after = replace(before, functions={**before.functions, "f": replace(f, bindings=(fold,))})
    said = [str(r) for r in check(done.proof, RULES, before, after)]
    expected = {"{D = D}": "", "{D = E}": "not what the optimized program", "{}": "the dim D of body is not given"}
    assert (not said) if given == "{D = D}" else any(expected[given] in r for r in said)
