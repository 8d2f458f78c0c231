"""Spec "Lexical structure", Layout: where lines end."""

from __future__ import annotations

import pytest

from presk_rel.syntax.parser import parse, parse_expr, tokens


def same(one: str, other: str) -> None:
    first, second = parse(one, "t.psk"), parse(other, "t.psk")
    assert (first.diagnostics, second.diagnostics) == ([], [])
    assert first.file == second.file


def fails(text: str) -> None:
    assert parse(text, "t.psk").diagnostics


@pytest.mark.parametrize(
    "op", ["|>", "|", "⊗", "><", "∘", "<<", "·", "@", "*", "/", "%", "+", "==", "<=", ">=", "<", ">"]
)
def test_an_operator_that_begins_no_expression_goes_on_with_the_line(op: str) -> None:
    same(f"const A = x\n\n  -- why\n  {op} y\nconst B = 1\n", f"const A = x {op} y\nconst B = 1\n")


def test_minus_and_power_never_go_on() -> None:
    fails("const A = x\n  - y\n")
    fails("const A = x\n  ^ y\n")
    same("fn f() =\n  let a = x\n  -y\n", "fn f() =\n  let a = (x)\n  (-y)\n")


def test_an_operator_at_the_end_of_a_line_does_not_go_on() -> None:
    fails("const A = x +\n  y\n")


def test_inside_brackets_line_breaks_do_not_count() -> None:
    same(
        "fn f{\n  A\n  B : dim\n}(\n  x : ℝ[\n    A,\n    B\n  ]\n) -> T{\nA\n} = g(\n  x\n  -\n y,\n  z[\n 0\n ]\n)\n",
        "fn f{A B : dim}(x : ℝ[A, B]) -> T{A} = g(x - y, z[0])\n",
    )


def test_the_parts_of_a_signature_may_have_lines_of_their_own() -> None:
    same("fn f(x)\n    -> ℝ[]\n    uses Rand =\n  x\n", "fn f(x) -> ℝ[] uses Rand = x\n")
    same("fn f(x)\n  = x\n", "fn f(x) = x\n")


def test_a_body_may_start_on_the_next_line() -> None:
    same("fn f(x) =\n\n  -- what it is\n  x\n", "fn f(x) = x\n")
    same("fn f(x) =\n  let y =\n    x\n  y\n", "fn f(x) =\n  let y = x\n  y\n")


def test_a_let_ends_with_its_line() -> None:
    fails("fn f(x) = let y = x y\n")
    same("fn f(x) = let y = x\n  y\n", "fn f(x) =\n  let y = x\n  y\n")
    same("fn f(x) =\n  let y = x\n    + 1\n  y\n", "fn f(x) =\n  let y = x + 1\n  y\n")


@pytest.mark.parametrize(
    "text",
    [
        "f(λ x. let y = g(x)\n y)",
        "f(\n  λ x.\n    let y = g(\n      x)\n    y\n)",
        "f((λ x. let y = g(x)\n (y)))",
        "f(λ x.\n  let y =\n    g(x)\n\n  -- then\n  y)",
    ],
)
def test_a_let_in_brackets_keeps_its_line_break(text: str) -> None:
    result, plain = parse_expr(text), parse_expr("f(λ x. let y = g(x)\ny)")
    assert result.diagnostics == [] and result.expr == plain.expr


def test_lets_in_brackets_keep_one_line_break_each() -> None:
    text = "(\n  let a = 1\n  let (b, c) =\n    f(\n      a\n    )\n    + 1\n  a\n  + b\n  (c)\n)"
    flat = "(let a = 1\n let (b, c) = f(a) + 1\n a + b(c))"
    assert parse_expr(text).expr == parse_expr(flat).expr is not None


def test_a_let_of_a_lambda_with_a_let() -> None:
    inside = parse_expr("(let f = λ x. let y = x\n y\n f(1))").expr
    assert inside == parse_expr("let f = λ x. let y = x\n y\nf(1)").expr
    assert inside == parse_expr("let f = (λ x. (let y = x\n y))\nf(1)").expr is not None


def test_a_body_on_one_line() -> None:
    same("module M { param w : ℝ[2] }\n", "module M {\n  param w : ℝ[2]\n}\n")
    same("optimizer a {}\n", "optimizer a {\n}\n")
    fails("module M { param w : ℝ  param b : ℝ }\n")


def test_the_last_line_needs_no_break() -> None:
    same("const A = 1", "const A = 1\n")


def test_lines_may_end_in_crlf() -> None:
    same("fn f(x) =\r\n  let y = x\r\n  y\r\n", "fn f(x) =\n  let y = x\n  y\n")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("f(x : ℝ)", True), ("f(x : Real[B])", True), ("f(x : idx[N])", True), ("f(x : bool[B])", True),
        ("f(x : bool)", True), ("f(x : param T)", True), ("f(x : params net)", True), ("f(x : nat)", True),
        ("f(x : key, y)", True), ("f(x : (A, B))", True), ("f(x : ((ℝ, B), C))", True), ("f(x : (ℝ))", True),
        ("f(x : ())", True), ("f(x + 1 : D)", True), ("f(x.y : D)", True),
        ("f(seq: T)", False), ("f(seq: T + 1)", False), ("f(seq: (T + 1))", False), ("f(a, seq: 4*D)", False),
        ("f(seq: nat + 1)", False), ("f(seq: ((a, b)))", False), ("f(seq: m.V)", False), ("f(seq: -1)", False),
        ("f(seq: (a, b)[0])", False),
    ],
)  # fmt: skip
def test_what_follows_a_name_and_a_colon_in_a_call(text: str, typed: bool) -> None:
    """`name : ℝ` is an ascription, `name: T` a named axis: a type that is no dimension expression tells."""
    assert parse_expr(text).diagnostics == []
    assert ("_TYPED" in [t.kind for t in tokens(text, "t.psk").tokens]) is typed


@pytest.mark.parametrize(
    ("item", "typed"),
    [("lr : f64 = 3e-4", True), ("betas : (f64, f64) = (0.9, 0.95)", True), ("x : T{a} = f(b = 1)", True),
     ("schedule : cosine(warmup = 2000)", False), ("x : y", False), ("x : λ (y : ℝ). f(a = y)", False)],
)  # fmt: skip
def test_a_configuration_item_has_a_type_only_before_an_equals_sign(item: str, typed: bool) -> None:
    text = f"optimizer adamw {{\n  {item}\n  next = 1\n}}\n"
    assert parse(text, "t.psk").diagnostics == []
    colon = next(t for t in tokens(text, "t.psk").tokens if t.text == ":")
    assert (colon.kind == "_TYPED") is typed
