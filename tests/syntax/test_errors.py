"""What a wrong program is told. Each file of errors/ holds a program and what is printed for it (tests/golden.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics.render import render
from presk_rel.syntax import ast
from presk_rel.syntax.parser import parse, parse_expr
from tests import golden

CASES = sorted((Path(__file__).parent / "errors").glob("*.txt"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_golden(path: Path, update_golden: bool) -> None:
    text, file = golden.sections(path)["source"] + "\n", f"{path.stem}.psk"
    golden.check(path, {"printed": render(parse(text, file).diagnostics, {file: text})}, update_golden)


def codes(text: str) -> list[str]:
    return [f"{d.code} {d.span.start.line}" for d in parse(text, "t.psk").diagnostics if d.span]


def names(text: str) -> list[str]:
    """What could be read in spite of the errors."""
    file = parse(text, "t.psk").file
    return [decl.name.text for decl in file.decls if isinstance(decl, ast.Const | ast.Fn | ast.Module | ast.Config)]


def test_the_declarations_around_an_error_are_kept() -> None:
    text = "const A = 1\nconst B = = 2\nfn f(x) = x\nfn g(x = x\nfn h(x) = x\n"
    assert codes(text) == ["E0002 2", "E0004 4"]
    assert names(text) == ["A", "f", "h"]


def test_the_members_around_an_error_are_kept() -> None:
    text = "module M {\n  param w : ℝ[2]\n  fn bad(x) = x x\n  fn good(x) = x\n}\nconst A = 1\n"
    [module, const] = parse(text, "t.psk").file.decls
    assert isinstance(module, ast.Module) and isinstance(const, ast.Const)
    assert [type(member).__name__ for member in module.members] == ["Param", "Fn"]
    assert codes(text) == ["E0002 3"]


def test_the_items_around_an_error_are_kept() -> None:
    text = "optimizer adamw {\n  lr = 1\n  eps == 2\n  betas = (0, 1)\n}\n"
    [config] = parse(text, "t.psk").file.decls
    assert isinstance(config, ast.Config)
    assert [item.name.text for item in config.items if isinstance(item, ast.ConfigField)] == ["lr", "betas"]
    assert codes(text) == ["E0002 3"]


def test_an_unclosed_bracket_costs_one_declaration() -> None:
    text = "fn f(x) = g(h(x, (x\nfn g(x) = x\nmodule M {\n  fn f(x) = (x\n  fn g(x) = x\n}\nfn last() = 1\n"
    assert codes(text) == ["E0004 1", "E0004 4"]
    assert names(text) == ["g", "M", "last"]


def test_an_unclosed_body_keeps_its_members() -> None:
    text = "module M {\n  fn f(x) = x\n\nmodule N {\n  fn g(x) = x\n}\n\nfn h() = 1\n"
    assert codes(text) == ["E0004 1"]
    assert names(text) == ["M", "N", "h"]


def test_an_unclosed_body_ends_where_a_function_is_indented_less() -> None:
    text = "module M {\n  fn f(x) = x\n\nfn h() = 1\n"
    assert codes(text) == ["E0004 1"]
    assert names(text) == ["M", "h"]


def test_a_lexical_error_is_the_only_one_of_its_declaration() -> None:
    assert codes("const A = $ 1 2 3 )\nconst B = (1 $\nconst C = 2 2\n") == ["E0001 1", "E0001 2", "E0002 3"]


def test_errors_come_in_source_order() -> None:
    text = "const A = (\nconst B = 1 1\nconst C = $\nmodule M {\n  param : 3\n"
    assert codes(text) == ["E0004 1", "E0002 2", "E0001 3", "E0004 4", "E0002 5"]


def test_a_configuration_field_may_look_like_a_declaration() -> None:
    fields = ["model = m.M", "optimizer = adamw", "type : nat = 1", "fn = 2", "uses = 3", 'import = "x"']
    assert codes("training run {\n  " + "\n  ".join(fields) + "\n}\n") == []


def test_an_expression_with_an_error_is_none() -> None:
    result = parse_expr("f(x")
    assert result.expr is None and [d.code for d in result.diagnostics] == ["E0004"]


@pytest.mark.parametrize("text", ["", "\n\n", "-- only a comment", "   \t\r\n"])
def test_an_empty_program_is_a_program(text: str) -> None:
    result = parse(text, "t.psk")
    assert (result.file, result.diagnostics) == (ast.File("t.psk", ()), [])
