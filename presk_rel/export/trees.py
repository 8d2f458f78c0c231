"""Parameter trees: attributes of the module inside it, entries of a state dict outside."""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Applied, Composed, Instance, Params, Real, Stacked
from presk_rel.export.context import unsupported
from presk_rel.export.scope import Scope
from presk_rel.export.text import Py
from presk_rel.smt.linear import Linear
from presk_rel.types.tree import TExpr, TField, TTheta, TVar


@dataclass(frozen=True, slots=True)
class State:
    """A parameter tree: its state dict `text` ("" inside the module, where the module has its own), the module that it
    is of, and, through a stack, the path below each layer."""

    text: str
    module: str
    below: str = ""


def chain(e: TExpr) -> tuple[TExpr, list[TField]]:
    """The root of a path of fields, and the fields from it."""
    fields: list[TField] = []
    while isinstance(e, TField):
        fields.append(e)
        e = e.base
    return e, fields[::-1]


def rooted_in_self(e: TExpr) -> bool:
    return isinstance(chain(e)[0], TTheta)


def _instance(e: TExpr) -> Instance:
    if not isinstance(e.type, Params):
        raise PreskBug("export", f"a parameter tree was expected, not {e.type}")
    return e.type.instance


def _attributes(s: Scope, fields: list[TField]) -> tuple[list[str], list[str]]:
    """The attributes along a path: those up to a stack, and those below each of its layers."""
    before: list[str] = []
    below: list[str] = []
    stacked = False
    for f in fields:
        name = s.context.field_path(_instance(f.base), f.name)
        stacked |= isinstance(_instance(f.base), Stacked)
        (below if stacked else before).append(name)
    return before, below


def read_field(s: Scope, e: TTheta | TField) -> Py:
    """A tensor or tree read."""
    root, fields = chain(e)
    before, below = _attributes(s, fields)
    if isinstance(root, TTheta):
        return _of_self(s, e, before, below)
    if not isinstance(root, TVar):
        raise unsupported("a field of a parameter tree that has no name", e.span)
    text = s.env[root.binder.id].text
    if not fields:
        return Py(text)
    if isinstance(e.type, Real) and not below and not isinstance(_instance(root), Stacked):
        return Py(f'{text}["{".".join(before)}"]')
    if isinstance(e.type, Real):
        count = s.dim(_count(root, fields)).text
        front = "".join(f"{p}." for p in before)
        return Py(f'torch.stack([{text}[f"{front}{{i}}.{".".join(below)}"] for i in range({count})])')
    if below:
        raise unsupported("a part of a stacked parameter tree", e.span)
    return Py(f'{s.context.helper("sub_tree")}({text}, "{".".join(before)}")')


def _count(root: TExpr, fields: list[TField]) -> Linear:
    for node in (root, *fields):
        if isinstance(node.type, Params) and isinstance(node.type.instance, Stacked):
            return node.type.instance.count
    raise PreskBug("export", "no stack along this path")


def _of_self(s: Scope, e: TTheta | TField, before: list[str], below: list[str]) -> Py:
    place = ".".join(["self", *before])
    if isinstance(e.type, Real):
        if not below:
            return Py(place)
        return Py(f"torch.stack([layer.{'.'.join(below)} for layer in {place}])")
    if below:
        raise unsupported("a part of a stacked parameter tree", e.span)
    return Py(f"dict({place}.named_parameters())")


def state_of(s: Scope, e: TExpr) -> State:
    """The module and the state dict behind the parameter tree of a call."""
    root, fields = chain(e)
    before, below = _attributes(s, fields)
    if isinstance(root, TTheta):
        return State("", ".".join(["self", *before]), "".join(f".{p}" for p in below))
    if not isinstance(root, TVar):
        raise unsupported("a parameter tree that has no name", e.span)
    text = read_field(s, e).text if isinstance(e, TField) else s.env[root.binder.id].text
    net = s.nets.get(_instance(root))
    if net is not None:
        return State(text, ".".join([net, *before]), "".join(f".{p}" for p in below))
    return State(text, module_of(s, _instance(e)), "".join(f".{p}" for p in below))


def module_of(s: Scope, instance: Instance) -> str:
    """A module of this instance: one in scope, or one made for its code."""
    return s.nets.get(instance) or constructor(s, instance, meta=True)


def constructor(s: Scope, instance: Instance, *, meta: bool = False) -> str:
    """The Python that makes a module; with `meta`, without memory for its parameters."""
    text = _constructor(s, instance)
    return f"{s.context.helper('on_meta')}(lambda: {text})" if meta else text


def _constructor(s: Scope, instance: Instance) -> str:
    match instance:
        case Applied(module, args):
            return f"{s.context.classes[module].name}({', '.join(s.dim(a).text for a in args)})"
        case Stacked(count, inner):
            return f"nn.ModuleList({_constructor(s, inner)} for _ in range({s.dim(count).text}))"
        case Composed(outer, inner):
            helper = s.context.helper("Compose")
            return f"{helper}({_constructor(s, outer)}, {_constructor(s, inner)})"
