"""Spec "Lexical structure": comments, identifiers, words, symbols, literals."""

from __future__ import annotations

import pytest

from presk_rel.syntax import ast
from presk_rel.syntax.parser import parse, parse_expr, parse_type, tokens
from presk_rel.syntax.token import CONTEXTUAL, RESERVED


def kinds(text: str) -> list[str]:
    """The tokens before the final line end, without layout's additions."""
    return [t.kind for t in tokens(text, "t.psk").tokens if t.kind not in ("_NEWLINE", "$END")]


def read(text: str) -> ast.Expr:
    result = parse_expr(text)
    assert result.diagnostics == [] and result.expr is not None
    return result.expr


def test_a_comment_runs_to_the_end_of_its_line() -> None:
    assert kinds("-- const A = 1\nx -- y -- z\n") == ["NAME"]
    assert read("a - -b -- c") == ast.Binary("-", ast.Name("a"), ast.Negate(ast.Name("b")))


@pytest.mark.parametrize("name", ["θ", "γ", "σ2", "x̂", "_", "_1", "λ1", "λx", "ℝn", "名前", "नमस्ते", "Real_", "in", "Σ"])
def test_identifiers_follow_xid(name: str) -> None:
    assert read(name) == ast.Name(name)


def test_names_are_compared_after_nfc() -> None:
    assert read("y\u0302") == read("\u0177") == ast.Name("\u0177")
    assert read("\u212b") == ast.Name("\u00c5")


@pytest.mark.parametrize("dot", ["·", "\u0387", "@"])
def test_a_middle_dot_is_never_part_of_a_name(dot: str) -> None:
    assert read(f"x{dot}w{dot}θ") == read("x · w · θ")
    assert read(f"ŷ{dot}x̂") == read("ŷ · x̂")


@pytest.mark.parametrize("text", ["²", "\u0302x", "x y", "½"])
def test_what_is_no_identifier(text: str) -> None:
    assert parse_expr(text).expr is None


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_no_names(word: str) -> None:
    assert parse(f"const {word} = 1", "t.psk").diagnostics


@pytest.mark.parametrize("word", sorted(RESERVED - {"ℝ", "λ"}))
def test_after_a_dot_and_as_a_configuration_field_every_word_is_a_name(word: str) -> None:
    assert read(f"M.{word}") == ast.Field(ast.Name("M"), ast.Ident(word))
    assert parse(f"optimizer adamw {{\n  {word} = 1\n  {word} : nat = 2\n}}\n", "t.psk").diagnostics == []


@pytest.mark.parametrize("word", sorted(CONTEXTUAL))
def test_contextual_words_are_ordinary_names(word: str) -> None:
    text = f"""
const {word} = {word}
dim {word} <= {word}
type {word} = ({word}{{{word}}}, ℝ[{word}: {word}, {word}], params {word})
effect {word}
model {word} = {word}{{{word}}}({word}) ∘ {word}
import "a" as {word}
module {word}{{{word} : dim}} {{
  param {word} : ℝ[{word}]
  use {word}, {word} : {word}.{word}
  fn {word}(axis {word}, {word} : {word} = {word}) -> {word} uses {word} =
    let ({word}, {word}) = {word}({word}, axis {word}, {word} = {word}, {word}: {word})
    λ {word}. ein[{word}]({word}) + {word}[{word}: {word}..{word}]
}}
optimizer {word} {{
  {word} = {word}
  checkpoint every {word} steps to "x"
}}
"""
    assert parse(text, "t.psk").diagnostics == []


@pytest.mark.parametrize(
    ("ascii", "canonical"),
    [
        ("f(x : Real[B])", "f(x : ℝ[B])"),
        (r"\lambda x. x", "λ x. x"),
        (r"\x. x", "λ x. x"),
        (r"\ (x, y). x", "λ (x, y). x"),
        (r"\lambdax. x", "λ lambdax. x"),
        ("x @ w", "x · w"),
        ("a >< b", "a ⊗ b"),
        ("a << b", "a ∘ b"),
        ("a><b<<c", "a ⊗ b ∘ c"),
    ],
)
def test_both_spellings_mean_the_same(ascii: str, canonical: str) -> None:
    assert read(ascii) == read(canonical)


def test_naturals_keep_their_text_at_any_size() -> None:
    assert read("007") == ast.Nat("007")
    assert read("9" * 200_000) == ast.Nat("9" * 200_000)


@pytest.mark.parametrize("text", ["0.02", "3e-4", "1e-5", "1.50", "1E+5", "2.5e10"])
def test_decimals_keep_their_text(text: str) -> None:
    assert read(text) == ast.Decimal(text)


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [("5ms", "5", "ms"), ("3MiB", "3", "MiB"), ("204GB/s", "204", "GB/s"), ("192KiB/sm", "192", "KiB/sm"),
     ("1.5s", "1.5", "s"), ("2e3ms", "2e3", "ms"), ("3e", "3", "e"), ("5µs", "5", "µs")],
)  # fmt: skip
def test_a_quantity_is_a_number_and_a_unit(text: str, number: str, unit: str) -> None:
    assert read(text) == ast.Quantity(number, unit)


def test_a_unit_ends_where_no_letter_follows_the_slash() -> None:
    assert read("5ms / n") == ast.Binary("/", ast.Quantity("5", "ms"), ast.Name("n"))
    assert read("6/s") == ast.Binary("/", ast.Nat("6"), ast.Name("s"))


def test_strings_and_their_escapes() -> None:
    assert read(r'"a\"b\\c\nd\te"') == ast.Str('a"b\\c\nd\te')
    assert read('"-- no comment: (["') == ast.Str("-- no comment: ([")


def test_the_sign_is_no_part_of_a_literal() -> None:
    assert read("t[seq: -1]") == ast.Index(ast.Name("t"), (ast.At(ast.Ident("seq"), ast.Negate(ast.Nat("1"))),))


def test_two_dots_against_a_decimal_and_against_three() -> None:
    assert kinds("0..1") == ["NAT", "..", "NAT"]
    assert kinds("0.5..1.5") == ["DECIMAL", "..", "DECIMAL"]
    assert kinds("...") == ["..."]
    assert kinds("0...") == ["NAT", "..."]
    assert kinds("1.x") == ["NAT", ".", "NAME"]


def test_spans_count_lines_columns_and_characters() -> None:
    [const] = parse("\r\n  const x̂ = y\n", "t.psk").file.decls
    assert isinstance(const, ast.Const)
    name, value = const.name.span, const.value.span
    assert (name.start.line, name.start.column, name.start.offset, name.end.offset) == (2, 9, 10, 12)
    assert (value.start.column, value.end.column) == (14, 15)
    assert str(const.span) == "t.psk:2:3"


def test_an_operator_has_a_span_of_its_own() -> None:
    tree = read("aa  |>  b")
    assert isinstance(tree, ast.Binary)
    assert (tree.op_span.start.column, tree.op_span.end.column) == (5, 7)
    assert (tree.span.start.column, tree.span.end.column) == (1, 10)


def test_bare_real_and_empty_brackets_are_one_type() -> None:
    assert parse_type("ℝ").type == parse_type("Real[]").type == ast.RealType(())
