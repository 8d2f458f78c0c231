"""Regularity classes by rules: against an abstract interpreter on random programs, and case by case."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.core.analysis import CoreAnalysis, analyse
from presk_rel.core.reader import load
from presk_rel.core.verify import problems
from presk_rel.diagnostics import Diagnostics
from tests.rules_program.abstract import NUMBER, classes
from tests.rules_program.core_programs import HELD, VALUE, random_core


def analysed(text: str) -> CoreAnalysis:
    found = Diagnostics()
    program = load(text, "a.core", found)
    assert program is not None, found.items
    return analyse(program, "embedded")


@given(st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_classes_are_those_of_all_paths(seed: int) -> None:
    program = random_core(seed, local=True)
    assert problems(program) == []
    analysis = analyse(program, "embedded")
    for function in program.functions.values():
        for name, number in classes(program, function).items():
            assert NUMBER[analysis.regularity(function.name, name)] == number


@given(st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_classes_are_sound_where_function_values_travel(seed: int) -> None:
    """In functions that can be run, which take no function value: one that does is judged by what it is given."""
    program = random_core(seed, local=False)
    assert problems(program) == []
    analysis = analyse(program, "embedded")
    for function in program.functions.values():
        if all(p.type not in (VALUE, HELD) for p in function.params):
            for name, number in classes(program, function).items():
                assert NUMBER[analysis.regularity(function.name, name)] >= number


# ---------------------------------------------------------------------------------------------------- case by case


def of(*bindings: str, params: str = "x : ℝ[]") -> dict[str, str]:
    """The classes of a function `f` of these bindings, which returns the last."""
    ret = bindings[-1].partition(" ")[0]
    body = "\n".join(f"  {b}" for b in bindings)
    analysis = analysed(f"fn f({params}) -> ℝ[] {{\n{body}\n  return {ret}\n}}\n")
    return {name: kind for (_, name), kind in analysis.classes.items()}


@pytest.mark.parametrize(
    ("ops", "kind"),
    [
        (("exp", "tanh", "gelu"), "Cinf"),
        (("relu",), "C0plus"),
        (("abs", "exp"), "C0plus"),
        (("exp", "heaviside"), "Disc"),
        (("sign", "relu"), "Disc"),
        (("relu", "sign", "tanh"), "Disc"),
        (("gelu'", "normal_pdf"), "Cinf"),
    ],
)
def test_compositions_have_the_worst_class(ops: tuple[str, ...], kind: str) -> None:
    bindings = [f"v{i} : ℝ[] = {op} {f'v{i - 1}' if i else 'x'}" for i, op in enumerate(ops)]
    assert of(*bindings) == {"x": kind}


def test_the_identity_written_with_relu_is_classified_by_its_syntax() -> None:
    assert of("a : ℝ[] = relu x", "b : ℝ[] = neg x", "c : ℝ[] = relu b", "d : ℝ[] = sub a, c") == {"x": "C0plus"}


def test_each_parameter_has_a_class_of_its_own() -> None:
    bindings = ("a : ℝ[] = relu x", "b : ℝ[] = heaviside y", "c : ℝ[] = mul a, b", "d : ℝ[] = mul c, z")
    params = "x : ℝ[], y : ℝ[], z : ℝ[], unused : ℝ[]"
    assert of(*bindings, params=params) == {"x": "C0plus", "y": "Disc", "z": "Cinf", "unused": "Cinf"}


def test_an_operand_read_for_its_shape_does_not_count() -> None:
    bindings = ("h : ℝ[] = heaviside y", "s : ℝ[] = sum_to x, h", "z : ℝ[] = zeros_like h", "r : ℝ[] = add s, z")
    assert of(*bindings, params="x : ℝ[], y : ℝ[]") == {"x": "Cinf", "y": "Cinf"}


def test_an_index_made_real_is_discontinuous_and_a_hyperparameter_is_not() -> None:
    params = "i : idx[3][], n : nat"
    assert of("a : ℝ[] = real i", "b : ℝ[] = real n", "c : ℝ[] = add a, b", params=params) == {"i": "Disc", "n": "Cinf"}


STEP = """
fn step(s : (ℝ[], key), w : ℝ[]) -> (ℝ[], key) uses Rand {
  x : ℝ[] = s.0
  k : key = s.1
  ks : (key, key) = split_key 2 k
  next : key = ks.1
  y : ℝ[] = mul x, w
  r : (ℝ[], key) = (y, next)
  return r
}
"""


def test_a_fold_keeps_the_components_of_its_accumulator_apart() -> None:
    """A key carried along is Disc, what is computed beside it is not (spec: "A key inside stack{L}")."""
    analysis = analysed(
        STEP + "fn f(x : ℝ[], w : ℝ[], k : key) -> ℝ[] uses Rand {\n  a : (ℝ[], key) = (x, k)\n"
        "  b : (ℝ[], key) = fold 3 step(stacked; acc a; w)\n  r : ℝ[] = b.0\n  return r\n}\n"
    )
    assert analysis.regularity("step", "s") == "Disc"
    assert [analysis.regularity("f", p) for p in ("x", "w", "k")] == ["Cinf", "Cinf", "Cinf"]


GRADIENT = """
fn inner(c : ℝ[], b : ℝ[], θ : ℝ[]) -> ℝ[] {{
  p : ℝ[] = mul c, θ
  h : ℝ[] = {b} b
  q : ℝ[] = mul p, h
  s : ℝ[] = {θ} q
  return s
}}
fn outer(c : ℝ[], b : ℝ[], θ : ℝ[]) -> ℝ[] {{
  v : (ℝ[]) -> ℝ[] = closure inner[c, b]
  g : (ℝ[]) -> ℝ[] = grad v
  r : ℝ[] = apply g(θ)
  return r
}}
"""


@pytest.mark.parametrize(
    ("through_b", "through_all", "wanted"),
    [
        ("tanh", "exp", ("Cinf", "Cinf", "Cinf")),
        ("heaviside", "exp", ("Cinf", "Disc", "Cinf")),
        ("relu", "exp", ("Cinf", "Disc", "Cinf")),
        ("tanh", "abs", ("Disc", "Disc", "Disc")),
    ],
)
def test_a_gradient_of_what_has_a_kink_jumps(through_b: str, through_all: str, wanted: tuple[str, ...]) -> None:
    analysis = analysed(GRADIENT.format(b=through_b, θ=through_all))
    assert tuple(analysis.regularity("outer", p) for p in ("c", "b", "θ")) == wanted
    assert analysis.illegal_gradients() == ()


def test_a_function_value_that_nobody_knows_is_discontinuous() -> None:
    analysis = analysed("fn f(v : (ℝ[]) -> ℝ[], x : ℝ[]) -> ℝ[] {\n  r : ℝ[] = apply v(x)\n  return r\n}\n")
    assert [analysis.regularity("f", p) for p in ("v", "x")] == ["Disc", "Disc"]


def test_a_function_value_may_go_through_a_fold_and_as_an_argument_of_another() -> None:
    """`a` is captured by a value that is the accumulator of a fold, then given to another function value."""
    analysis = analysed(
        "fn kink(a : ℝ[], x : ℝ[]) -> ℝ[] {\n  s : ℝ[] = add a, x\n  r : ℝ[] = abs s\n  return r\n}\n"
        "fn keep(v : (ℝ[]) -> ℝ[]) -> (ℝ[]) -> ℝ[] {\n  return v\n}\n"
        "fn at_one(v : (ℝ[]) -> ℝ[]) -> ℝ[] {\n  x : ℝ[] = ones\n  r : ℝ[] = apply v(x)\n  return r\n}\n"
        "fn f(a : ℝ[]) -> ℝ[] {\n  v : (ℝ[]) -> ℝ[] = closure kink[a]\n"
        "  w : (ℝ[]) -> ℝ[] = fold 3 keep(stacked; acc v)\n  c : ((ℝ[]) -> ℝ[]) -> ℝ[] = closure at_one[]\n"
        "  r : ℝ[] = apply c(w)\n  return r\n}\n"
    )
    assert analysis.regularity("f", "a") == "C0plus"


MADE_ELSEWHERE = """
fn under(a : ℝ[], b : ℝ[], x : ℝ[]) -> ℝ[] {{
  k : ℝ[] = {kind} a
  s : ℝ[] = mul k, b
  r : ℝ[] = mul s, x
  return r
}}
fn make(a : ℝ[], b : ℝ[]) -> ((ℝ[]) -> ℝ[], ℝ[]) {{
  v : (ℝ[]) -> ℝ[] = closure under[a, b]
  r : ((ℝ[]) -> ℝ[], ℝ[]) = (v, b)
  return r
}}
fn f(a : ℝ[], x : ℝ[]) -> ℝ[] {{
  one : ℝ[] = ones
  p : ((ℝ[]) -> ℝ[], ℝ[]) = call make(a, one)
  v : (ℝ[]) -> ℝ[] = p.0
  g : (ℝ[]) -> ℝ[] = grad v
  r : ℝ[] = apply {applied}(x)
  return r
}}
"""


@pytest.mark.parametrize(
    ("kind", "applied", "wanted"),
    [
        ("tanh", "v", ("Cinf", "Cinf")),
        ("relu", "v", ("C0plus", "Cinf")),
        ("tanh", "g", ("Cinf", "Cinf")),
        ("relu", "g", ("Disc", "Cinf")),
    ],
)
def test_a_function_value_that_another_function_returns_in_a_tuple(kind: str, applied: str, wanted: object) -> None:
    analysis = analysed(MADE_ELSEWHERE.format(kind=kind, applied=applied))
    assert (analysis.regularity("f", "a"), analysis.regularity("f", "x")) == wanted


def test_an_illegal_gradient_names_the_primitive_responsible() -> None:
    analysis = analysed(
        "fn pick(a : ℝ[]) -> ℝ[] {\n  e : ℝ[] = exp a\n  h : ℝ[] = sign e\n  r : ℝ[] = sin h\n  return r\n}\n"
        "fn lam(l : ℝ[]) -> ℝ[] {\n  r : ℝ[] = call pick(l)\n  return r\n}\n"
        "fn bad(x : ℝ[]) -> ℝ[] {\n  v : (ℝ[]) -> ℝ[] = closure lam[]\n  g : (ℝ[]) -> ℝ[] = grad v\n"
        "  r : ℝ[] = apply g(x)\n  return r\n}\n"
    )
    (found,) = analysis.illegal_gradients()
    assert (found.site, found.callee, found.parameter, found.primitive) == ("bad/g", "lam", "l", "sign")
    assert found.span is not None and found.span.start.line == 13
    assert found.cause_span is not None and found.cause_span.start.line == 3


def test_a_second_gradient_of_a_kink_is_illegal() -> None:
    analysis = analysed(
        "fn f(a : ℝ[]) -> ℝ[] {\n  r : ℝ[] = relu a\n  return r\n}\n"
        "fn g(x : ℝ[]) -> ℝ[] {\n  v : (ℝ[]) -> ℝ[] = closure f[]\n  d : (ℝ[]) -> ℝ[] = grad v\n"
        "  d2 : (ℝ[]) -> ℝ[] = grad d\n  r : ℝ[] = apply d2(x)\n  return r\n}\n"
    )
    assert [(i.site, i.primitive) for i in analysis.illegal_gradients()] == [("g/d2", "relu")]


def test_a_deep_chain_of_calls() -> None:
    many = 1500
    text = "".join(
        f"fn f{i}(x : ℝ[]) -> ℝ[] {{\n  a : ℝ[] = tanh x\n  r : ℝ[] = call f{i - 1}(a)\n  return r\n}}\n"
        for i in range(1, many)
    )
    analysis = analysed("fn f0(x : ℝ[]) -> ℝ[] {\n  r : ℝ[] = relu x\n  return r\n}\n" + text)
    assert analysis.regularity(f"f{many - 1}", "x") == "C0plus"
