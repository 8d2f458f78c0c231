"""Expressions of the typed tree as Python: statements for `let`s and stacks, an expression for the value.

Walks are generators on a trampoline, so that the depth of the source is no limit.
"""

from __future__ import annotations

from typing import assert_never

from presk_rel.core.lambdas import children
from presk_rel.core.trampoline import Walk
from presk_rel.elab.ty import Hyper, Instance, Params, Real, Stacked, map_instance
from presk_rel.export.context import unsupported
from presk_rel.export.prims import Use, printed
from presk_rel.export.scope import Scope
from presk_rel.export.text import ATOM, LAMBDA, Py, comment, literal, tensor
from presk_rel.export.trees import constructor, module_of, read_field, rooted_in_self, state_of
from presk_rel.smt.linear import Linear, constant
from presk_rel.syntax import ast
from presk_rel.types.tree import (
    PTuple,
    PVar,
    TApply,
    TCall,
    TDim,
    TExpr,
    TField,
    TFn,
    TFunction,
    TGrad,
    TJvp,
    TLambda,
    TLet,
    TLiteral,
    TPattern,
    TPrim,
    TStackCall,
    TTheta,
    TTuple,
    TVar,
    TVjp,
)


def count_uses(e: TExpr) -> tuple[dict[int, int], bool]:
    """How often each binder is read, and whether there is a lambda."""
    uses: dict[int, int] = {}
    lambdas = False
    waiting = [e]
    while waiting:
        node = waiting.pop()
        if isinstance(node, TVar):
            uses[node.binder.id] = uses.get(node.binder.id, 0) + 1
        lambdas |= isinstance(node, TLambda)
        unread = isinstance(node, TPrim) and node.op in ("dropout", "sample")  # PyTorch has its own generator
        waiting.extend(children(node)[1 if unread else 0 :])
    return uses, lambdas


def body(s: Scope, e: TExpr) -> Walk[Py]:
    """The statements of a function's body, at its top level, and the value it returns."""
    while isinstance(e, TLet):
        yield let(s, e)
        e = e.body
    return (yield expression(s, e))


def let(s: Scope, e: TLet) -> Walk[None]:
    pattern = e.pattern
    if isinstance(e.value, TLambda) and isinstance(pattern, PVar):
        yield definition(s, e.value, s.bind(pattern.binder))
        return
    if isinstance(e.value, TStackCall) and isinstance(pattern, PVar):
        yield stack_call(s, e.value, pattern)
        return
    value = yield expression(s, e.value)
    note = f"  # {comment(str(e.value.type))}" if isinstance(e.value.type, Real) else ""
    match pattern:
        case None:
            s.lines.append(f"_ = {value.text}")
        case PVar(binder):
            s.lines.append(f"{s.bind(binder, number=value.number)} = {value.text}{note}")
        case PTuple():
            s.lines.append(f"{target(s, pattern)} = {value.text}")
        case _:
            assert_never(pattern)


def target(s: Scope, pattern: TPattern) -> str:
    """The left side of an assignment."""
    match pattern:
        case None:
            return "_"
        case PVar(binder):
            return s.bind(binder)
        case PTuple(items):
            inside = ", ".join(f"({target(s, i)})" if isinstance(i, PTuple) else target(s, i) for i in items)
            return f"{inside}," if len(items) == 1 else inside
        case _:
            assert_never(pattern)


def expression(s: Scope, e: TExpr) -> Walk[Py]:
    match e:
        case TVar(binder):
            return s.env[binder.id]
        case TTheta() | TField():
            return read_field(s, e)
        case TLiteral(value, Hyper()) if value.denominator == 1:
            return s.dim(constant(value))
        case TLiteral(value):
            return literal(value)
        case TDim(dim):
            return s.dim(dim)
        case TPrim(args=args):
            operands: list[Py] = []
            for a in args:
                operands.append((yield expression(s, a)))
            return printed(Use(e, tuple(operands), s.context, s.dim))
        case TTuple(items):
            texts = yield values(s, items)
            return Py(f"({', '.join(texts)}{',' if len(texts) == 1 else ''})")
        case TLet():
            shadow, s.shadow = s.shadow, False
            while isinstance(e, TLet):
                yield let(s, e)
                e = e.body
            s.shadow = shadow
            return (yield expression(s, e))
        case TLambda():
            return (yield function(s, e))
        case _:
            return (yield application(s, e))


def application(s: Scope, e: TCall | TStackCall | TFunction | TApply | TGrad | TVjp | TJvp) -> Walk[Py]:
    match e:
        case TCall():
            return (yield call(s, e))
        case TStackCall():
            return (yield stack_call(s, e))
        case TFunction(fn):
            return _function_value(s, s.context.by_name[fn])
        case TApply(TVjp(fn), (x, ct)):
            f = yield expression(s, fn)
            at, along = yield values(s, (x, ct))
            return Py(f"torch.func.vjp({f.text}, {at})[1]({along})[0]")
        case TApply(TJvp(fn), (x, v)):
            f = yield expression(s, fn)
            at, along = yield values(s, (x, v))
            return Py(f"torch.func.jvp({f.text}, ({at},), ({along},))[1]")
        case TApply(fn, args):
            f = yield expression(s, fn)
            texts = yield values(s, args)
            return Py(f"{f.at(ATOM)}({', '.join(texts)})")
        case TGrad(fn):
            f = yield expression(s, fn)
            return Py(f"torch.func.grad({f.text})")
        case TVjp(fn):
            f = yield expression(s, fn)
            return Py(f"lambda x, ct: torch.func.vjp({f.at(ATOM)}, x)[1](ct)[0]", LAMBDA)
        case TJvp(fn):
            f = yield expression(s, fn)
            return Py(f"lambda x, v: torch.func.jvp({f.at(ATOM)}, (x,), (v,))[1]", LAMBDA)
        case _:
            assert_never(e)


def values(s: Scope, es: tuple[TExpr, ...]) -> Walk[list[str]]:
    """Arguments: a number for a real becomes a tensor."""
    texts: list[str] = []
    for a in es:
        value = yield expression(s, a)
        texts.append(tensor(value).text if isinstance(a.type, Real) else value.text)
    return texts


# ------------------------------------------------------------------------------------------------------------ lambdas


def function(s: Scope, e: TLambda) -> Walk[Py]:
    """A lambda: Python's where its body is one expression, else a definition before."""
    if isinstance(e.pattern, PTuple):
        return Py((yield definition(s, e, s.names.new("f"))))
    inner = s.inner()
    name = _parameter(inner, e)
    result = tensor_of(e, (yield expression(inner, e.body)))
    if not inner.lines:
        return Py(f"lambda {name}: {result.text}", LAMBDA)
    outer = s.names.new("f")
    s.lines += [f"def {outer}({name}):", *_indented([*inner.lines, f"return {result.text}"])]
    return Py(outer)


def definition(s: Scope, e: TLambda, name: str) -> Walk[str]:
    """A lambda as a named function."""
    inner = s.inner()
    if isinstance(e.pattern, PTuple):
        parameter = inner.names.new(e.param.name if e.param.name.isidentifier() else "p")
        inner.lines.append(f"{target(inner, e.pattern)} = {parameter}")
    else:
        parameter = _parameter(inner, e)
    result = tensor_of(e, (yield body(inner, e.body)))
    s.lines += [f"def {name}({parameter}):", *_indented([*inner.lines, f"return {result.text}"])]
    return name


def _parameter(inner: Scope, e: TLambda) -> str:
    """A parameter may hide a variable of its name, as in the source."""
    binder = e.pattern.binder if isinstance(e.pattern, PVar) else e.param
    name = inner.seen.get(binder.name) or inner.bind(binder, top=True)
    inner.env[binder.id] = inner.env[e.param.id] = Py(name)
    return name


def tensor_of(e: TExpr, value: Py) -> Py:
    return tensor(value) if isinstance(getattr(e.type, "result", None), Real) else value


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _function_value(s: Scope, fn: TFn) -> Py:
    name = s.context.functions.get(fn.name)
    if name is None:
        raise unsupported(f"the function `{fn.name}` as a value", None)
    if s.context.trains(fn):
        return Py(f"lambda *args: {name}(*args, training=training)", LAMBDA)
    return Py(name)


# -------------------------------------------------------------------------------------------------------------- calls


def call(s: Scope, e: TCall) -> Walk[Py]:
    fn = s.context.by_name[e.fn]
    if fn.theta is not None:
        texts = yield values(s, e.args[1:])
        return module_call(s, fn, e.args[0], texts)
    texts = yield values(s, e.args)
    given = iter(texts)
    dims = dict(e.dim_args)
    printed_args: list[str] = []
    for net in parameters(s, fn):
        if net is None:
            printed_args.append(next(given))
        else:
            printed_args.append(module_of(s, _at(net, dims)))
    return Py(f"{s.context.functions[fn.name]}({', '.join([*printed_args, *_training(s, fn)])})")


def _at(instance: Instance, dims: dict[str, Linear]) -> Instance:
    return map_instance(instance, lambda d: d.substitute(dims))


def parameters(s: Scope, fn: TFn) -> list[Instance | None]:
    """The Python parameters of a function in source order: the instance of a module-typed one, None for a value."""
    node = s.context.nodes[fn.name]
    known = {b.name: b for b in fn.params}
    nets = module_parameters(s, fn)
    found: list[Instance | None] = []
    for p in node.params:
        if p.name.text in known:
            found.append(None)
        elif p.name.text in nets:
            found.append(nets[p.name.text])
    return found


def module_parameters(s: Scope, fn: TFn) -> dict[str, Instance]:
    """The module-typed parameters whose instance a parameter tree shows: `θ : params net`."""
    types = {b.name: b.type for b in fn.params}
    found: dict[str, Instance] = {}
    for p in s.context.nodes[fn.name].params:
        ty = types.get(p.name.text)
        if not isinstance(ty, Params) or not isinstance(p.type, ast.ParamsType):
            continue
        if isinstance(p.type.module, ast.Name) and p.type.module.text not in types:
            declared = {q.name.text for q in s.context.nodes[fn.name].params}
            if p.type.module.text in declared:
                found[p.type.module.text] = ty.instance
    return found


def _training(s: Scope, fn: TFn) -> list[str]:
    return ["training=training"] if s.context.trains(fn) else []


def module_call(s: Scope, fn: TFn, theta: TExpr, texts: list[str]) -> Py:
    """A module's function: a call of the module, or, with a state dict, `torch.func.functional_call`."""
    method = s.context.method(fn)
    if rooted_in_self(theta):
        place = state_of(s, theta).module
        name = place if method == "forward" and place != "self" else f"{place}.{method}"
        return Py(f"{name}({', '.join([*texts, *_training(s, fn)])})")
    state = state_of(s, theta)
    given = f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    keywords = ', {"training": training}' if s.context.trains(fn) else ""
    if method == "forward":
        return Py(f"torch.func.functional_call({state.module}, {state.text}, {given}{keywords})")
    helper = s.context.helper("call_method")
    return Py(f'{helper}({state.module}, "{method}", {state.text}, {given}{keywords})')


def stack_call(s: Scope, e: TStackCall, wanted: PVar | None = None) -> Walk[Py]:
    """A loop over the layers of a stack; its value gets the name of the variable it is for."""
    fn = s.context.by_name[e.fn]
    (start,) = yield values(s, (e.acc,))
    extras = yield values(s, e.extras)
    extras = [_once(s, text, b.name) for text, b in zip(extras, fn.params[1:], strict=True)]
    method = s.context.method(fn)
    acc = s.names.new("h") if wanted is None else s.bind(wanted.binder, top=True)
    layer = s.names.new("layer")
    rest = [acc, *extras, *_training(s, fn)]
    s.lines.append(f"{acc} = {start}")
    if rooted_in_self(e.stacked):
        state = state_of(s, e.stacked)
        applied = f"{layer}{state.below}" if method == "forward" else f"{layer}{state.below}.{method}"
        s.lines += [f"for {layer} in {state.module}:", f"    {acc} = {applied}({', '.join(rest)})"]
        return Py(acc)
    if not isinstance(e.stacked.type, Params) or not isinstance(e.stacked.type.instance, Stacked):
        raise unsupported("this stack", e.span)
    inner = e.stacked.type.instance.inner
    state = state_of(s, e.stacked)
    count = s.dim(e.count).text
    sub = s.context.helper("sub_tree")
    net = s.names.new("net")
    given = f"({', '.join([acc, *extras])}{',' if not extras else ''})"
    keywords = ', {"training": training}' if s.context.trains(fn) else ""
    if method != "forward" or state.below:
        raise unsupported("this function of a stack that is no part of the module", e.span)
    step = f'torch.func.functional_call({net}, {sub}({state.text}, f"{{{layer}}}"), {given}{keywords})'
    s.lines += [
        f"{net} = {constructor(s, inner, meta=True)}",
        f"for {layer} in range({count}):",
        f"    {acc} = {step}",
    ]
    return Py(acc)


def _once(s: Scope, text: str, name: str) -> str:
    """An argument that is computed before a loop."""
    if text.replace(".", "").isidentifier():
        return text
    variable = s.names.new(name)
    s.lines.append(f"{variable} = {text}")
    return variable
