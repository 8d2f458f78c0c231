"""Calls of module functions: `l1.apply(x)`, `net.apply(θ, x)`, `blocks.apply(x, …)` of a stack, `(A ∘ B).apply`."""

from __future__ import annotations

from collections.abc import Sequence

from presk_rel.diagnostics import Label, Span
from presk_rel.elab.context import id_of
from presk_rel.elab.declared import members
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Applied, Composed, Instance, ModuleValue, Params, Stacked
from presk_rel.syntax import ast
from presk_rel.types.check.applying import apply_signature, call_signature
from presk_rel.types.check.arguments import Arg, Given, check_value, infer_all, infer_value
from presk_rel.types.check.checker import Blame, Checker, is_bad
from presk_rel.types.check.lifted import Lifted
from presk_rel.types.check.places import Place
from presk_rel.types.infer import IType, held, ity
from presk_rel.types.tree import TExpr, TField, TStackCall, TVar


def call_member(c: Checker, place: Place, name: ast.Ident, args: Sequence[Arg], span: Span) -> TExpr:
    """`place.name(args)`; where the place has no parameter tree of its own, the first argument is one."""
    if place.instance is None:
        infer_all(c, args)
        return c.broken(span)
    if _repeated(place.instance) is not None and function_of_module(c, place.instance, name) is None:
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
    what = f"the parameter tree of `{c.unifier.show(ModuleValue(instance))}`"
    blame = Blame(what, help=f"the parameters come first: {name.text}(θ, …) with θ : {c.unifier.show(expected)}")
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


def _repeated(instance: Instance) -> Applied | None:
    """The module under the stacks of `instance`; None for a composition."""
    while isinstance(instance, Stacked):
        instance = instance.inner
    return instance if isinstance(instance, Applied) else None


def function_of_module(c: Checker, instance: Instance, name: ast.Ident) -> Signature | None:
    """The function `name` of the module under the stacks of `instance`, which is no composition; E2028 if it has
    none."""
    applied = _repeated(instance)
    assert applied is not None
    module = c.program.elab.nodes[applied.module]
    known = members(module)
    found = known.get(name.text)
    if found is not None and isinstance(found[1], ast.Fn):
        signature = c.program.signatures[id_of(found[0])]
        if signature.theta is None:
            c.failed = True
            return None
        return signature
    functions = [n for n, (_, m) in known.items() if isinstance(m, ast.Fn)]
    from difflib import get_close_matches

    near = get_close_matches(name.text, functions, 1)
    c.error(
        "E2028",
        f"the module `{module.name.text}` has no function `{name.text}`",
        name.span,
        labels=(Label(module.name.span, "the module"),),
        help=f"did you mean `{near[0]}`?" if near else f"its functions: {', '.join(functions) or 'none'}",
    )
    return None


def arguments_of(c: Checker, instance: Instance, name: ast.Ident, span: Span) -> tuple[str, ...] | None:
    """The names of the arguments that `instance.name` needs when it is taken as a value; None where it is none, which
    is reported. A composition takes what its inner module takes."""
    while isinstance(instance, Composed | Stacked):
        instance = instance.inner
    signature = function_of_module(c, instance, name)
    return None if signature is None else needed(c, signature, span)


def needed(c: Checker, signature: Signature, span: Span) -> tuple[str, ...] | None:
    """The names of the parameters without a default; None, with E2023, for a function that is never a value."""
    why = None
    if any(p.node.is_axis for p in signature.params):
        why = "takes an axis"
    elif any(p.instance is not None for p in signature.params):
        why = "takes a module"
    if why is None:
        return tuple(p.name for p in signature.params if p.node.default is None)
    message = f"`{signature.core}` {why}, so it cannot be passed around"
    c.error("E2023", message, span, help=f"call it inside a lambda: λ x. {signature.node.name.text}(…, x)")
    return None


def _through_stack(
    c: Checker, instance: Stacked, theta: TExpr, name: ast.Ident, args: Sequence[Arg], span: Span
) -> TExpr:
    """`blocks.apply(x, …)` is M.apply applied L times, so that it gives what it takes first."""
    inner = instance.inner
    if not isinstance(inner, Applied):
        return _through_lifted(c, instance, theta, name, args, span)
    signature = function_of_module(c, inner, name)
    if signature is None:
        return c.broken(span)
    given = dict(zip(signature.module_dims, inner.args, strict=False))
    applied = apply_signature(c, signature, given, args, span)
    if applied is None:
        return c.broken(span)
    if not applied.args:
        return c.error("E2027", f"`{signature.core}` takes no argument that a stack could pass on", span)
    if not _passes_on(c, signature.core, applied.first, applied.result, span):
        return c.broken(span)
    acc, *extras = applied.args
    return TStackCall(
        instance.count, applied.core, applied.dim_args, theta, acc, tuple(extras), held(applied.first), span
    )


def _passes_on(c: Checker, what: str, first: IType, result: IType, span: Span) -> bool:
    """E2027 unless a layer gives what it takes first."""
    failed = c.unify(result, first, span, "the stack")
    if failed is None:
        return True
    message = f"through a stack, `{what}` must give what it takes first: it takes "
    message += f"{c.unifier.show(first)} and gives {c.unifier.show(result)}"
    reason, example = c.reason(failed)
    c.error("E2027", message + reason, span, counterexample=example)
    return False


def _through_lifted(
    c: Checker, instance: Stacked, theta: TExpr, name: ast.Ident, args: Sequence[Arg], span: Span
) -> TExpr:
    """A stack of a stack or of a composition repeats a function made for it (`check.lifted`)."""
    if not args or any(a.form != "positional" or a.value is None for a in args):
        infer_all(c, args)
        return c.error("E2021", "through a stack of a stack or a composition, arguments go by position", span)
    values = [infer_value(c, a.value) for a in args if a.value is not None]
    if c.signature is None or any(is_bad(v) for v in values):
        return c.broken(span)
    tree = c.binder(ast.Ident("θ", span), Params(instance.inner))
    params = [c.binder(ast.Ident("x", span), ity(v)) for v in values]
    given = [Arg("positional", None, Given(TVar(b, b.type, span), span), span) for b in params]
    body = _call(c, instance.inner, TVar(tree, tree.type, span), name, given, span)
    if is_bad(body) or not _passes_on(c, name.text, ity(values[0]), ity(body), span):
        return c.broken(span)
    core = f"{c.signature.core}.stack{len(c.lifted)}"
    c.lifted.append(Lifted(core, (tree, *params), body, span))
    return TStackCall(instance.count, core, (), theta, values[0], tuple(values[1:]), values[0].type, span)


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
