"""Expressions of the typed tree as Python: statements for `let`s and stacks, an expression for the value.

Walks are generators on a trampoline, so that the depth of the source is no limit.
"""

from __future__ import annotations

from functools import partial
from typing import assert_never

from presk_rel.core.lambdas import children
from presk_rel.core.trampoline import Walk
from presk_rel.elab.ty import Hyper, Instance, Params, Real, Stacked, map_instance
from presk_rel.export.prims import Use, number, printed
from presk_rel.export.scope import Place, Scope
from presk_rel.export.text import ATOM, LAMBDA, Py, comment, tensor
from presk_rel.export.trees import chain, in_module, instance_of, module_at, module_of, opened, place_of, read, sub_tree
from presk_rel.smt.linear import Linear, constant, symbol
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
        case TTheta() | TField():
            return read(s, e, (yield tree(s, e)))
        case TVar(binder) if binder.id in s.modules:
            return read(s, e, (yield tree(s, e)))
        case TVar(binder):
            return s.env[binder.id]
        case TLiteral(value, Hyper()) if value.denominator == 1:
            return s.dim(constant(value), near=e.span)
        case TLiteral(value):
            return number(value, e.span)
        case TDim(dim):
            return s.dim(dim, near=e.span)
        case TPrim("proj", _, (TTuple((item,)),)):  # an ascription that names axes
            return (yield expression(s, item))
        case TPrim(args=args):
            operands: list[Py] = []
            for a in args:
                operands.append((yield expression(s, a)))
            return printed(Use(e, tuple(operands), s.context, partial(s.dim, near=e.span)))
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
            return _function_value(s, e, s.context.by_name[fn])
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
    """The parameters. The first may hide a variable of its name, as in the source."""
    binder = e.pattern.binder if isinstance(e.pattern, PVar) else e.param
    name = inner.seen.get(binder.name) or inner.bind(binder, top=True)
    inner.env[binder.id] = inner.env[e.param.id] = Py(name)
    for other in e.more:
        inner.env[other.id] = Py(inner.bind(other, top=True))
    return ", ".join([name, *(inner.env[other.id].text for other in e.more)])


def tensor_of(e: TExpr, value: Py) -> Py:
    return tensor(value) if isinstance(getattr(e.type, "result", None), Real) else value


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _function_value(s: Scope, e: TFunction, fn: TFn) -> Py:
    name = s.context.functions.get(fn.name)
    keywords = _keywords(s, fn, dict(e.dim_args))
    inner = s.names.inner()
    args = inner.new("args")
    if fn.theta is not None:
        state = inner.new("θ")
        net = module_of(s, _at(fn.theta.instance, dict(e.dim_args)))
        return Py(f"lambda {state}, *{args}: {_functional(s, fn, net, state, args, keywords)}", LAMBDA)
    if keywords:
        return Py(f"lambda *{args}: {name}({', '.join([f'*{args}', *_named(keywords)])})", LAMBDA)
    return Py(str(name))


# -------------------------------------------------------------------------------------------------------------- calls


def call(s: Scope, e: TCall) -> Walk[Py]:
    fn = s.context.by_name[e.fn]
    if fn.theta is not None:
        return (yield module_call(s, fn, e))
    texts = yield values(s, e.args)
    given = iter(texts)
    dims = dict(e.dim_args)
    printed_args: list[str] = []
    for net in parameters(s, fn):
        if net is None:
            printed_args.append(next(given))
        else:
            printed_args.append(module_of(s, _at(net, dims)))
    return Py(f"{s.context.functions[fn.name]}({', '.join([*printed_args, *_named(_keywords(s, fn, dims))])})")


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


def _keywords(s: Scope, fn: TFn, dims: dict[str, Linear]) -> dict[str, str]:
    """What a function takes by name: the dims that no argument shows, and whether this is training."""
    hidden = s.context.hidden.get(fn.name, {})
    found = {name: s.dim(dims.get(d, symbol(d))).text for d, name in hidden.items()}
    return {**found, "training": "training"} if s.context.trains(fn) else found


def _named(keywords: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in keywords.items()]


def tree(s: Scope, e: TExpr) -> Walk[Place]:
    """Where a parameter tree, or a tensor of one, is. A tree that has no name gets one."""
    root, _ = chain(e)
    if in_module(s, root):
        return place_of(s, e, "")
    text = (yield expression(s, root)).text
    return place_of(s, e, _once(s, text, "tree") if root is not e else text)


def module_call(s: Scope, fn: TFn, e: TCall) -> Walk[Py]:
    """A module's function: a call of the module, or, with a state dict, `torch.func.functional_call`."""
    theta = e.args[0]
    texts = yield values(s, e.args[1:])
    keywords = _keywords(s, fn, dict(e.dim_args))
    place = yield tree(s, theta)
    if place.inside:
        return Py(f"{_function_of(s, fn, place)}({', '.join([*texts, *_named(keywords)])})")
    return Py(_functional(s, fn, module_at(s, theta), read(s, theta, place).text, _tuple(texts), keywords))


def _function_of(s: Scope, fn: TFn, place: Place) -> str:
    method, module = s.context.method(fn), place.attributes()
    return module if method == "forward" and module != "self" else f"{module}.{method}"


def _functional(s: Scope, fn: TFn, net: str, state: str, given: str, keywords: dict[str, str]) -> str:
    """A function of the module `net` with the parameters `state` and the tuple of arguments `given`."""
    method = s.context.method(fn)
    entries = ", ".join(f'"{name}": {value}' for name, value in keywords.items())
    last = f", {{{entries}}}" if keywords else ""
    if method == "forward":
        return f"torch.func.functional_call({net}, {state}, {given}{last})"
    return f'{s.context.helper("call_method")}({net}, "{method}", {state}, {given}{last})'


def _tuple(texts: list[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def stack_call(s: Scope, e: TStackCall, wanted: PVar | None = None) -> Walk[Py]:
    """A loop over the layers of a stack; its value gets the name of the variable it is for."""
    fn = s.context.by_name[e.fn]
    place = opened((yield tree(s, e.stacked)), instance_of(e.stacked))
    (start,) = yield values(s, (e.acc,))
    extras = yield values(s, e.extras)
    named = fn.params if fn.theta is not None else fn.params[1:]
    extras = [_once(s, text, b.name) for text, b in zip(extras, named[1:], strict=True)]
    acc = s.names.new("h") if wanted is None else s.bind(wanted.binder, top=True)
    layer = s.names.new("layer")
    net = "" if place.inside or fn.theta is None else _once(s, module_of(s, _layer(e)), "net")
    s.lines.append(f"{acc} = {start}")
    before, s.lines = s.lines, []
    value = yield _step(s, e, fn, (place.layer(layer), net), [acc, *extras])
    lines, s.lines = s.lines, before
    over = place.attributes() if place.inside else f"range({s.dim(e.count).text})"
    s.lines += [f"for {layer} in {over}:", *_indented([*lines, f"{acc} = {value.text}"])]
    return Py(acc)


def _layer(e: TStackCall) -> Instance:
    instance = instance_of(e.stacked)
    assert isinstance(instance, Stacked)
    return instance.inner


def _step(s: Scope, e: TStackCall, fn: TFn, at: tuple[Place, str], given: list[str]) -> Walk[Py]:
    """One layer's function: the module's, or one that was made for a stack of stacks or of a composition. `at`: where
    the layer is, and the module to call with its state dict."""
    place, net = at
    state = "" if place.inside else sub_tree(s, place.root, place.path)
    if fn.theta is None:
        theta, *others = fn.params
        if place.inside:
            s.modules[theta.id] = place
        else:
            s.env[theta.id] = Py(_once(s, state, "tree"))
        s.env.update({b.id: Py(text) for b, text in zip(others, given, strict=True)})
        return (yield expression(s, fn.body))
    keywords = _keywords(s, fn, dict(e.dim_args))
    if place.inside:
        return Py(f"{_function_of(s, fn, place)}({', '.join([*given, *_named(keywords)])})")
    return Py(_functional(s, fn, net, state, _tuple(given), keywords))


def _once(s: Scope, text: str, name: str) -> str:
    """An argument that is computed before a loop."""
    if text.replace(".", "").isidentifier():
        return text
    variable = s.names.new(name)
    s.lines.append(f"{variable} = {text}")
    return variable
