"""Literals (spec: "Literals"): a real scalar or a hyperparameter, as the context takes."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.diagnostics import Span
from presk_rel.elab.numbers import exact
from presk_rel.elab.ty import SCALAR_REAL, Hyper, Real
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Checker
from presk_rel.types.infer import IType, NumberKind, held
from presk_rel.types.numbers import admits
from presk_rel.types.tree import TExpr, TLiteral


def infer_number(c: Checker, expr: ast.Nat | ast.Decimal, hint: IType | None) -> TExpr:
    value = exact(c.program.elab.diagnostics, expr)
    if value is None:
        return c.broken(expr.span)
    return number(c, value, "decimal" if isinstance(expr, ast.Decimal) else "natural", hint, expr.span)


def number(c: Checker, value: Fraction, kind: NumberKind, hint: IType | None, span: Span) -> TExpr:
    """A number of the hinted type if it has such numbers, else of a type still open."""
    hint = None if hint is None else c.unifier.shallow(hint)
    ty: IType
    match hint:
        case Real():
            ty = SCALAR_REAL
        case Hyper() if admits(hint, kind):
            ty = hint
        case _:
            ty = c.unifier.fresh_type(kind)
    return TLiteral(value, held(ty), span)


def infer_no_value(c: Checker, expr: ast.Str | ast.Quantity, _: IType | None) -> TExpr:
    what = "a string" if isinstance(expr, ast.Str) else "a quantity with a unit"
    return c.error(
        "E2025",
        f"{what} has no meaning in an expression",
        expr.span,
        help="strings and quantities belong to configuration blocks",
    )


def only_literals(expr: ast.Expr) -> bool:
    """Is `expr` built from literals by operators alone, so that its context says whether it is real?"""
    stack: list[ast.Expr] = [expr]
    while stack:
        node = stack.pop()
        match node:
            case ast.Nat() | ast.Decimal():
                continue
            case ast.Negate(operand):
                stack.append(operand)
            case ast.Binary("+" | "-" | "*" | "/" | "^", left, right):
                stack.extend((left, right))
            case _:
                return False
    return True
