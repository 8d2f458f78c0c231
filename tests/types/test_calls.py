"""Spec, "Calls": the forms of arguments, and the ways to a function."""

from __future__ import annotations

import pytest

from presk_rel.types.tree import TCall, TLet, TLiteral, TStackCall
from tests.types.programs import LINEAR, Checked, accepted, check

DECLS = (
    LINEAR
    + """
dim B
fn scale(x : ℝ[batch: B], by : f64 = 0.5, times : nat = 2) -> ℝ[batch: B] = x * real(by)
"""
)


def main(expr: str, params: str = "x : ℝ[batch: B]", decls: str = "") -> Checked:
    return check(DECLS + decls + f"fn main({params}) =\n  {expr}\n")


def ok(expr: str, params: str = "x : ℝ[batch: B]", decls: str = "") -> Checked:
    checked = main(expr, params, decls)
    assert not checked.diagnostics, checked.said()
    return checked


def call(checked: Checked) -> TCall:
    body = checked.fn("main").body
    assert isinstance(body, TCall)
    return body


# ------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("expr", "by", "times"),
    [
        ("scale(x)", "1/2", "2"),
        ("scale(x, 0.25)", "1/4", "2"),
        ("scale(x, times = 7)", "1/2", "7"),
        ("scale(times = 1, by = 3, x = x)", "3", "1"),
        ("scale(x, times = 7, 3)", "3", "7"),
    ],
)
def test_positional_named_and_default_arguments(expr: str, by: str, times: str) -> None:
    args = call(ok(expr)).args
    assert [str(a.value) for a in args[1:] if isinstance(a, TLiteral)] == [by, times]
    assert [str(a.type) for a in args] == ["ℝ[batch: B]", "f64", "nat"]


@pytest.mark.parametrize(
    "expr",
    [
        "scale()",
        "scale(x, 1, 2, 3)",
        "scale(x, of = 1)",
        "scale(x, by = 1, by = 2)",
        "scale(x, x = x)",
        "scale(axis batch, x)",
        "scale(x, b: B)",
        "gelu()",
        "gelu(x, x)",
        "gelu(axis batch, x)",
        "mean(axis batch, axis batch, x)",
        "mean(y = x)",
        "real(x = 1, x = 2)",
    ],
)
def test_arguments_that_do_not_fit(expr: str) -> None:
    assert main(expr).codes == ["E2021"]


def test_a_near_name_is_suggested() -> None:
    assert "`times`" in (main("scale(x, time = 1)").only.help or "")


def test_a_wrong_argument_is_shown_with_its_parameter() -> None:
    diagnostic = main("scale(x, x)").only
    assert diagnostic.code == "E2003"
    assert "`by` of `scale`" in diagnostic.message
    assert diagnostic.labels


def test_defaults_are_numbers_constants_or_dimensions() -> None:
    accepted("const N = 3\ndim D\nfn f(a : nat = N, b : nat = D + 1, c : f64 = -0.5) -> nat = a\n")
    assert check("fn f(a : f64, b : f64 = a) -> f64 = b\n").codes == ["E2023"]
    assert check("fn g(x : ℝ[]) -> ℝ[] = x\nfn f(b : ℝ[] = g(1)) -> ℝ[] = b\n").codes == ["E2030"]
    assert check("fn f(b : nat = 0.5) -> nat = b\n").codes == ["E2003"]
    assert check("fn f(b = 0.5) -> f64 = b\n").codes == ["E2030"]


# --------------------------------------------------------------------------------------------- the ways to a function


def test_a_submodule_uses_the_parameters_around() -> None:
    text = LINEAR + (
        "module M{D : dim} {\n  use l : Linear{D, D}\n  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = l.apply(l.apply(x))\n}\n"
    )
    body = accepted(text).fn("M.apply").body
    assert isinstance(body, TCall)
    assert [str(a.type) for a in body.args] == ["params Linear{D, D}", "ℝ[..., D]"]


def test_a_module_typed_parameter_takes_the_tree_first() -> None:
    checked = ok("net.apply(θ, x)", "net : Linear{3, 4}, θ : params net, x : ℝ[batch: B, 3]")
    assert checked.result("main") == "ℝ[batch: B, 4]"


def test_the_tree_must_be_that_of_the_module() -> None:
    checked = main(
        "net.apply(θ, x)",
        "net : Linear{3, 4}, θ : params net2, x : ℝ[batch: B, 3]".replace("net2", "M"),
        "module M {\n  param w : ℝ[3]\n}\n",
    )
    assert checked.codes == ["E2003"]
    assert main("net.apply(x)", "net : Linear{3, 4}, x : ℝ[batch: B, 3]").codes == ["E2003"]
    assert main("net.apply()", "net : Linear{3, 4}").codes == ["E2021"]


def test_a_module_by_name_finds_its_dims_in_the_tree() -> None:
    checked = ok(
        "Linear.apply(θ, x)", "θ : params net, x : ℝ[batch: B, 3]".replace("net", "N"), "model N = Linear{3, 4}\n"
    )
    assert [(n, str(d)) for n, d in call(checked).dim_args] == [("In", "3"), ("Out", "4")]


def test_an_instance_by_name() -> None:
    params = "net : Linear{3, 4}, θ : params net, x : ℝ[batch: B, 3]"
    assert ok("Linear{3, 4}.apply(θ, x)", params).result("main") == "ℝ[batch: B, 4]"
    assert main("Linear{3, 5}.apply(θ, x)", params).codes == ["E2003"]
    assert main("Linear{3}.apply(θ, x)", params).codes == ["E1031"]


def test_a_path_through_submodules() -> None:
    decls = (
        "module Two {\n  use l : Linear{3, 3}\n}\nmodule One {\n  use two : Two\n"
        "  fn apply(x : ℝ[batch: B, 3]) -> ℝ[batch: B, 3] = two.l.apply(x)\n}\n"
    )
    ok("net.two.l.apply(θ.two.l, x)", "net : One, θ : params net, x : ℝ[batch: B, 3]", decls)


def test_fields_of_a_parameter_tree() -> None:
    decls = "module Two {\n  use l : Linear{3, 4}\n}\n"
    assert ok("θ.l.w", "θ : params Two", decls).result("main") == "ℝ[3, 4]"
    assert main("θ.l.v", "θ : params Two", decls).codes == ["E2029"]
    assert main("x.l").codes == ["E2029"]


def test_a_sibling_function_shares_the_tree() -> None:
    text = (
        "module M {\n  param w : ℝ[3]\n  fn half(x : ℝ[3]) -> ℝ[3] = x * w\n"
        "  fn apply(x : ℝ[3]) -> ℝ[3] = half(half(x))\n}\n"
    )
    body = accepted(text).fn("M.apply").body
    assert isinstance(body, TCall) and body.fn == "M.half" and str(body.args[0].type) == "params M"


def test_a_module_without_that_function() -> None:
    checked = main("net.aply(θ, x)", "net : Linear{3, 4}, θ : params net, x : ℝ[batch: B, 3]")
    assert checked.codes == ["E2028"]
    assert "`apply`" in (checked.only.help or "")


def test_a_module_is_no_value() -> None:
    assert main("Linear").codes == ["E2023"]
    assert main("net", "net : Linear{3, 4}").codes == ["E2023"]
    assert main("gelu(net)", "net : Linear{3, 4}").codes == ["E2023"]


def test_a_module_argument() -> None:
    decls = "fn use_it(net : Linear{3, 4}, θ : params net, x : ℝ[batch: B, 3]) -> ℝ[batch: B, 4] = net.apply(θ, x)\n"
    params = "net : Linear{3, 4}, θ : params net, x : ℝ[batch: B, 3]"
    ok("use_it(net, θ, x)", params, decls)
    ok("use_it(Linear{3, 4}, θ, x)", params, decls)
    assert main("use_it(Linear{3, 5}, θ, x)", params, decls).codes == ["E2003"]
    assert main("use_it(x, θ, x)", params, decls).codes == ["E2023"]


def test_a_module_argument_fixes_the_dims_of_its_parameter() -> None:
    decls = "fn use_it{D : dim}(net : Linear{D, 4*D}, θ : params net) -> params net = θ\n"
    checked = ok("use_it(net, θ)", "net : Linear{3, 12}, θ : params net", decls)
    assert [(n, str(d)) for n, d in call(checked).dim_args] == [("D", "3")]
    assert main("use_it(net, θ)", "net : Linear{3, 13}, θ : params net", decls).codes == ["E2003"]


def test_explicit_dimension_arguments_of_a_function() -> None:
    decls = "fn ones{N : dim}(x : ℝ[]) -> ℝ[] = x * real(N)\n"
    assert [(n, str(d)) for n, d in call(ok("ones{5}(1)", "", decls)).dim_args] == [("N", "5")]
    assert main("ones(1)", "", decls).codes == ["E2024"]
    assert main("ones{1, 2}(1)", "", decls).codes == ["E1031"]


@pytest.mark.parametrize("expr", ["x(x)", "1(2)", "(x, x)(x)", "x |> x", "θ(x)"])
def test_what_is_no_function_is_not_called(expr: str) -> None:
    checked = main(expr, "x : ℝ[batch: B], net : Linear{3, 3}, θ : params net")
    assert checked.codes == ["E2022"]


def test_a_pipeline_is_a_call() -> None:
    text = "x |> scale |> λ a. a * 2 |> gelu |> mean"
    assert ok(text).result("main") == "ℝ[]"
    assert ok("x |> scale |> mean").result("main") == "ℝ[]"


def test_the_bound_of_a_callees_dim_is_imposed_on_the_caller() -> None:
    decls = "dim T <= 8\nfn short(x : ℝ[seq: T]) -> ℝ[] = sum(x)\n"
    ok("short(x)", "x : ℝ[seq: T]", decls)
    ok("short(x)", "x : ℝ[seq: 8]", decls)
    assert main("short(x)", "x : ℝ[seq: 9]", decls).codes == ["E2018"]
    checked = main("short(x)", "x : ℝ[seq: B]", decls)
    assert checked.codes == ["E2018"]
    assert checked.only.counterexample == (("B", 9),)


# ----------------------------------------------------------------------------------------------- stack and composition

STACK = (
    LINEAR
    + """
dim B
module Block{D : dim} {
  use l : Linear{D, D}
  fn apply(x : ℝ[batch: B, D], by : f64 = 1.0) -> ℝ[batch: B, D] = x + real(by) * l.apply(x)
  fn bad(x : ℝ[batch: B, D]) -> ℝ[batch: B] = sum(x) + y(x)
  fn y(x : ℝ[batch: B, D]) -> ℝ[batch: B] = bad(x)
}
"""
)
STACK = (
    STACK[: STACK.index("  fn bad")] + "  fn total(x : ℝ[batch: B, D]) -> ℝ[] = sum(x)\n  fn none() -> ℝ[] = 1.0\n}\n"
)


def test_through_a_stack_a_function_is_applied_to_slices() -> None:
    text = STACK + (
        "module Deep {\n  use blocks : stack{6}(Block{4})\n"
        "  fn apply(x : ℝ[batch: B, d: 4]) -> ℝ[batch: B, d: 4] = blocks.apply(x, by = 0.5)\n}\n"
    )
    body = accepted(text).fn("Deep.apply").body
    assert isinstance(body, TStackCall)
    assert (str(body.count), body.fn) == ("6", "Block.apply")
    assert [(n, str(d)) for n, d in body.dim_args] == [("D", "4"), ("B", "B")]
    assert str(body.stacked.type) == "params stack{6}(Block{4})"
    assert len(body.extras) == 1 and str(body.type) == "ℝ[batch: B, 4]"


def test_through_a_module_typed_stack_the_tree_comes_first() -> None:
    text = STACK + (
        "model Deep = stack{2}(Block{4})\n"
        "fn f(net : Deep, θ : params net, x : ℝ[batch: B, 4]) -> ℝ[batch: B, 4] = net.apply(θ, x)\n"
    )
    assert isinstance(accepted(text).fn("f").body, TStackCall)


@pytest.mark.parametrize("member", ["total(x)", "none()"])
def test_through_a_stack_the_result_must_have_the_type_of_the_first_argument(member: str) -> None:
    text = STACK + (
        f"module Deep {{\n  use blocks : stack{{6}}(Block{{4}})\n"
        f"  fn apply(x : ℝ[batch: B, 4]) -> ℝ[] = blocks.{member}\n}}\n"
    )
    assert check(text).codes == ["E2027"]


def test_a_composition_applies_the_inner_module_first() -> None:
    text = LINEAR + (
        "module M {\n  use net : Linear{4, 2} ∘ Linear{3, 4}\n"
        "  fn apply(x : ℝ[..., 3]) -> ℝ[..., 2] = net.apply(x)\n}\n"
    )
    outer = accepted(text).fn("M.apply").body
    assert isinstance(outer, TCall)
    inner = outer.args[1]
    assert isinstance(inner, TCall)
    assert [str(outer.args[0].type), str(inner.args[0].type)] == ["params Linear{4, 2}", "params Linear{3, 4}"]
    assert check(text.replace("Linear{4, 2}", "Linear{5, 2}")).codes == ["E2003"]


def test_a_composition_has_only_apply() -> None:
    text = LINEAR + (
        "module M {\n  use net : Linear{4, 2} ∘ Linear{3, 4}\n"
        "  fn apply(x : ℝ[..., 3]) -> ℝ[..., 2] = net.other(x)\n}\n"
    )
    assert check(text).codes == ["E2028"]


def test_a_stack_in_a_composition() -> None:
    text = STACK + (
        "model Net = Linear{4, 1} ∘ stack{3}(Block{4})\n"
        "fn f(θ : params Net, x : ℝ[batch: B, 4]) -> ℝ[batch: B, 1] = Net.apply(θ, x)\n"
    )
    body = accepted(text).fn("f").body
    assert isinstance(body, TCall) and isinstance(body.args[1], TStackCall)


# -------------------------------------------------------------------------------------------------- inferred results


def test_a_result_that_is_not_declared_is_the_bodys_whatever_the_order() -> None:
    checked = accepted("fn f(x : ℝ[3]) = g(x) + 1\nfn g(x : ℝ[3]) = sum(x)\n")
    assert (checked.result("f"), checked.result("g")) == ("ℝ[]", "ℝ[]")


def test_an_omitted_parameter_type_is_found_by_its_uses() -> None:
    checked = accepted("fn f(x) -> ℝ[3] = g(x)\nfn g(x : ℝ[3]) -> ℝ[3] = x\nfn h(y : ℝ[3]) -> ℝ[3] = f(y)\n")
    assert str(checked.fn("f").params[0].type) == "ℝ[3]"
    assert check("fn f(x) = gelu(x)\n").codes == ["E2024"]


def test_recursion_is_refused_with_the_path() -> None:
    checked = check("fn f(x : ℝ[3]) -> ℝ[3] = g(x)\nfn g(x : ℝ[3]) = f(x)\nfn h(x : ℝ[3]) -> ℝ[3] = g(x)\n")
    assert checked.codes == ["E2016"]
    assert "`f` → `g` → `f`" in checked.only.message
    assert check("fn f(x : ℝ[3]) -> ℝ[3] = f(x)\n").codes == ["E2016"]
    module = "module M {\n  fn a(x : ℝ[1]) -> ℝ[1] = b(x)\n  fn b(x : ℝ[1]) -> ℝ[1] = a(x)\n}\n"
    assert check(module).codes == ["E2016"]


# ------------------------------------------------------------------------------------------------- several errors


def test_several_errors_come_in_source_order_without_cascades() -> None:
    text = (
        "const A = 1 / 2\ndim D\n"
        "fn f(x : ℝ[A]) -> ℝ[D] = x + y\n"
        "fn g(x : ℝ[D], y : ℝ[4*D]) =\n  let z = x + y\n  let w = gelu(z) · z\n  w + z\n"
        "fn h(x : ℝ[D], y : ℝ[4*D]) -> ℝ[D] = g(x, y) + nowhere\n"
        "static assert D > 3\n"
    )
    checked = check(text)
    spans = [d.span for d in checked.diagnostics if d.span is not None]
    assert sorted(checked.codes) == ["E1001", "E1001", "E1004", "E1020", "E2003"]
    assert checked.codes[2:] == ["E1020", "E2003", "E1004"] and spans[2:] == sorted(spans[2:])


def test_let_and_patterns() -> None:
    decls = "fn two(x : ℝ[batch: B]) -> (ℝ[batch: B], ℝ[]) = (x, sum(x))\n"
    body = ok("let (a, (b, _)) = (x, two(x))\n  let a = a + b\n  a", decls=decls).fn("main").body
    assert isinstance(body, TLet) and isinstance(body.body, TLet)
    assert main("let (a, b, c) = two(x)\n  a", decls=decls).codes == ["E2026"]
    assert main("let (a, b) = x\n  a").codes == ["E2026"]
