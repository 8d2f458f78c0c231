"""Builtins on functions: `grad`."""

from __future__ import annotations

from presk_rel.elab.ty import SCALAR_REAL, Function, Params, Real, TupleOf
from presk_rel.types.builtins.row import Use
from presk_rel.types.check.checker import Checker
from presk_rel.types.infer import Broken, IType, Meta, function_of, held, items_of, ity, params_of
from presk_rel.types.tree import TExpr, TGrad


def grad_hints(c: Checker, hint: IType | None) -> tuple[IType | None, ...]:
    """A gradient A → A is of a function A → ℝ[]."""
    wanted = None if hint is None else c.unifier.shallow(hint)
    if isinstance(wanted, Function) and len(wanted.params) == 1:
        return (function_of(params_of(wanted), SCALAR_REAL),)
    return (function_of([c.unifier.fresh_type()], SCALAR_REAL),)


def grad(use: Use) -> TExpr | None:
    """(A → ℝ[]) → (A → A)."""
    c, fn = use.c, use.values[0]
    ty = c.unifier.shallow(ity(fn))
    if isinstance(ty, Meta):
        ty = function_of([c.unifier.fresh_type()], SCALAR_REAL)
        c.unify(ity(fn), ty, use.span, "the argument of `grad`")
    if not isinstance(ty, Function) or len(ty.params) != 1:
        return c.error(
            "E2012",
            f"`grad` takes a function of one argument, not {c.show(fn)}",
            fn.span,
            help="fix the other arguments by a lambda: grad(λ θ. f(θ, x))(θ)",
        )
    failed = c.unify(SCALAR_REAL, held(ty.result), fn.span, "the argument of `grad`")
    if failed is not None:
        return c.error(
            "E2012",
            f"`grad` takes a function whose value is ℝ[], and this one's is {c.unifier.show(ty.result)}",
            fn.span,
            help="reduce it by mean or sum",
        )
    param = params_of(ty)[0]
    c.at_end.append(lambda: _differentiable(use, param))
    return TGrad(fn, held(function_of([param], param)), use.span)


def _differentiable(use: Use, param: IType) -> None:
    if not _has_reals(use.c, param):
        use.c.error(
            "E2012",
            f"there is no gradient with respect to {use.c.unifier.show(param)}",
            use.span,
            help="gradients are taken in real tensors and parameter trees",
        )


def _has_reals(c: Checker, ty: IType) -> bool:
    match c.unifier.shallow(ty):
        case Real() | Params() | Meta() | Broken():
            return True
        case TupleOf() as t:
            return any(_has_reals(c, i) for i in items_of(t))
        case _:
            return False
