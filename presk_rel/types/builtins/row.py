"""What a row of the table of builtins is (spec: "Builtins")."""

from __future__ import annotations

from collections.abc import Callable

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.smt.linear import Linear
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Checker
from presk_rel.types.infer import IType
from presk_rel.types.tree import TExpr


@record
class Use:
    """One call of a builtin, its arguments typed. `span` is the call, `at` the name."""

    c: Checker
    name: str
    axes: tuple[ast.Ident, ...]
    dims: tuple[tuple[ast.Ident, Linear], ...]
    values: tuple[TExpr, ...]
    named: dict[str, TExpr]
    span: Span
    at: Span
    hint: IType | None


Rule = Callable[[Use], "TExpr | None"]
"""Gives the typed call, or None while it waits for the type of an argument. Reports what is wrong. Arguments are never
broken. Nothing may be unified or reported before None."""

Hints = Callable[[Checker, "IType | None"], "tuple[IType | None, ...]"]


def no_hints(_: Checker, __: IType | None) -> tuple[IType | None, ...]:
    return ()


@record
class Builtin:
    """`values` names the arguments by position; `axes` says how many `axis a` arguments there may be, `dims` how many
    `name: dim`; `named` are the optional named ones. `hints` gives what literals and lambdas among the values
    should be, from what the whole call should be."""

    name: str
    values: tuple[str, ...]
    rule: Rule
    axes: tuple[int, ...] = (0,)
    dims: int = 0
    named: tuple[str, ...] = ()
    hints: Hints = no_hints
