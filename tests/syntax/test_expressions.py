"""Spec "Expressions" and "Types": each form and its tree, precedence and association."""

from __future__ import annotations

import pytest

from presk_rel.syntax import ast
from presk_rel.syntax.ast import Ident, Name, Nat
from presk_rel.syntax.parser import parse_expr, parse_module_expr, parse_type
from presk_rel.syntax.printer import print_expr, print_module_expr, print_type

x, y, z, D, T = (Name(n) for n in "xyzDT")


def read(text: str) -> ast.Expr:
    result = parse_expr(text)
    assert result.diagnostics == [] and result.expr is not None
    return result.expr


def type_of(text: str) -> ast.TypeExpr:
    result = parse_type(text)
    assert result.diagnostics == [] and result.type is not None
    return result.type


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a |> b | c ⊗ d == e + f * g", "a |> (b | (c ⊗ (d == (e + (f * g)))))"),
        ("a * b + c == d ∘ e | f |> g", "(((((a * b) + c) == d) ∘ e) | f) |> g"),
        ("-x^2", "-(x^2)"),
        ("-x * y", "(-x) * y"),
        ("x^-y", "x^(-y)"),
        ("x^y^z", "x^(y^z)"),
        ("x^-y^z", "x^(-(y^z))"),
        ("-f(x)", "-(f(x))"),
        ("f(x)^2", "(f(x))^2"),
        ("- -x", "-(-x)"),
        ("x - -y", "x - (-y)"),
        ("a · b / c * d % e", "(((a · b) / c) * d) % e"),
        ("a |> λ t. t + 1 |> b", "a |> (λ t. ((t + 1) |> b))"),
        ("λ t. t(x)[0]", "λ t. (t(x)[0])"),
        ("-λ t. t * 2", "-(λ t. (t * 2))"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert read(text) == read(grouped)


@pytest.mark.parametrize("op", ["|>", "|", "⊗", "∘", "==", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "·"])
def test_binary_operators_associate_to_the_left(op: str) -> None:
    assert read(f"x {op} y {op} z") == ast.Binary(op, ast.Binary(op, x, y), z)  # type: ignore[arg-type]


def test_paths_are_fields_of_names() -> None:
    assert read("m.GPT.apply") == ast.Field(ast.Field(Name("m"), Ident("GPT")), Ident("apply"))


def test_the_four_forms_of_an_argument() -> None:
    assert read("f(x, std = 0.02, axis model, seq: T)") == ast.Call(
        Name("f"),
        (
            ast.Positional(x),
            ast.Named(Ident("std"), ast.Decimal("0.02")),
            ast.AxisArg(Ident("model")),
            ast.NamedAxis(Ident("seq"), T),
        ),
    )


def test_ascription_in_a_call() -> None:
    assert (
        read("sqrt(D : ℝ)")
        == read("sqrt((D : ℝ[]))")
        == ast.Call(Name("sqrt"), (ast.Positional(ast.Ascribe(D, ast.RealType(()))),))
    )
    assert read("(x : Acts)") == ast.Ascribe(x, ast.NamedType(Name("Acts"), None))


def test_let_and_its_patterns() -> None:
    pair = ast.TuplePattern((ast.NamePattern(Ident("x")), ast.NamePattern(Ident("_"))))
    assert read("let (x, _) = y\nx") == ast.Let(pair, y, x)
    assert read("let x = y\nlet x = x\nx") == ast.Let(
        ast.NamePattern(Ident("x")), y, ast.Let(ast.NamePattern(Ident("x")), x, x)
    )
    assert read("let () = x\ny") == ast.Let(ast.TuplePattern(()), x, y)


def test_lambda() -> None:
    pattern = ast.NamePattern(Ident("x"))
    assert read("λ x. y") == ast.Lambda(pattern, None, y)
    assert read("λ (x : params m.M). y") == ast.Lambda(pattern, ast.ParamsType(ast.Field(Name("m"), Ident("M"))), y)
    assert read("grad(λ x. f(x))(y)") == ast.Call(
        ast.Call(Name("grad"), (ast.Positional(ast.Lambda(pattern, None, read("f(x)"))),)), (ast.Positional(y),)
    )


def test_ein() -> None:
    axes = (Ident("batch"), Ident("seq2"))
    assert read("ein[batch, seq2](x * y)") == ast.Ein(axes, ast.Binary("*", x, y))
    assert read("ein[](x)") == ast.Ein((), x)


def test_indices_and_slices() -> None:
    assert read("x[0, seq: -1, pair: 0..1, 1..T + 1]") == ast.Index(
        x,
        (
            ast.At(None, Nat("0")),
            ast.At(Ident("seq"), ast.Negate(Nat("1"))),
            ast.Slice(Ident("pair"), Nat("0"), Nat("1")),
            ast.Slice(None, Nat("1"), ast.Binary("+", T, Nat("1"))),
        ),
    )


def test_tuples_and_groups() -> None:
    assert read("()") == ast.Tuple(())
    assert read("(x, y)") == ast.Tuple((x, y))
    assert read("((x))") == x


def test_dimension_arguments() -> None:
    assert read("Linear{D, 4*D}") == ast.DimApply(Name("Linear"), (D, ast.Binary("*", Nat("4"), D)))


def test_stream_is_sugar_for_a_call() -> None:
    assert read('stream "a" |> f') == read('stream("a") |> f')
    assert read("stream + stream") == ast.Binary("+", Name("stream"), Name("stream"))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("ℝ[In, Out]", ast.RealType((ast.Axis(None, Name("In")), ast.Axis(None, Name("Out"))))),
        ("ℝ[..., m: D]", ast.RealType((ast.Axis(None, None), ast.Axis(Ident("m"), D)))),
        ("idx[m.V][b: D]", ast.IdxType(ast.Field(Name("m"), Ident("V")), (ast.Axis(Ident("b"), D),))),
        ("idx[T]", ast.IdxType(T, ())),
        ("bool[D]", ast.MaskType((ast.Axis(None, D),))),
        ("bool[]", ast.MaskType(())),
        ("bool", ast.NamedType(Name("bool"), None)),
        ("param nat", ast.ParamType(ast.NamedType(Name("nat"), None))),
        ("params net", ast.ParamsType(Name("net"))),
        ("ff.Linear{D, T}", ast.NamedType(ast.Field(Name("ff"), Ident("Linear")), (D, T))),
        ("M{}", ast.NamedType(Name("M"), ())),
        ("(ℝ, key)", ast.TupleType((ast.RealType(()), ast.NamedType(Name("key"), None)))),
        ("()", ast.TupleType(())),
        ("((ℝ))", ast.RealType(())),
    ],
)
def test_types(text: str, tree: ast.TypeExpr) -> None:
    assert type_of(text) == tree


def test_module_expressions() -> None:
    block = ast.ModuleRef(Name("Block"), (), ())
    stack = ast.ModuleRef(Name("stack"), (Nat("12"),), (block,))
    embedding = ast.ModuleRef(ast.Field(Name("ff"), Ident("Embedding")), (D,), ())
    read = parse_module_expr("stack{12}(Block) ∘ ff.Embedding{D} ∘ Block")
    assert read.module == ast.Compose(ast.Compose(stack, embedding), block)
    assert parse_module_expr("Block ∘ (Block << Block)").module == ast.Compose(block, ast.Compose(block, block))


@pytest.mark.parametrize(
    "text",
    [
        "(a + b) * c", "a - (b - c)", "(-x)^2", "(x^y)^z", "(λ x. x)(y)", "a + (λ x. x) + b", "(a |> b) + c", "- -x",
        "f(x : ℝ)", "f((x : Acts))", "f(seq: (key))", "f(seq: ((a, b)))", "f(x + 1 : Acts)", "(let x = 1\nx) + 1",
        "f(let x = 1\n  x)", "let f = λ x. let y = x\n  y\nf(4*D)", 'stream "a\\"\\n" |> f', "(x, (y, z), ())",
        "x[-1, s: 0..n - 1]", "M{D, 4*D}.apply(θ)", "(λ (x, y). x)[0]", "λ (x : ℝ[]). x", "192KiB/sm / x",
    ],
)  # fmt: skip
def test_printing_needs_no_more_parentheses_than_this(text: str) -> None:
    assert print_expr(read(text)) == text


def test_printing_is_canonical() -> None:
    assert print_expr(read(r"(\lambda x. ((x)) @ (w))")) == "λ x. x · w"
    assert print_type(type_of("(Real[(D)], param Real)")) == "(ℝ[D], param ℝ[])"
    module = parse_module_expr("((A << B)) << (C)").module
    assert module is not None and print_module_expr(module) == "A ∘ B ∘ C"
