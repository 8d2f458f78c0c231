"""Builtins on functions: `grad`, `vjp`, `jvp`."""

from __future__ import annotations

from presk_rel.elab.ty import SCALAR_REAL, Function, Params, Real, TupleOf
from presk_rel.types.builtins.row import Use
from presk_rel.types.check.checker import Checker
from presk_rel.types.infer import Broken, IType, Meta, function_of, held, items_of, ity, params_of, result_of
from presk_rel.types.tree import TExpr, TGrad, TJvp, TVjp


def grad_hints(c: Checker, hint: IType | None) -> tuple[IType | None, ...]:
    """A gradient A → A is of a function A → ℝ[]."""
    return (function_of([_first_param(c, hint)], SCALAR_REAL),)


def derivative_hints(c: Checker, hint: IType | None) -> tuple[IType | None, ...]:
    """vjp and jvp take a function A → R, and give one whose first argument is an A."""
    return (function_of([_first_param(c, hint)], c.unifier.fresh_type()),)


def _first_param(c: Checker, hint: IType | None) -> IType:
    wanted = None if hint is None else c.unifier.shallow(hint)
    if isinstance(wanted, Function) and wanted.params:
        return params_of(wanted)[0]
    return c.unifier.fresh_type()


def grad(use: Use) -> TExpr | None:
    """(A → ℝ[]) → (A → A)."""
    ty = _function(use)
    if not isinstance(ty, Function):
        return ty
    c, fn = use.c, use.values[0]
    failed = c.unify(SCALAR_REAL, result_of(ty), fn.span, "the argument of `grad`")
    if failed is not None:
        message = f"`grad` takes a function whose value is ℝ[], and this one's is {c.unifier.show(ty.result)}"
        return c.error("E2012", message, fn.span, help="reduce it by mean or sum")
    param = params_of(ty)[0]
    _owe(use, param)
    return TGrad(fn, held(function_of([param], param)), use.span)


def vjp(use: Use) -> TExpr | None:
    """(A → R) → ((A, R) → A): the cotangent of x from that of f(x)."""
    ty = _function(use)
    if not isinstance(ty, Function):
        return ty
    param, result = params_of(ty)[0], result_of(ty)
    _owe(use, param, result)
    return TVjp(use.values[0], held(function_of([param, result], param)), use.span)


def jvp(use: Use) -> TExpr | None:
    """(A → R) → ((A, A) → R): the derivative of f at x along v."""
    ty = _function(use)
    if not isinstance(ty, Function):
        return ty
    param, result = params_of(ty)[0], result_of(ty)
    _owe(use, param, result)
    return TJvp(use.values[0], held(function_of([param, param], result)), use.span)


def _function(use: Use) -> Function | TExpr:
    """The type of the argument: a function of one argument."""
    c, fn = use.c, use.values[0]
    ty = c.unifier.shallow(ity(fn))
    if isinstance(ty, Meta) and ty.number is None:
        ty = function_of([c.unifier.fresh_type()], c.unifier.fresh_type())
        c.unify(ity(fn), ty, use.span, f"the argument of `{use.name}`")
    if isinstance(ty, Function) and len(ty.params) == 1:
        return ty
    message = f"`{use.name}` takes a function of one argument, not {c.show(fn)}"
    fixed = f"fix the other arguments by a lambda: {use.name}(λ θ. f(θ, x))"
    given = f"give it the function, not its value: {use.name}(λ θ. f(θ, x))"
    return c.error("E2012", message, fn.span, help=fixed if isinstance(ty, Function) else given)


def _owe(use: Use, *types: IType) -> None:
    for ty in types:
        use.c.at_end.append(lambda ty=ty: _differentiable(use, ty))


def _differentiable(use: Use, ty: IType) -> None:
    if not _has_reals(use.c, ty):
        message = f"`{use.name}`: there is no derivative with respect to {use.c.unifier.show(ty)}"
        use.c.error("E2012", message, use.span, help="derivatives are taken in real tensors and parameter trees")


def _has_reals(c: Checker, ty: IType) -> bool:
    match c.unifier.shallow(ty):
        case Real() | Params() | Meta() | Broken():
            return True
        case TupleOf() as t:
            return any(_has_reals(c, i) for i in items_of(t))
        case _:
            return False
