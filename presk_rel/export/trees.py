"""Parameter trees: attributes of the module inside it, entries of a state dict outside."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Applied, Composed, Instance, Params, Real, Stacked
from presk_rel.export.scope import Place, Scope, Segment
from presk_rel.export.text import Py
from presk_rel.smt.linear import Linear, constant
from presk_rel.syntax import ast
from presk_rel.types.tree import TExpr, TField, TTheta, TVar


def chain(e: TExpr) -> tuple[TExpr, list[TField]]:
    """The root of a path of fields, and the fields from it."""
    fields: list[TField] = []
    while isinstance(e, TField):
        fields.append(e)
        e = e.base
    return e, fields[::-1]


def in_module(s: Scope, root: TExpr) -> bool:
    """Whether a tree is that of a module in scope, and not a state dict."""
    return isinstance(root, TTheta) or (isinstance(root, TVar) and root.binder.id in s.modules)


def instance_of(e: TExpr) -> Instance:
    if not isinstance(e.type, Params):
        raise PreskBug("export", f"a parameter tree was expected, not {e.type}")
    return e.type.instance


def place_of(s: Scope, e: TExpr, root: str) -> Place:
    """Where `e` is; `root` is the Python of its state dict. A field of a stacked tree is that of all its layers."""
    first, fields = chain(e)
    place = Place(root, False, ())
    if isinstance(first, TTheta):
        place = Place("self", True, ())
    elif isinstance(first, TVar) and first.binder.id in s.modules:
        place = s.modules[first.binder.id]
    path, passed = list(place.path), len(place.counts)
    for f in fields:
        instance = instance_of(f.base)
        path += levels(instance)[passed:]
        passed = len(levels(instance))
        path.append(s.context.field_path(instance, f.name))
    return Place(place.root, place.inside, tuple(path))


def levels(instance: Instance) -> list[Linear]:
    """The counts of the stacks around a module."""
    found: list[Linear] = []
    while isinstance(instance, Stacked):
        found.append(instance.count)
        instance = instance.inner
    return found


def opened(place: Place, instance: Instance) -> Place:
    """A place with all the stacks of its tree on its path."""
    return Place(place.root, place.inside, (*place.path, *levels(instance)[len(place.counts) :]))


def read(s: Scope, e: TExpr, place: Place) -> Py:
    """The tensor or tree at a place: of a tree, its state dict."""
    if isinstance(e.type, Real):
        return _tensor(s, e.type, place)
    if not place.inside:
        return Py(sub_tree(s, place.root, place.path))
    return Py(sub_tree(s, f"dict({place.attributes()}.named_parameters())", place.path[len(place.before) :]))


def sub_tree(s: Scope, text: str, path: Sequence[Segment]) -> str:
    """The part of a state dict along a path; the layers of a stack keep their numbers."""
    if not path:
        return text
    key = ".".join("*" if isinstance(p, Linear) else p for p in path)
    f = "f" if "{" in key else ""
    return f'{s.context.helper("sub_tree")}({text}, {f}"{key}")'


def _tensor(s: Scope, ty: Real, place: Place) -> Py:
    """A tensor; one of stacked modules is stacked from those of the layers."""
    counts = place.counts
    if any(c == constant(0) for c in counts):
        lengths = "".join(f"{s.dim(a.length).text}, " for a in ty.shape.axes)
        return Py(f"torch.zeros(({lengths.rstrip()}))")
    inner = s.names.inner()
    loops: list[tuple[str, str]] = []
    for count in counts:
        name = inner.new("layer" if place.inside else "i")
        loops.append((name, place.attributes() if place.inside else f"range({s.dim(count).text})"))
        place = place.layer(name)
    text = place.attributes() if place.inside else _entry(place)
    for name, over in reversed(loops):
        text = f"torch.stack([{text} for {name} in {over}])"
    return Py(text)


def _entry(place: Place) -> str:
    key = ".".join(str(p) for p in place.path)
    return f'{place.root}[{"f" if "{" in key else ""}"{key}"]'


def module_at(s: Scope, e: TExpr) -> str:
    """A module to call with the state dict of the tree `e`: one in scope, or one made for its code."""
    root, fields = chain(e)
    net = s.nets.get(instance_of(root))
    path = place_of(s, e, "").path
    if net is None or any(isinstance(p, Linear) for p in path):
        return module_of(s, instance_of(e))
    return ".".join([net, *(s.context.field_path(instance_of(f.base), f.name) for f in fields)])


def module_of(s: Scope, instance: Instance) -> str:
    """A module of this instance: one in scope, or one made for its code."""
    return s.nets.get(instance) or constructor(s, instance, meta=True)


def constructor(s: Scope, instance: Instance, source: ast.ModuleExpr | None = None, *, meta: bool = False) -> str:
    """The Python that makes a module, with lengths as `source` writes them; with `meta`, without memory for its
    parameters."""
    text = _constructor(s, instance, source)
    return f"{s.context.helper('on_meta')}(lambda: {text})" if meta else text


def _constructor(s: Scope, instance: Instance, source: ast.ModuleExpr | None) -> str:
    dims = source.dims if isinstance(source, ast.ModuleRef) else ()
    match instance:
        case Applied(module, args):
            lengths = (s.dim(a, e).text for a, e in zip_longest(args, dims[: len(args)]))
            return f"{s.context.classes[module].name}({', '.join(lengths)})"
        case Stacked(count, inner):
            within = source.modules[0] if isinstance(source, ast.ModuleRef) and len(source.modules) == 1 else None
            number = s.dim(count, dims[0] if within is not None and dims else None).text
            return f"nn.ModuleList({_constructor(s, inner, within)} for _ in range({number}))"
        case Composed(outer, inner):
            helper = s.context.helper("Compose")
            first, second = (source.outer, source.inner) if isinstance(source, ast.Compose) else (None, None)
            return f"{helper}({_constructor(s, outer, first)}, {_constructor(s, inner, second)})"
