"""`let`, patterns, tuples and lambdas (spec: "Forms")."""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.elab.ty import Function, ModuleValue, TupleOf
from presk_rel.elab.typeexpr import IN_FUNCTION, type_of
from presk_rel.facts.ast_facts import decl_id
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Checker, is_bad
from presk_rel.types.infer import (
    BROKEN,
    Broken,
    IType,
    Meta,
    function_of,
    held,
    items_of,
    ity,
    params_of,
    result_of,
    tuple_of,
)
from presk_rel.types.tree import PTuple, PVar, TExpr, TLambda, TLet, TPattern, TTuple


def infer_let(c: Checker, expr: ast.Let, hint: IType | None) -> TExpr:
    """A chain of lets, walked by a loop."""
    bound: list[tuple[TPattern, TExpr, Span]] = []
    body: ast.Expr = expr
    while isinstance(body, ast.Let):
        value = c.infer(body.value)
        bound.append((bind(c, body.pattern, ity(value)), value, body.span))
        body = body.body
    result = c.infer(body, hint)
    for pattern, value, span in reversed(bound):
        result = TLet(pattern, value, result, result.type, span)
    return result


def bind(c: Checker, pattern: ast.Pattern, ty: IType) -> TPattern:
    """Binds the names of a pattern to the parts of a type."""
    match pattern:
        case ast.NamePattern(ast.Ident("_")):
            return None
        case ast.NamePattern(ident):
            binder = c.env[decl_id(ident)] = c.binder(ident, ty)
            return PVar(binder)
        case ast.TuplePattern(items):
            parts = _parts(c, pattern, ty)
            return PTuple(tuple(bind(c, p, t) for p, t in zip(items, parts, strict=True)))


def _parts(c: Checker, pattern: ast.TuplePattern, ty: IType) -> tuple[IType, ...]:
    ty, n = c.unifier.shallow(ty), len(pattern.items)
    broken: tuple[IType, ...] = (BROKEN,) * n
    match ty:
        case TupleOf() if len(ty.items) == n:
            return items_of(ty)
        case Meta(number=None):
            parts = tuple(c.unifier.fresh_type() for _ in range(n))
            c.unify(ty, tuple_of(parts), pattern.span, "this pattern")
            return parts
        case Broken():
            return broken
        case _:
            c.error("E2026", f"a pattern of {n} names cannot take apart {c.unifier.show(ty)}", pattern.span)
            return broken


def infer_tuple(c: Checker, expr: ast.Tuple, hint: IType | None) -> TExpr:
    shallow = None if hint is None else c.unifier.shallow(hint)
    hints: tuple[IType | None, ...] = (None,) * len(expr.items)
    if isinstance(shallow, TupleOf) and len(shallow.items) == len(expr.items):
        hints = items_of(shallow)
    items = tuple(c.infer(e, h) for e, h in zip(expr.items, hints, strict=True))
    if any(is_bad(i) for i in items):
        return c.broken(expr.span)
    return TTuple(items, held(tuple_of(ity(i) for i in items)), expr.span)


def infer_lambda(c: Checker, expr: ast.Lambda, hint: IType | None) -> TExpr:
    """The parameter's type is the one written, else the hinted one, else found by the uses of the parameter and of the
    function."""
    wanted = None if hint is None else c.unifier.shallow(hint)
    known = wanted if isinstance(wanted, Function) and len(wanted.params) == 1 else None
    param = _parameter(c, expr, None if known is None else params_of(known)[0])
    ident = _ident(expr.pattern)
    binder = c.binder(ident, param)
    if isinstance(expr.pattern, ast.NamePattern):
        c.env[decl_id(ident)] = binder
        pattern: TPattern = PVar(binder)
    else:
        pattern = bind(c, expr.pattern, param)
    body = c.infer(expr.body, None if known is None else result_of(known))
    if is_bad(body):
        return c.broken(expr.span)
    return TLambda(binder, pattern, body, held(function_of([param], ity(body))), expr.span)


def _parameter(c: Checker, expr: ast.Lambda, hint: IType | None) -> IType:
    if expr.type is None:
        return c.unifier.fresh_type() if hint is None else hint
    ty = type_of(c.program.elab, expr.type, IN_FUNCTION)
    if isinstance(ty, ModuleValue):
        c.error(
            "E2023",
            "the parameter of a lambda is a value, and a module is none",
            expr.type.span,
            help="pass its parameters: params M",
        )
        return BROKEN
    if ty is None:
        c.failed = True
        return BROKEN
    return ty


def _ident(pattern: ast.Pattern) -> ast.Ident:
    return pattern.name if isinstance(pattern, ast.NamePattern) else ast.Ident("p", pattern.span)
