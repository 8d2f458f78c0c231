"""The vocabulary of the `init =` clause (spec: "Initializers"); anything else is E2013."""

from __future__ import annotations

from presk_rel.elab.context import Elab
from presk_rel.elab.dims import path_text
from presk_rel.elab.numbers import exact
from presk_rel.elab.ty import Init
from presk_rel.syntax import ast

_VOCABULARY = "an initializer is zeros, ones, normal(std = 0.02) or xavier_uniform"


def init_of(elab: Elab, clause: ast.Expr | None) -> Init | None:
    """The initializer of a clause (none: zeros), None after an error."""
    match clause:
        case None | ast.Name("zeros"):
            return Init("zeros")
        case ast.Name("ones"):
            return Init("ones")
        case ast.Name("xavier_uniform"):
            return Init("xavier_uniform")
        case ast.Call(ast.Name("normal"), (ast.Named(ast.Ident("std"), ast.Decimal() | ast.Nat() as std),)):
            return None if exact(elab.diagnostics, std) is None else Init("normal", std.text)
        case ast.Call(ast.Name("normal")):
            return _refuse(elab, clause, "normal takes its standard deviation as a decimal literal: normal(std = 0.02)")
        case ast.Name() | ast.Field():
            return _refuse(elab, clause, f"`{path_text(clause)}` is no initializer")
        case _:
            return _refuse(elab, clause, "this is no initializer")


def _refuse(elab: Elab, clause: ast.Expr, message: str) -> None:
    elab.error("E2013", message, clause.span, help=_VOCABULARY)
