"""Relations between the types of PSK-Core, shared by the typing rules, the verifier, lowering and inlining.

Lengths are canonical `Linear` forms and compared with `==`: the type checker has proven what else is equal. Two types
are *compatible* when they differ only in axis names that one of them lacks (spec: "Typing", Shapes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from presk_rel.elab.broadcast import compatible, same_lead
from presk_rel.elab.ty import (
    Applied,
    Axis,
    Composed,
    Function,
    Hyper,
    Idx,
    Instance,
    Key,
    Mask,
    ModuleValue,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
    map_instance,
)
from presk_rel.smt.linear import Linear

Dims = Mapping[str, Linear]
Prefixes = Mapping[str, Shape]

UNIT = TupleOf(())
"""What a key, an index or a hyperparameter has for a cotangent."""


def same(a: Linear, b: Linear) -> bool:
    """Equality of lengths in PSK-Core."""
    return a == b


# --------------------------------------------------------------------------------------------------- substitution


def substitute(ty: Type, dims: Dims, prefixes: Prefixes) -> Type:
    """Replace dims by forms and prefixes by leading axes, all at once; what is absent from the maps stays."""
    match ty:
        case Real(shape):
            return Real(substitute_shape(shape, dims, prefixes))
        case Idx(bound, shape):
            return Idx(bound.substitute(dims), substitute_shape(shape, dims, prefixes))
        case Mask(shape):
            return Mask(substitute_shape(shape, dims, prefixes))
        case Hyper():
            return ty
        case Key(shape):
            return Key(substitute_shape(shape, dims, prefixes))
        case TupleOf(items):
            return TupleOf(tuple(substitute(t, dims, prefixes) for t in items))
        case Params(instance):
            return Params(substitute_instance(instance, dims))
        case Function(params, result):
            return Function(
                tuple(substitute(t, dims, prefixes) for t in params),
                substitute(result, dims, prefixes),
            )
        case ModuleValue(instance):
            return ModuleValue(substitute_instance(instance, dims))
        case _:
            assert_never(ty)


def substitute_instance(instance: Instance, dims: Dims) -> Instance:
    return map_instance(instance, lambda d: d.substitute(dims))


def substitute_shape(shape: Shape, dims: Dims, prefixes: Prefixes) -> Shape:
    front, axes = (tuple(Axis(a.name, a.length.substitute(dims)) for a in run) for run in (shape.front, shape.axes))
    if shape.prefix is None or shape.prefix not in prefixes:
        return Shape(shape.prefix, axes, front)
    lead = prefixes[shape.prefix]
    if lead.prefix is None:
        return Shape(None, (*front, *lead.axes, *axes))
    return Shape(lead.prefix, (*lead.axes, *axes), (*front, *lead.front))


# -------------------------------------------------------------------------------------------------- compatibility


def compatible_shapes(a: Shape, b: Shape) -> bool:
    """The same prefix and as many axes, pairwise of equal length and with no two different names."""
    return same_lead(a, b, same) and compatible_axes(a.axes, b.axes)


def compatible_axes(a: tuple[Axis, ...], b: tuple[Axis, ...]) -> bool:
    return len(a) == len(b) and all(compatible(x, y, same) for x, y in zip(a, b, strict=True))


def compatible_types(a: Type, b: Type) -> bool:
    """Equal up to axis names that one side lacks."""
    match a, b:
        case (Real(s), Real(t)) | (Mask(s), Mask(t)) | (Key(s), Key(t)):
            return compatible_shapes(s, t)
        case Idx(m, s), Idx(n, t):
            return m == n and compatible_shapes(s, t)
        case TupleOf(xs), TupleOf(ys):
            return _pairwise(xs, ys)
        case Function(ps, r), Function(qs, s):
            return _pairwise(ps, qs) and compatible_types(r, s)
        case _:
            return a == b


def _pairwise(xs: tuple[Type, ...], ys: tuple[Type, ...]) -> bool:
    return len(xs) == len(ys) and all(compatible_types(x, y) for x, y in zip(xs, ys, strict=True))


# ---------------------------------------------------------------------------------------------- prefix absorption


def absorb(params: Iterable[Type], args: Iterable[Type], prefixes: dict[str, Shape]) -> str | None:
    """Match argument types with parameter types whose dims are substituted already; a prefix of a parameter takes the
    leading axes of its argument, the same at every occurrence. Fills `prefixes`; an error text if they do not match."""
    for param, arg in zip(params, args, strict=True):
        if not _absorb(param, arg, prefixes):
            expected = substitute(param, {}, prefixes)
            return f"the argument has type {arg}, the parameter {expected}"
    return None


def _absorb(param: Type, arg: Type, prefixes: dict[str, Shape]) -> bool:
    match param, arg:
        case (Real(s), Real(t)) | (Mask(s), Mask(t)) | (Key(s), Key(t)):
            return _absorb_shape(s, t, prefixes)
        case Idx(m, s), Idx(n, t):
            return m == n and _absorb_shape(s, t, prefixes)
        case TupleOf(xs), TupleOf(ys):
            return len(xs) == len(ys) and all(_absorb(x, y, prefixes) for x, y in zip(xs, ys, strict=True))
        case Function(ps, r), Function(qs, u):
            return (
                len(ps) == len(qs)
                and all(_absorb(x, y, prefixes) for x, y in zip(ps, qs, strict=True))
                and _absorb(r, u, prefixes)
            )
        case _:
            return param == arg


def _absorb_shape(param: Shape, arg: Shape, prefixes: dict[str, Shape]) -> bool:
    if param.prefix is None:
        return compatible_shapes(param, arg)
    lead = _lead(param, arg)
    if lead is None:
        return False
    known = prefixes.get(param.prefix)
    if known is not None and not compatible_shapes(known, lead):
        return False
    prefixes[param.prefix] = lead if known is None else merge_names(known, lead)
    return True


def _lead(param: Shape, arg: Shape) -> Shape | None:
    """What the prefix of `param` stands for in `arg`, by the axes around it; None where they are not those."""
    k, start = len(param.front), arg.front if arg.prefix is not None else arg.axes
    cut = len(arg.axes) - len(param.axes)
    skip = k if arg.prefix is None else 0
    if k > len(start) or cut < skip:
        return None
    if not compatible_axes(param.front, start[:k]) or not compatible_axes(param.axes, arg.axes[cut:]):
        return None
    return Shape(arg.prefix, arg.axes[skip:cut], arg.front[k:])


def merge_names(a: Shape, b: Shape) -> Shape:
    """`a` with the names it lacks taken from the compatible shape `b`."""
    pairs = zip(a.axes, b.axes, strict=True)
    return a.with_axes(tuple(Axis(x.name if x.name is not None else y.name, x.length) for x, y in pairs))


# ------------------------------------------------------------------------------------- stacks, slices, cotangents


def stack_type(count: Linear, ty: Type) -> Type | None:
    """The type of `count` values of type `ty` stacked; None where there is no such type (hyperparameters and function
    values)."""
    match ty:
        case Real(shape):
            return Real(_in_front(count, shape))
        case Idx(bound, shape):
            return Idx(bound, _in_front(count, shape))
        case Mask(shape):
            return Mask(_in_front(count, shape))
        case Key(shape):
            return Key(_in_front(count, shape))
        case Params(instance):
            return Params(Stacked(count, instance))
        case TupleOf(items):
            stacked = [stack_type(count, t) for t in items]
            whole = tuple(t for t in stacked if t is not None)
            return TupleOf(whole) if len(whole) == len(items) else None
        case _:
            return None


def slice_type(count: Linear, ty: Type) -> Type | None:
    """The type of one slice of a stack of `count`; the inverse of `stack_type`. None where `ty` is no such stack."""
    match ty:
        case Real(shape):
            rest = _tail(count, shape)
            return None if rest is None else Real(rest)
        case Idx(bound, shape):
            rest = _tail(count, shape)
            return None if rest is None else Idx(bound, rest)
        case Mask(shape):
            rest = _tail(count, shape)
            return None if rest is None else Mask(rest)
        case Key(shape):
            rest = _tail(count, shape)
            return None if rest is None else Key(rest)
        case Params(Stacked(n, inner)):
            return Params(inner) if n == count else None
        case TupleOf(items):
            slices = [slice_type(count, t) for t in items]
            whole = tuple(t for t in slices if t is not None)
            return TupleOf(whole) if len(whole) == len(items) else None
        case _:
            return None


def stack_count(ty: Type) -> Linear | None:
    """How many values a stack of this type holds, by its first leaf; None where it is no stack."""
    match ty:
        case Real(shape) | Mask(shape) | Key(shape) | Idx(_, shape):
            first = _first(shape)
            return None if first is None else first.length
        case Params(Stacked(count)):
            return count
        case TupleOf(items):
            return next((n for t in items if (n := stack_count(t)) is not None), None)
        case _:
            return None


def _tail(count: Linear, shape: Shape) -> Shape | None:
    first = _first(shape)
    if first is None or first.length != count:
        return None
    return Shape(None, shape.axes[1:]) if shape.prefix is None else Shape(shape.prefix, shape.axes, shape.front[1:])


def _first(shape: Shape) -> Axis | None:
    """The first axis, if it is known."""
    run = shape.axes if shape.prefix is None else shape.front
    return run[0] if run else None


def _in_front(count: Linear, shape: Shape) -> Shape:
    axis = Axis(None, count)
    if shape.prefix is None:
        return Shape(None, (axis, *shape.axes))
    return Shape(shape.prefix, shape.axes, (axis, *shape.front))


def tangent(ty: Type) -> Type:
    """The type of a cotangent of a value of type `ty`: reals and parameter trees as they are, tuples item by item, and
    the unit tuple for keys, indices, masks, hyperparameters and function values."""
    match ty:
        case Real() | Params():
            return ty
        case TupleOf(items):
            return TupleOf(tuple(tangent(t) for t in items))
        case Idx() | Mask() | Hyper() | Key() | Function() | ModuleValue():
            return UNIT
        case _:
            assert_never(ty)


# ------------------------------------------------------------------------------------------------ what a type says


def shapes_in(ty: Type) -> Iterator[Shape]:
    """Every shape in a type."""
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape) | Key(shape):
            yield shape
        case TupleOf(items):
            for t in items:
                yield from shapes_in(t)
        case Function(params, result):
            for t in (*params, result):
                yield from shapes_in(t)
        case Params() | Hyper() | ModuleValue():
            return
        case _:
            assert_never(ty)


def instances_in(ty: Type) -> Iterator[Instance]:
    """Every module instance in a type."""
    match ty:
        case Params(instance) | ModuleValue(instance):
            yield instance
        case TupleOf(items):
            for t in items:
                yield from instances_in(t)
        case Function(params, result):
            for t in (*params, result):
                yield from instances_in(t)
        case Real() | Idx() | Mask() | Hyper() | Key():
            return
        case _:
            assert_never(ty)


def forms_in(ty: Type) -> Iterator[Linear]:
    """Every dimension form in a type: lengths, bounds, arguments, counts."""
    for shape in shapes_in(ty):
        yield from (a.length for a in (*shape.front, *shape.axes))
    for instance in instances_in(ty):
        yield from forms_of_instance(instance)
    yield from _bounds_in(ty)


def _bounds_in(ty: Type) -> Iterator[Linear]:
    match ty:
        case Idx(bound):
            yield bound
        case TupleOf(items):
            for t in items:
                yield from _bounds_in(t)
        case Function(params, result):
            for t in (*params, result):
                yield from _bounds_in(t)
        case _:
            return


def forms_of_instance(instance: Instance) -> Iterator[Linear]:
    match instance:
        case Applied(_, args):
            yield from args
        case Stacked(count, inner):
            yield count
            yield from forms_of_instance(inner)
        case Composed(outer, inner):
            yield from forms_of_instance(outer)
            yield from forms_of_instance(inner)
        case _:
            assert_never(instance)


def symbols_in(ty: Type) -> set[str]:
    """The dims a type mentions."""
    return {s for form in forms_in(ty) for s in form.symbols}


def prefixes_in(ty: Type) -> set[str]:
    """The prefixes a type mentions."""
    return {shape.prefix for shape in shapes_in(ty) if shape.prefix is not None}
