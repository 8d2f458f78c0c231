"""Hostile sizes: 200 levels of nesting and no more, chains of any length, and no work that grows with the square.

Work is counted (calls of functions), not timed: a text four times as long may cost at most five times as much.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from presk_rel.syntax import ast
from presk_rel.syntax.dump import ast_to_json, ast_to_text
from presk_rel.syntax.layout import MAX_NESTING
from presk_rel.syntax.lexer import MAX_NAME
from presk_rel.syntax.parser import parse, parse_expr
from presk_rel.syntax.printer import print_expr, print_file

NESTS: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "const A = " + "(" * n + "1" + ")" * n,
    "calls inside": lambda n: "const A = " + "f(" * n + "1" + ")" * n,
    "calls after": lambda n: "const A = f" + "(x)" * n,
    "indices inside": lambda n: "const A = " + "x[" * n + "0" + "]" * n,
    "indices after": lambda n: "const A = x" + "[0]" * n,
    "dimensions": lambda n: "const A = " + "x{" * n + "0" + "}" * n,
    "fields": lambda n: "const A = x" + ".y" * n,
    "minus": lambda n: "const A = " + "- " * n + "1",
    "powers": lambda n: "const A = " + "2^" * n + "1",
    "right operands": lambda n: "const A = " + "1 - (" * (n // 2) + "1" + ")" * (n // 2),
    "tuples": lambda n: "const A = " + "(1, " * n + "1" + ")" * n,
    "lambdas": lambda n: "const A = " + "λ x. " * n + "1",
    "ascriptions": lambda n: "const A = " + "(" * (n - 1) + "1" + " : ℝ)" * (n - 1),
    "types": lambda n: "type A = " + "param " * (n - 1) + "T",
    "tuple types": lambda n: "type A = " + "(T, " * (n - 1) + "T" + ")" * (n - 1),
    "patterns": lambda n: "const A = λ " + "(x, " * (n - 1) + "x" + ")" * (n - 1) + ". 1",
    "module arguments": lambda n: "model A = " + "B(" * (n - 1) + "B" + ")" * (n - 1),
    "compositions": lambda n: "model A = " + "B ∘ " * (n - 1) + "B",
}


@pytest.mark.parametrize("nest", NESTS)
def test_two_hundred_levels_and_no_more(nest: str) -> None:
    within, beyond = NESTS[nest](MAX_NESTING), NESTS[nest](MAX_NESTING + 2)
    result = parse(within, "t.psk")
    assert result.diagnostics == []
    assert parse(print_file(result.file), "t.psk").diagnostics == []
    assert [d.code for d in parse(beyond, "t.psk").diagnostics] == ["E0005"]


@pytest.mark.parametrize("nest", NESTS)
def test_ten_thousand_levels_are_one_error(nest: str) -> None:
    result = parse(NESTS[nest](10_000) + "\nconst B = 1\n", "t.psk")
    assert [d.code for d in result.diagnostics] == ["E0005"]
    assert len(result.file.decls) == 1


@pytest.mark.parametrize("open", ["(", "[", "{", "([{", "f(a: ", "(let x = (", "λ (", "- ("])
def test_ten_thousand_open_brackets_are_one_error_or_two(open: str) -> None:
    result = parse(f"const A = x{open * 10_000}\nconst B = 1\n", "t.psk")
    assert 1 <= len(result.diagnostics) <= 2
    assert [decl.name.text for decl in result.file.decls if isinstance(decl, ast.Const)] == ["B"]


def test_two_faults_in_two_deep_declarations() -> None:
    deep = "const A = " + "(" * 201 + ")" * 201 + "\n"
    assert [d.code for d in parse(deep + "const B = (\n" + deep, "t.psk").diagnostics] == ["E0005", "E0004", "E0005"]


CHAINS = {
    "sums": "const A = " + "a + b - " * 5_000 + "c",
    "pipelines": "const A = x" + "\n  |> f" * 10_000,
    "lets": "fn f(x) =\n" + "  let x = x + 1\n" * 10_000 + "  x",
    "lets in brackets": "const A = (\n" + "  let x = x + 1\n" * 10_000 + "  x)",
    "arguments": "const A = f(" + "x, " * 10_000 + "x)",
    "strings": 'const A = "' + "\\n" * 100_000 + '"',
    "naturals": "const A = " + "7" * 1_000_000,
}


@pytest.mark.parametrize("chain", CHAINS)
def test_chains_of_any_length(chain: str) -> None:
    result = parse(CHAINS[chain], "t.psk")
    assert result.diagnostics == []
    printed = print_file(result.file)
    assert print_file(parse(printed, "t.psk").file) == printed
    assert ast_to_text(result.file) and ast_to_json(result.file)


def test_the_printer_overflows_at_no_depth() -> None:
    tree: ast.Expr = ast.Name("x")
    for _ in range(10_000):
        tree = ast.Call(ast.Name("f"), (ast.Positional(ast.Negate(tree)),))
    assert print_expr(tree) == "f(-" * 10_000 + "x" + ")" * 10_000


def test_a_long_name_is_refused() -> None:
    longest = "x\u0302" * (MAX_NAME // 2)
    assert parse_expr(longest).diagnostics == []
    assert [d.code for d in parse_expr(longest + "x").diagnostics] == ["E0011"]
    assert [d.code for d in parse_expr("a" * 1_000_000).diagnostics] == ["E0011"]
    assert [d.code for d in parse_expr("x" + "\u0302\u0323" * 500_000).diagnostics] == ["E0011"]


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions, of Python and of C, `work` calls."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


REPEATED = {
    "functions": "fn f(x : ℝ[b: B]) -> ℝ[] =\n  let y = x\n  y\n", "members": "module M {\n  param x\n",
    "fields": "optimizer a {\n x : y = (\n", "bad lines": "const A = \n", "unclosed": "fn f(\n",
    "bodies": "module M {\n", "quotes": '"\n', "odd characters": "“", "dollars": "$x", "closers": ")", "mixed": "(]",
    "pairs": "([{", "colons": "f(a:", "tuple types": "f(a:(b,", "commas": ",", "names": "B∘", "words": "ŷ ",
    "lets": "let x = ", "backslashes": "\\", "dots": ".", "units": "1a/", "blank": "\n",
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_the_work_is_linear(name: str) -> None:
    text = REPEATED[name]
    parse(text * 3, "t.psk")
    short = calls_of(lambda: parse(text * 300, "t.psk"))
    long = calls_of(lambda: parse(text * 1200, "t.psk"))
    assert long < 5 * short
