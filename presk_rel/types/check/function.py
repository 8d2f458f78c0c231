"""Checking one function (spec: "Typing"): its body against its signature, generically in its dims and leading axes."""

from __future__ import annotations

from dataclasses import replace

from presk_rel.diagnostics import Label
from presk_rel.elab.signatures import ParamSig, Signature
from presk_rel.elab.ty import Type
from presk_rel.facts.ast_facts import decl_id
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Blame, Checker, Program, is_bad
from presk_rel.types.check.expr import infer
from presk_rel.types.check.lifted import finish
from presk_rel.types.check.settle import Final, settle
from presk_rel.types.infer import BROKEN, IType
from presk_rel.types.problems import TooLarge
from presk_rel.types.tree import Binder, TDim, TExpr, TFn, TLiteral, TPrim
from presk_rel.types.unify import Unifier
from presk_rel.types.zonk import Rewrite


def check_function(program: Program, signature: Signature) -> TFn | None:
    """The checked function, None after an error. What its signature leaves out is filled in from the body."""
    check_defaults(program, signature)
    c = Checker(program, signature, Unifier(program.elab.solver), infer)
    try:
        fn = _check(c, signature)
    except (TooLarge, RecursionError):
        what = f"a type in `{signature.core}` is larger than this version supports"
        c.error("E9002", what, signature.node.name.span)
        fn = None
    if fn is None and signature.result is None:
        signature.broken = True
    return fn


def _check(c: Checker, signature: Signature) -> TFn | None:
    binders = [b for p in signature.params if (b := _bind(c, p)) is not None]
    body = _body(c, signature)
    final = settle(c)
    rewrite = Rewrite(final.type, final.length)
    if c.failed or signature.broken or is_bad(body):
        return None
    made = _finish_lifted(c, signature, rewrite)
    typed = rewrite.expr(body)
    params = tuple(rewrite.binder(b) for b in binders)
    final.report()
    if c.failed:
        return None
    _complete(signature, params, typed.type)
    if made:
        c.program.made.setdefault(signature.id, []).extend(made)
    return TFn(
        name=signature.core,
        dims=tuple(dict.fromkeys([*signature.dims, *final.mentioned])),
        theta=signature.theta,
        params=params,
        result=signature.result or typed.type,
        uses=tuple(u.text for u in signature.node.uses),
        body=typed,
        span=signature.node.span,
        name_span=signature.node.name.span,
        defaults=tuple((p.name, c.program.defaults[p.id]) for p in signature.params if p.id in c.program.defaults),
    )


def _finish_lifted(c: Checker, signature: Signature, rewrite: Rewrite) -> list[TFn]:
    uses = tuple(u.text for u in signature.node.uses)
    made: list[TFn] = []
    for lifted in c.lifted:
        own = Final(c)
        made.append(finish(lifted, Rewrite(own.type, own.length, lifted=rewrite.lifted), own.mentioned, uses))
    return made


def _body(c: Checker, signature: Signature) -> TExpr:
    body = c.infer(signature.node.body, signature.result)
    if signature.result is None:
        return body
    declared = signature.node.result
    label = None if declared is None else Label(declared.span, "the result is declared here")
    blame = Blame(f"the result of `{signature.core}`", label)
    return c.expect(body, signature.result, _result(signature.node.body).span, blame)


def _bind(c: Checker, param: ParamSig) -> Binder | None:
    """The variable of a parameter; module-typed ones are compile-time only."""
    if param.node.is_axis:
        return None
    if param.instance is not None or (param.broken and param.id in c.program.elab.module_params):
        return None
    broken = param.broken or (param.type is None and param.node.default is not None)
    ty: IType = BROKEN if broken else c.unifier.fresh_type() if param.type is None else param.type
    c.failed |= broken
    binder = c.env[param.id] = c.binder(param.node.name, ty)
    return binder


def _result(body: ast.Expr) -> ast.Expr:
    while isinstance(body, ast.Let):
        body = body.body
    return body


def _complete(signature: Signature, params: tuple[Binder, ...], result: Type) -> None:
    by_id = {decl_id(ast.Ident(b.name, b.span)): b.type for b in params}
    signature.params = tuple(replace(p, type=by_id.get(p.id, p.type)) for p in signature.params)
    signature.result = result if signature.result is None else signature.result
    signature.collect_dims()


# -------------------------------------------------------------------------------------------------------- defaults


def check_defaults(program: Program, signature: Signature) -> None:
    """Fills `program.defaults`: a default is a number, a constant or a dimension, or operators on these."""
    for param in signature.params:
        if param.node.default is not None and param.id not in program.defaults:
            typed = _default(program, signature, param, param.node.default)
            if typed is not None:
                program.defaults[param.id] = typed


def _default(program: Program, signature: Signature, param: ParamSig, default: ast.Expr) -> TExpr | None:
    c = Checker(program, None, Unifier(program.elab.solver), infer)
    if param.type is None or param.instance is not None:
        if not param.broken:
            c.error(
                "E2030", f"the parameter `{param.name}` has a default, so it needs the type of a value", param.node.span
            )
        return None
    node = c.check(default, param.type, Blame(f"the default of `{param.name}`"))
    final = settle(c)
    if c.failed or is_bad(node):
        return None
    typed = Rewrite(final.type, final.length).expr(node)
    if _plain(typed):
        return typed
    c.error("E2030", f"the default of `{param.name}` must be a number, a constant or a dimension", default.span)
    return None


def _plain(node: TExpr) -> bool:
    match node:
        case TLiteral() | TDim():
            return True
        case TPrim(args=args):
            return all(_plain(a) for a in args)
        case _:
            return False
