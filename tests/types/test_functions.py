"""Function values: lambdas, `grad`, ascription (spec: "Forms", "Calls")."""

from __future__ import annotations

import pytest

from presk_rel.types.tree import TApply, TFunction, TGrad, TLambda, TLet, TPrim
from tests.types.programs import LINEAR, Checked, accepted, check

DECLS = (
    LINEAR
    + """
dim D
fn energy(x : ℝ[d: D]) -> ℝ[] = sum(x^2)
fn scaled(x : ℝ[d: D], by : ℝ[]) -> ℝ[d: D] = x * by
fn gap(a : ℝ[...], b : ℝ[...]) -> ℝ[] = mean((a - b)^2)
"""
)


def main(expr: str, params: str = "x : ℝ[d: D]", decls: str = "") -> Checked:
    return check(DECLS + decls + f"fn main({params}) =\n  {expr}\n")


def ok(expr: str, params: str = "x : ℝ[d: D]", decls: str = "") -> Checked:
    checked = main(expr, params, decls)
    assert not checked.diagnostics, checked.said()
    return checked


# --------------------------------------------------------------------------------------------------------- lambdas


@pytest.mark.parametrize(
    ("expr", "ty"),
    [
        ("(λ a. a + x)(x)", "ℝ[d: D]"),
        ("(λ (a : ℝ[d: D]). sum(a))(x)", "ℝ[]"),
        ("let f = λ a. scaled(a, 2)\n  f(x)", "ℝ[d: D]"),
        ("let f = λ a. a * x\n  f(x)", "ℝ[d: D]"),
        ("let f = λ a. sum(gelu(a) + 1)^2\n  f(x) + f(x)", "ℝ[]"),
        ("let f = λ (a, b). a * b\n  f((x, x))", "ℝ[d: D]"),
        ("(λ (a, b). a * b)((x, sum(x)))", "ℝ[d: D]"),
        ("let f = λ a. λ b. a * b\n  f(x)(x)", "ℝ[d: D]"),
        ("let f = gelu\n  f(x)", "ℝ[d: D]"),
        ("x |> λ a. a |> gelu", "ℝ[d: D]"),
        ("let f = energy\n  f(x)", "ℝ[]"),
        ("let f = scaled\n  f(x, 2)", "ℝ[d: D]"),
        ("let (f, g) = (λ a. a * x, λ b. sum(b))\n  g(f(x))", "ℝ[]"),
        ("let f = λ a. -a\n  f(x)", "ℝ[d: D]"),
        ("let f = λ a. a^2\n  f(x)", "ℝ[d: D]"),
        ("let f = λ a. a · x\n  f(x)", "ℝ[]"),
        ("let f = λ a. mean(axis d, a)\n  f(x)", "ℝ[]"),
        ("let apply = λ f. f(x)\n  apply(energy)", "ℝ[]"),
        ("let compose = λ f. λ g. λ a. f(g(a))\n  compose(energy)(gelu)(x)", "ℝ[]"),
    ],
)
def test_a_lambdas_types_are_found_by_its_uses(expr: str, ty: str) -> None:
    assert ok(expr).result("main") == ty


def test_a_lambda_that_nothing_determines() -> None:
    checked = main("let f = λ a. a + 1\n  x")
    assert checked.codes == ["E2024"]
    assert main("let f = λ a. a\n  x").codes == ["E2024"]


def test_what_waited_is_reported_where_it_stands() -> None:
    checked = main("let f = λ a. mean(a > 0)\n  f(x)")
    assert checked.codes == ["E2005"]
    assert checked.text_at(checked.only) == "a > 0"


def test_a_lambda_has_one_type() -> None:
    assert main("let f = λ a. a + 1\n  (f(x), f(sum(x)))").codes == ["E2003"]


def test_a_lambda_applied_to_what_it_does_not_take() -> None:
    checked = main("(λ (a : ℝ[]). a)(x)")
    assert checked.codes == ["E2003"]
    assert checked.text_at(checked.only) == "x"
    assert main("(λ a. a)(x, x)").codes == ["E2021"]
    assert main("(λ a. a)(a = x)").codes == ["E2021"]


def test_a_function_that_takes_a_function() -> None:
    decls = "fn twice(f, x : ℝ[d: D]) -> ℝ[d: D] = f(f(x))\n"
    assert ok("twice(gelu, x)", decls=decls).result("main") == "ℝ[d: D]"
    assert ok("twice(λ a. a * 2, x)", decls=decls).result("main") == "ℝ[d: D]"
    assert main("twice(energy, x)", decls=decls).codes == ["E2003"]


def test_a_submodules_function_as_a_value_is_a_lambda() -> None:
    text = (
        LINEAR
        + "module M {\n  use l : Linear{3, 3}\n  fn apply(x : ℝ[3]) -> ℝ[3] =\n    let f = l.apply\n    f(x)\n}\n"
    )
    body = accepted(text).fn("M.apply").body
    assert isinstance(body, TLet) and isinstance(body.value, TLambda)


@pytest.mark.parametrize(
    ("value", "params"),
    [("h", 2), ("l.apply", 1), ("two.apply", 1), ("more.apply", 2), ("λ x. more.apply(x, x)", 1)],
)
def test_every_member_function_is_a_value_of_all_its_arguments(value: str, params: int) -> None:
    text = LINEAR + (
        "module Add {\n  param w : ℝ[3]\n  fn apply(x : ℝ[3], y : ℝ[3]) -> ℝ[3] = x * w + y\n}\n"
        "module M {\n  use l : Linear{3, 3}\n  use two : Linear{3, 3} ∘ Linear{3, 3}\n  use more : stack{2}(Add)\n"
        "  fn h(x : ℝ[3], y : ℝ[3]) -> ℝ[3] = l.apply(x) - y\n"
        f"  fn apply(x : ℝ[3]) -> ℝ[3] =\n    let f = {value}\n    f({', '.join(['x'] * params)})\n}}\n"
    )
    assert accepted(text).result("M.apply") == "ℝ[3]"


@pytest.mark.parametrize("model", ["stack{2}(Linear{3, 3})", "Linear{3, 3} ∘ Linear{3, 3}"])
def test_the_function_of_a_stack_or_a_composition_takes_its_parameters_first(model: str) -> None:
    text = f"{LINEAR}model N = {model}\nfn f(θ : params N, x : ℝ[3]) -> ℝ[3] =\n  let g = N.apply\n  g(θ, x)\n"
    assert accepted(text).result("f") == "ℝ[3]"


# ------------------------------------------------------------------------------------------------------------- grad


@pytest.mark.parametrize(
    "expr",
    [
        "grad(energy)(x)",
        "grad(λ a. energy(a))(x)",
        "grad(λ a. sum(a * x))(x)",
        "let g = grad(λ a. sum(a * x))\n  g(x)",
        "let e = λ a. sum(a^2)\n  grad(e)(x)",
        "let e = energy\n  let g = grad(e)\n  g(x)",
        "x |> grad(energy)",
        "grad(λ (a : ℝ[d: D]). gap(a, x))(x)",
        "grad(λ a. sum(grad(energy)(a)))(x)",
        "grad(sum)(x)",
        "grad(λ a. let b = a * 2\n    sum(b))(x)".replace("let b = a * 2\n    sum(b)", "sum(a * 2)"),
    ],
)
def test_a_gradient_has_the_type_of_the_argument(expr: str) -> None:
    assert ok(expr).result("main") == "ℝ[d: D]"


def test_the_gradient_of_a_named_function() -> None:
    body = ok("grad(energy)(x)").fn("main").body
    assert isinstance(body, TApply) and isinstance(body.fn, TGrad) and isinstance(body.fn.fn, TFunction)
    assert [(n, str(d)) for n, d in body.fn.fn.dim_args] == [("D", "D")]


def test_a_gradient_in_a_pair() -> None:
    assert ok("grad(λ (a, b). sum(a * b))((x, x))").result("main") == "(ℝ[d: D], ℝ[d: D])"


def test_a_gradient_in_a_parameter_tree() -> None:
    params = "net : Linear{3, 1}, θ : params net, x : ℝ[batch: D, 3]"
    assert ok("grad(λ θ. mean(net.apply(θ, x)))(θ)", params).result("main") == "params Linear{3, 1}"
    assert (
        ok("grad(λ θ. mean(net.apply(θ, x)))", params).result("main") == "(params Linear{3, 1}) -> params Linear{3, 1}"
    )


@pytest.mark.parametrize(
    "expr",
    [
        "grad(scaled)(x)",
        "grad(gelu)(x)",
        "grad(x)",
        "grad(λ n. real(n))(2)",
        "grad(λ a. a)(x)",
        "grad(λ t. sum(real(t)))(t)",
    ],
)
def test_no_gradient(expr: str) -> None:
    checked = main(expr, "x : ℝ[d: D], t : idx[3][d: D]")
    assert checked.codes == ["E2012"], checked.said()


# -------------------------------------------------------------------------------------------------------- ascription


@pytest.mark.parametrize(
    ("expr", "ty"),
    [
        ("(x : ℝ[d: D])", "ℝ[d: D]"),
        ("(2 : ℝ)", "ℝ[]"),
        ("(2 : f64)", "f64"),
        ("(n : ℝ)", "ℝ[]"),
        ("(D : ℝ)", "ℝ[]"),
        ("mean(axis e, (y : ℝ[e: 3]))", "ℝ[]"),
        ("mean(axis e, (y + 1 : ℝ[e: 3]))", "ℝ[]"),
        ("((x, 1) : (ℝ[d: D], ℝ[]))", "(ℝ[d: D], ℝ[])"),
        ("let f = λ a. (a : ℝ[d: D]) + 1\n  f(x)", "ℝ[d: D]"),
    ],
)
def test_an_ascription_says_a_type(expr: str, ty: str) -> None:
    assert ok(expr, "x : ℝ[d: D], y : ℝ[3], n : nat").result("main") == ty


@pytest.mark.parametrize("expr", ["(x : ℝ[e: D])", "(x : nat)", "(n : ℝ[3])", "(n : f64)", "(2 : key)", "(0.5 : nat)"])
def test_an_ascription_that_is_wrong(expr: str) -> None:
    assert main(expr, "x : ℝ[d: D], n : nat").codes == ["E2003"]


def test_an_ascription_is_gone_from_the_tree() -> None:
    body = ok("(x + 1 : ℝ[d: D])").fn("main").body
    assert isinstance(body, TPrim) and body.op == "add"


def test_a_module_is_no_type_of_values() -> None:
    assert main("(x : Linear{3, 3})").codes == ["E2023"]


@pytest.mark.parametrize(
    ("expr", "said"),
    [("sum", "(_) -> _"), ("grad(mean)", "(_) -> _"), ("λ a. a", "(_) -> _"), ("(x, λ a. a)", "(ℝ[d: D], (_) -> _)")],
)
def test_what_is_not_known_of_a_type_is_shown_as_a_blank(expr: str, said: str) -> None:
    refused = check(DECLS + f"fn main(x : ℝ[d: D]) -> ℝ[] =\n  {expr}\n").only
    assert f"has the type {said}, but ℝ[] is expected" in refused.message


def test_a_function_where_a_value_is_expected_is_to_be_applied() -> None:
    refused = check(DECLS + "fn main(x : ℝ[d: D]) -> ℝ[] =\n  sum\n").only
    assert refused.help == "this is a function: apply it to its arguments"
    refused = check(DECLS + "fn main(x : ℝ[d: D]) -> ℝ[d: D] =\n  x + gelu\n").only
    assert refused.help == "a function enters no arithmetic: apply it to its arguments"
