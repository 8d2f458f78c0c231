"""`parse(print(tree)) == tree`, for every tree that source text can say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from presk_rel.syntax import ast
from presk_rel.syntax.parser import parse, parse_expr, parse_module_expr, parse_type
from presk_rel.syntax.printer import print_expr, print_file, print_module_expr, print_type

from . import trees

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.psk"))


@given(trees.exprs)
@settings(max_examples=200)
def test_expressions(tree: ast.Expr) -> None:
    read = parse_expr(print_expr(tree))
    assert (read.diagnostics, read.expr) == ([], tree)


@given(trees.types)
@settings(max_examples=200)
def test_types(tree: ast.TypeExpr) -> None:
    read = parse_type(print_type(tree))
    assert (read.diagnostics, read.type) == ([], tree)


@given(trees.module_exprs)
def test_module_expressions(tree: ast.ModuleExpr) -> None:
    read = parse_module_expr(print_module_expr(tree))
    assert (read.diagnostics, read.module) == ([], tree)


@given(trees.files)
@settings(max_examples=150)
def test_files(tree: ast.File) -> None:
    read = parse(print_file(tree), "t.psk")
    assert (read.diagnostics, read.file) == ([], tree)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples(path: Path) -> None:
    read = parse(path.read_text(encoding="utf-8"), str(path))
    assert read.diagnostics == []
    assert parse(print_file(read.file), str(path)).file == read.file
