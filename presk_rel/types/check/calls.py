"""Calls (spec: "Calls"): of functions, of a module's functions through a path, through a stack and a composition, of
builtins, of function values; and `x |> f`, which is f(x)."""

from __future__ import annotations

from collections.abc import Sequence

from presk_rel.diagnostics import Span
from presk_rel.elab.context import BUILTIN
from presk_rel.elab.declared import Declared
from presk_rel.elab.dims import length
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Function, Params, TupleOf
from presk_rel.smt.linear import Linear, symbol
from presk_rel.syntax import ast
from presk_rel.types.builtins.call import call_builtin, is_derivative
from presk_rel.types.check.applying import call_signature
from presk_rel.types.check.arguments import Arg, Given, arguments, infer_all, infer_value
from presk_rel.types.check.checker import Blame, Checker, is_bad
from presk_rel.types.check.members import call_member
from presk_rel.types.check.places import place_of, theta_of
from presk_rel.types.infer import Broken, IType, Meta, function_of, held, ity, params_of, result_of
from presk_rel.types.tree import TApply, TExpr


def infer_call(c: Checker, expr: ast.Call, hint: IType | None) -> TExpr:
    return call(c, expr.callee, arguments(expr.args), expr.span, hint)


def pipe(c: Checker, node: ast.Binary, left: TExpr, hint: IType | None) -> TExpr:
    """`x |> f`."""
    given = Given(left, node.left.span)
    return call(c, node.right, [Arg("positional", None, given, given.span)], node.span, hint)


def call(c: Checker, callee: ast.Expr, args: Sequence[Arg], span: Span, hint: IType | None) -> TExpr:
    base = callee.base if isinstance(callee, ast.DimApply) else callee
    target = c.program.elab.target(base)
    if isinstance(target, str) and base is callee:
        return call_builtin(c, target.removeprefix(BUILTIN), args, span, callee.span, hint)
    if isinstance(target, Declared) and is_own_function(target, base):
        return _call_declared(c, target, callee, args, span)
    if isinstance(callee, ast.Field):
        place = place_of(c, callee.base)
        if place is not None:
            return call_member(c, place, callee.name, args, span)
    return _call_value(c, callee, args, span, hint)


# ------------------------------------------------------------------------------------------------------- functions


def is_own_function(target: Declared, path: ast.Expr) -> bool:
    """A function of a file, or of the module around by its bare name (`M.apply` is a call through a module)."""
    return isinstance(target.node, ast.Fn) and (target.module is None or isinstance(path, ast.Name))


def _call_declared(c: Checker, target: Declared, callee: ast.Expr, args: Sequence[Arg], span: Span) -> TExpr:
    signature = c.program.signatures[target.id]
    given = _dim_arguments(c, signature, callee)
    if given is None:
        infer_all(c, args)
        return c.broken(span)
    if target.module is None:
        return call_signature(c, signature, given, (), args, span)
    theta = theta_of(c, callee)
    if theta is None:
        infer_all(c, args)
        return c.broken(span)
    own = {d: symbol(d) for d in signature.module_dims}
    return call_signature(c, signature, {**own, **given}, (theta,), args, span)


def _dim_arguments(c: Checker, signature: Signature, callee: ast.Expr) -> dict[str, Linear] | None:
    """`f{D, 4}(…)`: the function's own type parameters."""
    if not isinstance(callee, ast.DimApply):
        return {}
    forms = [length(c.program.elab, d) for d in callee.dims]
    if len(forms) != len(signature.own_dims):
        c.error(
            "E1031",
            f"`{signature.core}` takes {len(signature.own_dims)} dimension arguments, {len(forms)} given",
            callee.span,
        )
        return None
    known = [f for f in forms if f is not None]
    return dict(zip(signature.own_dims, known, strict=True)) if len(known) == len(forms) else None


# --------------------------------------------------------------------------------------------------------- values


def _call_value(c: Checker, callee: ast.Expr, args: Sequence[Arg], span: Span, hint: IType | None) -> TExpr:
    """A function value applied. The arguments of a lambda (or its gradient) written on the spot give its types."""
    wrong = next((a for a in args if a.form != "positional"), None)
    if wrong is not None:
        infer_all(c, args)
        return c.error("E2021", "a function value takes its arguments by position", wrong.span)
    values = [a.value for a in args if a.value is not None]
    if isinstance(callee, ast.Lambda) or is_derivative(c, callee):
        nodes = [infer_value(c, v) for v in values]
        wanted = function_of([ity(n) for n in nodes], hint if hint is not None else c.unifier.fresh_type())
        return _apply(c, c.infer(callee, wanted), nodes, args, callee.span, span)
    fn = c.infer(callee)
    ty = c.unifier.shallow(ity(fn))
    hints = params_of(ty) if isinstance(ty, Function) else ()
    nodes = [infer_value(c, v, hints[i] if i < len(hints) else None) for i, v in enumerate(values)]
    return _apply(c, fn, nodes, args, callee.span, span)


def _apply(c: Checker, fn: TExpr, nodes: list[TExpr], args: Sequence[Arg], at: Span, span: Span) -> TExpr:
    if is_bad(fn) or any(is_bad(n) for n in nodes):
        return c.broken(span)
    ty = c.unifier.shallow(ity(fn))
    if isinstance(ty, Meta) and ty.number is None:
        ty = function_of([ity(n) for n in nodes], c.unifier.fresh_type())
        c.unify(ity(fn), ty, at, "this function")
    if isinstance(ty, Broken):
        return c.broken(span)
    if not isinstance(ty, Function):
        helped = "call one of its functions: l1.apply(x)" if isinstance(ty, Params) else None
        return c.error("E2022", f"this is called like a function, but it is {_a(c, fn)}", at, help=helped)
    params = params_of(ty)
    if len(params) != len(nodes):
        return c.error(
            "E2021",
            f"this function takes {len(params)} argument{'' if len(params) == 1 else 's'}, {len(nodes)} given",
            span,
        )
    for node, param, arg in zip(nodes, params, args, strict=True):
        if is_bad(c.expect(node, param, arg.span, Blame("the argument"))):
            return c.broken(span)
    c.retry()
    return TApply(fn, tuple(nodes), held(result_of(ty)), span)


def _a(c: Checker, node: TExpr) -> str:
    ty = c.unifier.shallow(ity(node))
    return "a tuple" if isinstance(ty, TupleOf) else f"a value of type {c.unifier.show(ty)}"
