"""Names and paths as values: variables, parameters of the module around, constants, dims, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from presk_rel.diagnostics import Span
from presk_rel.elab.context import BUILTIN
from presk_rel.elab.declared import Declared
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Applied, Function, Hyper, Idx, Mask, Params, Real, Type, field_names, field_type
from presk_rel.smt.linear import Linear, symbol
from presk_rel.syntax import ast
from presk_rel.syntax.foreign import NAMES
from presk_rel.types.builtins.call import call_builtin
from presk_rel.types.check.applying import call_signature
from presk_rel.types.check.arguments import Arg, Given
from presk_rel.types.check.checker import Checker, is_bad
from presk_rel.types.check.members import arguments_of, call_member, function_of_module, needed
from presk_rel.types.check.places import Place, place_of, theta_of
from presk_rel.types.infer import Broken, IType, Meta, function_of, held, ity, params_of
from presk_rel.types.instantiate import instantiate
from presk_rel.types.tree import PVar, TDim, TExpr, TField, TFunction, TLambda, TLiteral, TVar

NAT = Hyper("nat")


def infer_path(c: Checker, expr: ast.Name | ast.Field | ast.DimApply, hint: IType | None) -> TExpr:
    elab = c.program.elab
    if isinstance(expr, ast.Name):
        found = elab.names.resolve(expr.span)
        if found is not None and found in c.env:
            binder = c.env[found]
            return TVar(binder, binder.type, expr.span)
        if found is not None and found in elab.implicit:
            return TDim(symbol(expr.text), NAT, expr.span)
    base = expr.base if isinstance(expr, ast.DimApply) else expr
    target = elab.target(base)
    if isinstance(target, str):
        return _builtin(c, target.removeprefix(BUILTIN), expr, hint)
    selects = isinstance(target, Declared) and isinstance(target.node, ast.Fn) and target.module is not None
    if isinstance(target, Declared) and not (selects and isinstance(expr, ast.Field)):
        return _declared(c, target, expr, hint)
    if isinstance(expr, ast.Field):
        return _field(c, expr, hint)
    if elab.unresolved(base):
        return c.broken(expr.span)
    return c.error("E2022", "this is no value", expr.span)


def _declared(c: Checker, target: Declared, expr: ast.Name | ast.Field | ast.DimApply, hint: IType | None) -> TExpr:
    elab, span = c.program.elab, expr.span
    match target.node:
        case ast.Const():
            value = elab.constants.get(target.id)
            return c.broken(span) if value is None else TLiteral(Fraction(value), NAT, span)
        case ast.Dim() | ast.TypeParam(_, "dim"):
            return TDim(symbol(elab.symbol_of(target)), NAT, span)
        case ast.Fn():
            return _function(c, c.program.signatures[target.id], target, expr, hint)
        case ast.Param() | ast.Use():
            return _own(c, target, expr)
        case _:
            return _no_value(c, target, span)


def _own(c: Checker, target: Declared, expr: ast.Expr) -> TExpr:
    """A parameter or sub-module of the module around: `θ.w`."""
    theta = theta_of(c, expr)
    ty = None if theta is None else field_type(c.program.elab.modules, theta.type.instance, target.name)
    if theta is None or ty is None:
        return c.broken(expr.span)
    return TField(theta, target.name, ty, expr.span)


_KINDS: dict[type, str] = {
    ast.Module: "a module",
    ast.Model: "a model",
    ast.Import: "an imported file",
    ast.TypeAlias: "a type",
    ast.Effect: "an effect",
    ast.Config: "a configuration block",
    ast.TypeParam: "a shape",
    ast.FnParam: "a module",
}


def _no_value(c: Checker, target: Declared, span: Span) -> TExpr:
    if isinstance(target.node, ast.FnParam) and target.id not in c.program.elab.module_params:
        return c.error("E2023", f"a default cannot use the parameter `{target.name}`", span)
    help_text = None
    if isinstance(target.node, ast.Module | ast.FnParam | ast.Model):
        help_text = f"call one of its functions, `{target.name}.apply(…)`, or pass it where a module is expected"
    return c.error("E2023", f"`{target.name}` is {_KINDS[type(target.node)]}, not a value", span, help=help_text)


# ------------------------------------------------------------------------------------------------ functions as values


def _function(c: Checker, signature: Signature, target: Declared, expr: ast.Expr, hint: IType | None) -> TExpr:
    """A function of the file as a value. A sibling in the same module closes over θ, so it becomes a lambda."""
    span, names = expr.span, needed(c, signature, expr.span)
    if names is None or signature.broken or signature.result is None or any(p.type is None for p in signature.params):
        return c.broken(span)
    if target.module is None:
        return _function_value(c, signature, signature.result, {}, span)
    theta = theta_of(c, expr)
    if theta is None:
        return c.broken(span)
    own = {d: symbol(d) for d in signature.module_dims}
    return _eta(c, span, hint, names, lambda args: call_signature(c, signature, own, (theta,), args, span))


def _function_value(c: Checker, signature: Signature, result: Type, given: Mapping[str, Linear], span: Span) -> TExpr:
    """A named function; of a module, with its parameter tree as first argument."""
    inst = instantiate(c.unifier, signature, given, span)
    front = () if signature.theta is None else (signature.theta,)
    params = [inst.type(t) for t in (*front, *(p.type for p in signature.params)) if t is not None]
    dims = tuple((d, inst.lengths[d]) for d in signature.dims)
    return TFunction(signature.core, dims, held(function_of(params, inst.type(result))), span)


def _builtin(c: Checker, name: str, expr: ast.Expr, hint: IType | None) -> TExpr:
    """`gelu` as a value is λ x. gelu(x)."""
    return _eta(c, expr.span, hint, ("x",), lambda args: call_builtin(c, name, args, expr.span, expr.span, None))


def _eta(
    c: Checker,
    span: Span,
    hint: IType | None,
    names: Sequence[str],
    body_of: Callable[[list[Arg]], TExpr],
    tree: Params | None = None,
) -> TExpr:
    """What `body_of` calls, as a function of arguments of these names; of a parameter tree before them, if `tree`."""
    wanted = None if hint is None else c.unifier.shallow(hint)
    count = len(names) + (tree is not None)
    if count == 0:
        return c.error("E2023", "a function without arguments is no value", span, help="call it where it is needed")
    params: list[IType] = [c.unifier.fresh_type() for _ in range(count)]
    if isinstance(wanted, Function) and len(wanted.params) == count:
        params = list(params_of(wanted))
    if tree is not None:
        params[0], names = tree, ("θ", *names)
    binders = [c.binder(ast.Ident(name, span), ty) for name, ty in zip(names, params, strict=True)]
    body = body_of([Arg("positional", None, Given(TVar(b, b.type, span), span), span) for b in binders])
    if is_bad(body):
        return c.broken(span)
    ty = held(function_of(params, ity(body)))
    return TLambda(binders[0], PVar(binders[0]), body, ty, span, tuple(binders[1:]))


def _field(c: Checker, expr: ast.Field, hint: IType | None) -> TExpr:
    """`l1.w`, `l1.apply` as a value, `θ.l1.w`."""
    place = place_of(c, expr.base)
    if place is not None:
        return _of_place(c, place, expr, hint)
    base = c.infer(expr.base)
    return c.later(lambda: _of_tree(c, base, expr.name, expr.span), expr.span)


def _of_place(c: Checker, place: Place, expr: ast.Field, hint: IType | None) -> TExpr:
    if place.instance is None:
        return c.broken(expr.span)
    if place.theta is not None and expr.name.text in field_names(c.program.elab.modules, place.instance):
        return _of_tree(c, place.theta, expr.name, expr.span) or c.broken(expr.span)
    if place.theta is None and isinstance(place.instance, Applied):
        return _member(c, place.instance, expr)
    names = arguments_of(c, place.instance, expr.name, expr.span)
    if names is None:
        return c.broken(expr.span)
    tree = Params(place.instance) if place.theta is None else None
    return _eta(c, expr.span, hint, names, lambda args: call_member(c, place, expr.name, args, expr.span), tree)


def _member(c: Checker, instance: Applied, expr: ast.Field) -> TExpr:
    """`net.apply` as a value: a function of the parameter tree and the arguments."""
    signature = function_of_module(c, instance, expr.name)
    if signature is None or needed(c, signature, expr.span) is None:
        return c.broken(expr.span)
    if signature.broken or signature.result is None or any(p.type is None for p in signature.params):
        return c.broken(expr.span)
    given = dict(zip(signature.module_dims, instance.args, strict=False))
    return _function_value(c, signature, signature.result, given, expr.span)


def _of_tree(c: Checker, base: TExpr, name: ast.Ident, span: Span) -> TExpr | None:
    """A field of a parameter tree."""
    ty = c.type_of(base)
    match ty:
        case Broken():
            return c.broken(span)
        case Meta():
            return None
        case Params(instance):
            found = field_type(c.program.elab.modules, instance, name.text)
            if found is not None:
                return TField(base, name.text, found, span)
            if c.program.elab.incomplete:
                return c.broken(span)
            names = ", ".join(field_names(c.program.elab.modules, instance))
            return c.error(
                "E2029", f"{ty} has no field `{name.text}`", name.span, help=f"its fields: {names or 'none'}"
            )
        case _:
            called = f"a function is called as {name.text[:40]}(x) or x |> {name.text[:40]}"
            helped = NAMES.get(name.text, called if isinstance(ty, Real | Idx | Mask) else None)
            return c.error("E2029", f"{c.show(base)} has no fields", name.span, help=helped)
