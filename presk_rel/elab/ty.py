"""Semantic types: what source types denote after elaboration, and what PSK-Core is typed with.

Lengths are `Linear` forms. A shape may start with a *prefix*: `"..."` (any number of leading axes, one fixed unknown
per function) or the name of a `{S : Shape}` parameter. `str` of a type is its canonical source syntax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from presk_rel.diagnostics.record import record
from presk_rel.smt.linear import Linear


@record
class Axis:
    """One axis: its name, if it has one, and its length."""

    name: str | None
    length: Linear

    def __str__(self) -> str:
        return str(self.length) if self.name is None else f"{self.name}: {self.length}"


@record
class Shape:
    """`axes` after an optional `prefix`. `Shape(None, ())` is the scalar shape. `front` are the axes before the prefix,
    none without one: stacks of what is generic in its leading axes have them (`ℝ[L, ..., D]`, `ℝ[L, S..., D]`), which
    are in PSK-Core only."""

    prefix: str | None
    axes: tuple[Axis, ...]
    front: tuple[Axis, ...] = ()

    def __str__(self) -> str:
        prefix = f"{self.prefix}..." if self.front and self.prefix != "..." else self.prefix
        return ", ".join([*map(str, self.front), *([prefix] if prefix else []), *map(str, self.axes)])

    def with_axes(self, axes: tuple[Axis, ...]) -> Shape:
        """The same prefix, and what is before it, with other axes after it."""
        return Shape(self.prefix, axes, self.front)

    @property
    def is_scalar(self) -> bool:
        return self.prefix is None and not self.axes


SCALAR = Shape(None, ())


@record
class Applied:
    """A module applied to its dimension arguments: the declared type parameters first, then the file's dims that its
    parameters mention (`MiniGPT` of the spec mentions `T`). `module` is the unique Core name of the module."""

    module: str
    args: tuple[Linear, ...]

    def __str__(self) -> str:
        return self.module + ("{" + ", ".join(map(str, self.args)) + "}" if self.args else "")


@record
class Stacked:
    """`stack{count}(inner)`: every parameter of `inner` with a leading axis of length `count`."""

    count: Linear
    inner: Instance

    def __str__(self) -> str:
        return f"stack{{{self.count}}}({self.inner})"


@record
class Composed:
    """`outer ∘ inner`; its parameter tree has the fields `outer` and `inner`. `A ∘ B ∘ C` is `(A ∘ B) ∘ C`."""

    outer: Instance
    inner: Instance

    def __str__(self) -> str:
        return f"{self.outer} ∘ {f'({self.inner})' if isinstance(self.inner, Composed) else self.inner}"


Instance = Applied | Stacked | Composed


@record
class Real:
    shape: Shape

    def __str__(self) -> str:
        return f"ℝ[{self.shape}]"


@record
class Idx:
    """Integers `0 ≤ i < bound`."""

    bound: Linear
    shape: Shape

    def __str__(self) -> str:
        return f"idx[{self.bound}][{self.shape}]"


@record
class Mask:
    shape: Shape

    def __str__(self) -> str:
        return f"bool[{self.shape}]"


@record
class Hyper:
    """A hyperparameter scalar."""

    kind: Literal["nat", "int", "rat", "f64", "bool"]

    def __str__(self) -> str:
        return self.kind


@record
class Key:
    """A key; with axes, the stack of the keys of a fold's iterations (`key[12]`), which only PSK-Core has."""

    shape: Shape = SCALAR

    def __str__(self) -> str:
        return "key" if self.shape.is_scalar else f"key[{self.shape}]"


@record
class TupleOf:
    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' if len(self.items) == 1 else ''})"


@record
class Params:
    """The parameter tree of a module instance."""

    instance: Instance

    def __str__(self) -> str:
        return f"params {self.instance}"


@record
class Function:
    """A function value; most take one argument."""

    params: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.params))}) -> {self.result}"


@record
class ModuleValue:
    """The type of a module-typed parameter (`net : MLP{D, 4*D}`): compile-time only, never in Core."""

    instance: Instance

    def __str__(self) -> str:
        return str(self.instance)


Type = Real | Idx | Mask | Hyper | Key | TupleOf | Params | Function | ModuleValue

SCALAR_REAL = Real(SCALAR)


def map_instance(instance: Instance, f: Callable[[Linear], Linear]) -> Instance:
    """Apply `f` to every dimension argument and stack count."""
    match instance:
        case Applied(module, args):
            return Applied(module, tuple(f(a) for a in args))
        case Stacked(count, inner):
            return Stacked(f(count), map_instance(inner, f))
        case Composed(outer, inner):
            return Composed(map_instance(outer, f), map_instance(inner, f))


def map_shape(shape: Shape, f: Callable[[Linear], Linear]) -> Shape:
    if not shape.axes and not shape.front:
        return shape
    axes, front = (tuple(Axis(a.name, f(a.length)) for a in run) for run in (shape.axes, shape.front))
    return Shape(shape.prefix, axes, front)


def map_dims(ty: Type, f: Callable[[Linear], Linear]) -> Type:
    """Apply `f` to every length, bound, argument and count in a type."""
    match ty:
        case Real(shape):
            return Real(map_shape(shape, f))
        case Idx(bound, shape):
            return Idx(f(bound), map_shape(shape, f))
        case Mask(shape):
            return Mask(map_shape(shape, f))
        case Hyper():
            return ty
        case Key(shape):
            return Key(map_shape(shape, f))
        case TupleOf(items):
            return TupleOf(tuple(map_dims(t, f) for t in items))
        case Params(instance):
            return Params(map_instance(instance, f))
        case Function(params, result):
            return Function(tuple(map_dims(t, f) for t in params), map_dims(result, f))
        case ModuleValue(instance):
            return ModuleValue(map_instance(instance, f))


# ------------------------------------------------------------------------------------------------- module tables

InitKind = Literal["zeros", "ones", "normal", "xavier_uniform"]


@record
class Init:
    """An initializer (spec: "Initializers"); `std` is the decimal text of `normal(std = …)`."""

    kind: InitKind
    std: str | None = None

    def __str__(self) -> str:
        return f"normal(std = {self.std})" if self.kind == "normal" else self.kind


@record
class ParamField:
    """A learnable tensor of a module."""

    name: str
    type: Real
    init: Init


@record
class UseField:
    """A sub-module of a module."""

    name: str
    instance: Instance


Field = ParamField | UseField


@record
class ModuleDef:
    """A module's parameter tree, generic in `dims`: its type parameters (`explicit` of them), then the file's dims that
    its fields mention. Field types mention only `dims`."""

    name: str
    dims: tuple[str, ...]
    explicit: int
    fields: tuple[Field, ...]


def field_type(modules: dict[str, ModuleDef], instance: Instance, name: str) -> Real | Params | None:
    """The type of `θ.name` for `θ : params instance`, or None if there is no such field. Stacked trees have the stack's
    axis (unnamed) in front of every tensor; a sub-module of a stacked tree is stacked itself."""
    match instance:
        case Applied(module, args):
            definition = modules[module]
            env = dict(zip(definition.dims, args, strict=True))
            return next((_at(f, env) for f in definition.fields if f.name == name), None)
        case Stacked(count, inner):
            below = field_type(modules, inner, name)
            return None if below is None else _stacked(count, below)
        case Composed(outer, inner):
            return {"outer": Params(outer), "inner": Params(inner)}.get(name)


def field_types(modules: dict[str, ModuleDef], instance: Instance) -> dict[str, Real | Params]:
    """The types of all fields of a parameter tree by name, in declaration order, in one pass."""
    match instance:
        case Applied(module, args):
            definition = modules[module]
            env = dict(zip(definition.dims, args, strict=True))
            return {f.name: _at(f, env) for f in definition.fields}
        case Stacked(count, inner):
            return {n: _stacked(count, ty) for n, ty in field_types(modules, inner).items()}
        case Composed(outer, inner):
            return {"outer": Params(outer), "inner": Params(inner)}


def _stacked(count: Linear, ty: Real | Params) -> Real | Params:
    match ty:
        case Real(shape):
            return Real(shape.with_axes((Axis(None, count), *shape.axes)))
        case Params(sub):
            return Params(Stacked(count, sub))


def _at(field: Field, env: dict[str, Linear]) -> Real | Params:
    match field:
        case ParamField(_, Real(shape)):
            return Real(map_shape(shape, lambda d: d.substitute(env)))
        case UseField(_, instance):
            return Params(map_instance(instance, lambda d: d.substitute(env)))


def field_names(modules: dict[str, ModuleDef], instance: Instance) -> tuple[str, ...]:
    """The fields of a parameter tree, in declaration order."""
    match instance:
        case Applied(module, _):
            return tuple(f.name for f in modules[module].fields)
        case Stacked(_, inner):
            return field_names(modules, inner)
        case Composed():
            return ("outer", "inner")


def leaves(modules: dict[str, ModuleDef], instance: Instance) -> list[tuple[str, Real]]:
    """Every tensor of a parameter tree with its path (`blocks.attn.wq.w`), in declaration order."""
    out: list[tuple[str, Real]] = []
    for name, ty in field_types(modules, instance).items():
        match ty:
            case Real():
                out.append((name, ty))
            case Params(sub):
                out.extend((f"{name}.{path}", below) for path, below in leaves(modules, sub))
    return out
