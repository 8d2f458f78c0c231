"""Spec, "Shapes" and "Broadcasting"."""

from __future__ import annotations

import pytest

from tests.types.programs import LINEAR, Checked, accepted, check


def body(expr: str, **params: str) -> Checked:
    signature = ", ".join(f"{n} : {t}" for n, t in params.items())
    return check(f"dim A\ndim B\ndim C\nfn f({signature}) =\n  {expr}\n")


def result(expr: str, **params: str) -> str:
    checked = body(expr, **params)
    assert not checked.diagnostics, checked.said()
    return checked.result("f")


# ---------------------------------------------------------------------------------------------------- unification


def test_a_named_axis_agrees_with_one_of_its_name_or_an_unnamed_one() -> None:
    accepted("dim A\nfn g(x : ℝ[seq: A]) -> ℝ[seq: A] = x\nfn f(x : ℝ[A]) -> ℝ[A] = g(x)\n")


def test_axes_of_different_names_never_agree() -> None:
    checked = check("dim A\nfn g(x : ℝ[seq: A]) -> ℝ[] = sum(x)\nfn f(x : ℝ[seq2: A]) -> ℝ[] = g(x)\n")
    assert checked.codes == ["E2003"]
    assert "ℝ[seq2: A]" in checked.only.message and "ℝ[seq: A]" in checked.only.message
    assert checked.text_at(checked.only) == "x"


def test_lengths_must_be_equal_for_all_values() -> None:
    checked = check("dim A\nfn g(x : ℝ[4*A]) -> ℝ[4*A] = x\nfn f(x : ℝ[A]) -> ℝ[4*A] = x\n")
    assert checked.codes == ["E2003"]
    assert checked.only.counterexample == (("A", 1),)
    assert "`A = 4*A` fails for A = 1" in checked.only.message


def test_a_callees_dims_are_solved_from_the_arguments() -> None:
    text = "fn g{N : dim}(x : ℝ[2*N + 1], y : ℝ[N]) -> ℝ[N] = y\nfn f(x : ℝ[9], y : ℝ[4]) -> ℝ[4] = g(x, y)\n"
    accepted(text)


def test_an_equation_without_natural_solution_fails() -> None:
    text = "fn g{N : dim}(x : ℝ[2*N]) -> ℝ[] = sum(x)\nfn f(x : ℝ[9]) -> ℝ[] = g(x)\n"
    assert check(text).codes == ["E2003"]


def test_a_solution_must_be_natural_for_all_values() -> None:
    text = "dim A\nfn g{N : dim}(x : ℝ[N + 1]) -> ℝ[] = sum(x)\nfn f(x : ℝ[A]) -> ℝ[] = g(x)\n"
    checked = check(text)
    assert checked.codes == ["E2003"]
    assert checked.only.counterexample == (("A", 0),)
    accepted(text.replace("x : ℝ[A]", "x : ℝ[A + 1]"))


def test_a_solution_must_be_whole_for_all_values() -> None:
    text = "dim A\nfn g{N : dim}(x : ℝ[2*N]) -> ℝ[] = sum(x)\nfn f(x : ℝ[A]) -> ℝ[] = g(x)\n"
    checked = check(text)
    assert checked.codes == ["E2003"]
    assert checked.only.counterexample == (("A", 1),)
    accepted(text.replace("x : ℝ[A]", "x : ℝ[6*A]"))


def test_an_equation_in_two_unknowns_waits_for_the_other_arguments() -> None:
    text = (
        "fn g{M N : dim}(x : ℝ[2*M + 3*N], y : ℝ[N], z : ℝ[M]) -> ℝ[M] = z\n"
        "fn f(x : ℝ[16], y : ℝ[2], z : ℝ[5]) -> ℝ[5] = g(x, y, z)\n"
    )
    accepted(text)
    assert check(text.replace("ℝ[16]", "ℝ[17]")).codes == ["E2003"]


def test_a_prefix_absorbs_leading_axes() -> None:
    text = (
        "dim B\ndim T\nmodule N {\n  use l : Linear{768, 5}\n}\n"
        "fn f(θ : params N, x : ℝ[batch: B, seq: T, model: 768]) -> ℝ[batch: B, seq: T, 5] =\n"
        "  Linear{768, 5}.apply(θ.l, x)\n"
    )
    assert accepted(LINEAR + text).result("f") == "ℝ[batch: B, seq: T, 5]"


def test_a_prefix_may_absorb_nothing() -> None:
    text = (
        "fn norm(x : ℝ[..., 3]) -> ℝ[...] = f(x)\nfn f(x : ℝ[..., d: 3]) -> ℝ[...] = sum(axis d, x)\n"
        "fn g(x : ℝ[3]) -> ℝ[] = norm(x)\n"
    )
    accepted(text)


def test_all_prefixes_of_a_signature_are_one() -> None:
    text = (
        "dim B\ndim C\nfn add(x : ℝ[..., 3], y : ℝ[..., 3]) -> ℝ[..., 3] = x + y\n"
        "fn f(x : ℝ[batch: B, 3], y : ℝ[batch: C, 3]) -> ℝ[batch: B, 3] = add(x, y)\n"
    )
    assert check(text).codes == ["E2003"]
    accepted(text.replace("batch: C", "batch: B"))


def test_a_prefix_takes_the_names_that_one_of_its_uses_gives() -> None:
    text = (
        "dim B\nfn add(x : ℝ[..., 3], y : ℝ[..., 3]) -> ℝ[..., 3] = x + y\n"
        "fn f(x : ℝ[B, 3], y : ℝ[batch: B, 3]) = add(x, y)\n"
    )
    assert accepted(text).result("f") == "ℝ[batch: B, 3]"


def test_a_prefix_is_fixed_inside_its_function() -> None:
    assert check("dim B\nfn f(x : ℝ[..., 3]) -> ℝ[batch: B, 3] = x\n").codes == ["E2003"]
    assert check("dim B\nfn f(x : ℝ[batch: B, 3]) -> ℝ[..., 3] = x\n").codes == ["E2003"]


def test_a_mean_over_the_prefixed_axis_broadcasts_back() -> None:
    text = "dim D\nfn center(x : ℝ[..., model: D]) -> ℝ[..., model: D] = x - mean(axis model, x)\n"
    accepted(text)


def test_a_shape_parameter_is_a_prefix_of_its_own() -> None:
    text = (
        "dim B\nfn twice{S : Shape}(x : ℝ[S], y : ℝ[S]) -> ℝ[S] = x + y\n"
        "fn f(x : ℝ[batch: B, 3]) -> ℝ[batch: B, 3] = twice(x, x)\n"
    )
    assert accepted(text).result("f") == "ℝ[batch: B, 3]"
    assert check(text.replace("twice(x, x)", "twice(x, sum(x))")).codes == ["E2003"]


# --------------------------------------------------------------------------------------------------- broadcasting


@pytest.mark.parametrize(
    ("x", "y", "sum_"),
    [
        ("ℝ[]", "ℝ[batch: A, B]", "ℝ[batch: A, B]"),
        ("ℝ[batch: A, B]", "ℝ[]", "ℝ[batch: A, B]"),
        ("ℝ[batch: A, model: B]", "ℝ[B]", "ℝ[batch: A, model: B]"),
        ("ℝ[B]", "ℝ[batch: A, model: B]", "ℝ[batch: A, model: B]"),
        ("ℝ[heads: C, seq: A, seq2: B]", "ℝ[seq: A, seq2: B]", "ℝ[heads: C, seq: A, seq2: B]"),
        ("ℝ[batch: A, model: B]", "ℝ[batch: A]", "ℝ[batch: A, model: B]"),
        ("ℝ[seq: A, heads: C, model: B]", "ℝ[seq: A, model: B]", "ℝ[seq: A, heads: C, model: B]"),
        ("ℝ[A, B]", "ℝ[batch: A, model: B]", "ℝ[batch: A, model: B]"),
        ("ℝ[batch: A, B]", "ℝ[A, model: B]", "ℝ[batch: A, model: B]"),
        ("ℝ[batch: A, model: B]", "ℝ[model: B, batch: A]", "ℝ[batch: A, model: B]"),
        ("ℝ[batch: A, B]", "ℝ[batch: A]", "ℝ[batch: A, B]"),
    ],
)
def test_shapes_line_up(x: str, y: str, sum_: str) -> None:
    for op in "+-*/":
        assert result(f"x {op} y", x=x, y=y) == sum_


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("ℝ[A]", "ℝ[B]"),
        ("ℝ[seq: A, model: B]", "ℝ[heads: A]"),
        ("ℝ[A]", "ℝ[1]"),
        ("ℝ[batch: A, model: B]", "ℝ[model: A]"),
        ("ℝ[..., A]", "ℝ[B, A]"),
    ],
)
def test_shapes_that_do_not_line_up(x: str, y: str) -> None:
    checked = body("x + y", x=x, y=y)
    assert checked.codes == ["E2003"]
    assert checked.text_at(checked.only) == "+"
    assert len(checked.only.labels) == 2


def test_the_counterexample_of_a_broadcast() -> None:
    checked = body("x * y", x="ℝ[batch: B, model: A]", y="ℝ[model: 4*A]")
    assert checked.codes == ["E2003"]
    assert checked.only.counterexample == (("A", 1),)


# ---------------------------------------------------------------------------------------------------- contraction


def test_dot_contracts_the_last_axis_with_the_first() -> None:
    assert result("x · w", x="ℝ[batch: A, model: B]", w="ℝ[B, hidden: C]") == "ℝ[batch: A, hidden: C]"
    assert result("x @ w", x="ℝ[A]", w="ℝ[A]") == "ℝ[]"
    assert result("matmul(x, w)", x="ℝ[..., B]", w="ℝ[B, C]") == "ℝ[..., C]"


@pytest.mark.parametrize(
    ("x", "w", "code"),
    [
        ("ℝ[A, B]", "ℝ[C, B]", "E2003"),
        ("ℝ[model: A]", "ℝ[hidden: A]", "E2003"),
        ("ℝ[]", "ℝ[A]", "E2005"),
        ("ℝ[A]", "ℝ[]", "E2005"),
        ("ℝ[A]", "ℝ[..., A]", "E2005"),
        ("ℝ[seq: A, B]", "ℝ[B, seq: A]", "E2009"),
        ("idx[3][A]", "ℝ[A]", "E2005"),
        ("nat", "ℝ[A]", "E2005"),
    ],
)
def test_dot_refuses(x: str, w: str, code: str) -> None:
    checked = body("x · w", x=x, w=w)
    assert checked.codes == [code]
    assert checked.text_at(checked.only) == "·"


# ------------------------------------------------------------------------------------------------------ reductions


def test_reductions() -> None:
    assert result("mean(x)", x="ℝ[batch: A, model: B]") == "ℝ[]"
    assert result("sum(axis batch, x)", x="ℝ[batch: A, model: B]") == "ℝ[model: B]"
    assert result("mean(axis model, x)", x="ℝ[..., model: B]") == "ℝ[...]"
    assert result("x |> mean", x="ℝ[A]") == "ℝ[]"


def test_an_axis_that_is_not_there() -> None:
    checked = body("mean(axis seq, x)", x="ℝ[batch: A, B]")
    assert checked.codes == ["E2008"]
    assert checked.text_at(checked.only) == "seq"
    assert checked.only.help is not None


@pytest.mark.parametrize("fn", ["gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos"])
def test_entry_by_entry(fn: str) -> None:
    assert result(f"{fn}(x)", x="ℝ[batch: A, B]") == "ℝ[batch: A, B]"
    assert body(f"{fn}(x)", x="idx[3][A]").codes == ["E2005"]
    assert body(f"{fn}(x)", x="nat").codes == ["E2005"]
    assert result(f"{fn}(2)") == "ℝ[]"


def test_real_injects() -> None:
    assert result("real(n)", n="nat") == "ℝ[]"
    assert result("real(n)", n="f64") == "ℝ[]"
    assert result("real(t)", t="idx[5][batch: A]") == "ℝ[batch: A]"
    assert result("real(A)") == "ℝ[]"
    assert body("real(x)", x="ℝ[A]").codes == ["E2005"]
    assert body("real(k)", k="key").codes == ["E2005"]


def test_lengths_that_differ_are_said_to_be_of_their_axis():
    checked = check("fn f(x : ℝ[batch: 2, seq: 3], y : ℝ[batch: 2, seq: 4]) -> ℝ[batch: 2, seq: 3] = x + y\n")
    assert checked.only.message.endswith(": on the axis seq, `3 = 4` does not hold")
    checked = check("dim B\ndim D\nfn f(x : ℝ[batch: B, 3]) -> ℝ[batch: D, 3] = x\n")
    assert ": on the axis batch, `B = D` fails for " in checked.only.message
