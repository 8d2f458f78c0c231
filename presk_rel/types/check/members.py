"""Calls of module functions: `l1.apply(x)`, `net.apply(θ, x)`, `blocks.apply(x, …)` of a stack, `(A ∘ B).apply`."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from presk_rel.diagnostics import Label, Span
from presk_rel.elab.context import id_of
from presk_rel.elab.declared import members
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Applied, Composed, Instance, ModuleValue, Params, Stacked
from presk_rel.syntax import ast
from presk_rel.types.check.applying import apply_signature, call_signature
from presk_rel.types.check.arguments import Arg, Given, check_value, infer_all
from presk_rel.types.check.checker import Blame, Checker, is_bad
from presk_rel.types.check.places import Place
from presk_rel.types.infer import held
from presk_rel.types.tree import TExpr, TField, TStackCall


def call_member(c: Checker, place: Place, name: ast.Ident, args: Sequence[Arg], span: Span) -> TExpr:
    """`place.name(args)`; where the place has no parameter tree of its own, the first argument is one."""
    if place.instance is None:
        infer_all(c, args)
        return c.broken(span)
    if not isinstance(place.instance, Composed) and function_of_module(c, place.instance, name) is None:
        infer_all(c, args)
        return c.broken(span)
    theta, rest = place.theta, list(args)
    if theta is None:
        theta = _explicit_theta(c, place.instance, name, rest, span)
        rest = rest[1:]
    if is_bad(theta):
        infer_all(c, rest)
        return c.broken(span)
    return _call(c, place.instance, theta, name, rest, span)


def _explicit_theta(c: Checker, instance: Instance, name: ast.Ident, args: list[Arg], span: Span) -> TExpr:
    expected = Params(instance)
    if not args or args[0].form != "positional" or args[0].value is None:
        return c.error(
            "E2021",
            f"`{name.text}` takes the parameter tree as its first argument",
            span,
            help=f"pass θ : {c.unifier.show(expected)}",
        )
    blame = Blame(f"the parameter tree of `{c.unifier.show(ModuleValue(instance))}`")
    return check_value(c, args[0].value, expected, blame)


def _call(c: Checker, instance: Instance, theta: TExpr, name: ast.Ident, args: Sequence[Arg], span: Span) -> TExpr:
    match instance:
        case Applied(_, dims):
            signature = function_of_module(c, instance, name)
            if signature is None:
                return c.broken(span)
            given = dict(zip(signature.module_dims, dims, strict=False))
            return call_signature(c, signature, given, (theta,), args, span)
        case Stacked():
            return _through_stack(c, instance, theta, name, args, span)
        case Composed(outer, inner):
            return _composed(c, outer, inner, theta, name, args, span)


def function_of_module(c: Checker, instance: Instance, name: ast.Ident) -> Signature | None:
    """The function `name` of the module under the stacks of `instance`; E2028 if it has none."""
    while isinstance(instance, Stacked):
        instance = instance.inner
    if not isinstance(instance, Applied):
        c.error(
            "E9001",
            f"`{name.text}` through a stack of a composition is not supported by this version yet",
            name.span,
            help="declare a module that uses the composition, and stack that",
        )
        return None
    module = c.program.elab.nodes[instance.module]
    known = members(module)
    found = known.get(name.text)
    if found is not None and isinstance(found[1], ast.Fn):
        signature = c.program.signatures[id_of(found[0])]
        if signature.theta is None:
            c.failed = True
            return None
        return signature
    functions = [n for n, (_, m) in known.items() if isinstance(m, ast.Fn)]
    near = get_close_matches(name.text, functions, 1)
    c.error(
        "E2028",
        f"the module `{module.name.text}` has no function `{name.text}`",
        name.span,
        labels=(Label(module.name.span, "the module"),),
        help=f"did you mean `{near[0]}`?" if near else f"its functions: {', '.join(functions) or 'none'}",
    )
    return None


def _through_stack(
    c: Checker, instance: Stacked, theta: TExpr, name: ast.Ident, args: Sequence[Arg], span: Span
) -> TExpr:
    """`blocks.apply(x, …)` is M.apply applied L times, so that it gives what it takes first."""
    inner = instance.inner
    if not isinstance(inner, Applied):
        infer_all(c, args)
        return c.error(
            "E9001",
            "a call through a stack of stacks is not supported by this version yet",
            span,
            help="declare a module that uses the inner stack, and stack that",
        )
    signature = function_of_module(c, inner, name)
    if signature is None:
        return c.broken(span)
    given = dict(zip(signature.module_dims, inner.args, strict=False))
    applied = apply_signature(c, signature, given, args, span)
    if applied is None:
        return c.broken(span)
    if not applied.args:
        return c.error("E2027", f"`{signature.core}` takes no argument that a stack could pass on", span)
    failed = c.unify(applied.result, applied.first, span, "the stack")
    if failed is not None:
        message = f"through a stack, `{signature.core}` must give what it takes first: it takes "
        message += f"{c.unifier.show(applied.first)} and gives {c.unifier.show(applied.result)}"
        reason, example = c.reason(failed)
        return c.error("E2027", message + reason, span, counterexample=example)
    acc, *extras = applied.args
    return TStackCall(
        instance.count, signature.core, applied.dim_args, theta, acc, tuple(extras), held(applied.first), span
    )


def _composed(
    c: Checker, outer: Instance, inner: Instance, theta: TExpr, name: ast.Ident, args: Sequence[Arg], span: Span
) -> TExpr:
    """`(A ∘ B).apply(x)` is A.apply(B.apply(x))."""
    if name.text != "apply":
        infer_all(c, args)
        return c.error("E2028", f"a composition has the function `apply` only, not `{name.text}`", name.span)
    first = _call(c, inner, TField(theta, "inner", Params(inner), span), name, args, span)
    if is_bad(first):
        return c.broken(span)
    passed = Arg("positional", None, Given(first, span), span)
    return _call(c, outer, TField(theta, "outer", Params(outer), span), name, [passed], span)
