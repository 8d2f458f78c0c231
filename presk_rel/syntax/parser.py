"""Text → tree: the public functions of the syntax layer."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from presk_rel.diagnostics import Diagnostic, Pos, Span
from presk_rel.diagnostics.record import record
from presk_rel.syntax import ast
from presk_rel.syntax.driver import drive
from presk_rel.syntax.layout import layout
from presk_rel.syntax.lexer import lex
from presk_rel.syntax.token import Token


@record
class ParseResult:
    """`file` holds the declarations that could be read; it is the whole program where `diagnostics` is empty."""

    file: ast.File
    diagnostics: list[Diagnostic]


@record
class ExprResult:
    """`expr` is None where there is an error."""

    expr: ast.Expr | None
    diagnostics: list[Diagnostic]


@record
class TypeResult:
    """`type` is None where there is an error."""

    type: ast.TypeExpr | None
    diagnostics: list[Diagnostic]


@record
class ModuleExprResult:
    """`module` is None where there is an error."""

    module: ast.ModuleExpr | None
    diagnostics: list[Diagnostic]


@record
class TokensResult:
    """What the grammar reads, after layout; the last one is the end of the file."""

    tokens: list[Token]
    diagnostics: list[Diagnostic]


def parse(text: str, path: str) -> ParseResult:
    """A whole source file. Several errors come in one run, in source order; time is linear in the text."""
    tree, diagnostics = _parse(text, path, "file")
    if tree is None:
        start = Pos(1, 1, 0)
        tree = ast.File(path, (), Span(path, start, start))
    return ParseResult(tree, diagnostics)


def parse_expr(text: str, path: str = "<expression>") -> ExprResult:
    """One expression, or `let` bindings and an expression on the lines after them."""
    tree, diagnostics = _parse(text, path, "lone_expr")
    return ExprResult(None if diagnostics else tree, diagnostics)


def parse_type(text: str, path: str = "<type>") -> TypeResult:
    tree, diagnostics = _parse(text, path, "lone_type")
    return TypeResult(None if diagnostics else tree, diagnostics)


def parse_module_expr(text: str, path: str = "<module>") -> ModuleExprResult:
    tree, diagnostics = _parse(text, path, "lone_module")
    return ModuleExprResult(None if diagnostics else tree, diagnostics)


def tokens(text: str, path: str) -> TokensResult:
    """For `presk dump --stage tokens`."""
    raw, lexical = lex(text, path)
    laid_out = layout(raw, path)
    return TokensResult(laid_out.tokens, _in_order([*lexical, *laid_out.diagnostics]))


def _parse(text: str, path: str, start: str) -> tuple[Any, list[Diagnostic]]:
    with _without_collection():
        raw, lexical = lex(text, path)
        laid_out = layout(raw, path)
        tree, syntactic = drive(path, laid_out, start)
    return tree, _in_order([*lexical, *laid_out.diagnostics, *syntactic])


@contextmanager
def _without_collection() -> Generator[None]:
    """Tokens and trees have no cycles: looking for them again and again would make a long parse twice as slow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _in_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    return sorted(diagnostics, key=lambda d: d.span.start.offset if d.span else -1)
