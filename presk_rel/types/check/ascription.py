"""`(e : T)` (spec: "Ascription"): says a type, injects a number into ℝ, names axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from presk_rel.elab.ty import SCALAR_REAL, Hyper, ModuleValue, Real, Type
from presk_rel.elab.typeexpr import IN_FUNCTION, type_of
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Blame, Checker, is_bad
from presk_rel.types.infer import Broken, IType, Meta, held, ity, tuple_of
from presk_rel.types.tree import TApply, TCall, TExpr, TField, TPrim, TStackCall, TTuple

_FREE = (TPrim, TCall, TStackCall, TApply, TField)
"""Expressions that become a binding of their own, whose type may name axes that the operation does not."""


def infer_ascription(c: Checker, expr: ast.Ascribe, _: IType | None) -> TExpr:
    wanted = type_of(c.program.elab, expr.type, IN_FUNCTION)
    if isinstance(wanted, ModuleValue):
        c.error("E2023", "a module is no type of values", expr.type.span, help="its parameters have the type params M")
        wanted = None
    node = c.infer(expr.value, wanted)
    if wanted is None or is_bad(node):
        return c.broken(expr.span)
    known = wanted
    return c.later(lambda: _ascribed(c, expr, node, known), expr.span)


def _ascribed(c: Checker, expr: ast.Ascribe, node: TExpr, wanted: Type) -> TExpr | None:
    ty = c.type_of(node)
    if isinstance(ty, Broken):
        return c.broken(expr.span)
    if wanted == SCALAR_REAL and isinstance(ty, Hyper) and ty.kind != "bool":
        return TPrim("real", (), (node,), SCALAR_REAL, expr.span)
    if isinstance(ty, Meta) and ty.number is None and wanted == SCALAR_REAL:
        return None
    checked = c.expect(node, wanted, expr.value.span, Blame("this"))
    return checked if is_bad(checked) else named(c, checked, wanted)


def named(c: Checker, node: TExpr, wanted: Type) -> TExpr:
    """`node` with the type `wanted`, which may name axes that it leaves unnamed. A variable's type is its binder's:
    where names differ it goes through a tuple, which costs nothing at run time."""
    if str(c.type_of(node)) == str(c.unifier.resolve(wanted)) or not isinstance(wanted, Real):
        return node
    if isinstance(node, _FREE) and not isinstance(node, TField):
        return cast("TExpr", cast("Callable[..., object]", replace)(node, type=wanted))
    pair = TTuple((node,), held(tuple_of([ity(node)])), node.span)
    return TPrim("proj", (0,), (pair,), wanted, node.span)
