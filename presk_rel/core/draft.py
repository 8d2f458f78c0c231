"""A flat function in the making: bindings before their final names and types, with what inlining must not change.

In a generic function, operands line up by their *generic* types (`ℝ[...]` against `ℝ[..., model: D]`: by the prefix).
Once a prefix is replaced by concrete axes the same operation could line up otherwise, or name an axis that its operand
does not name. So each draft records the operands' types as its function saw them and the alignment meant; `core.align`
checks them against the final types and makes explicit what would change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from presk_rel.core.ir import Op
from presk_rel.core.rule import with_shape
from presk_rel.core.shapes import same
from presk_rel.diagnostics import NOWHERE, Span
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Axis, Idx, Mask, Real, Shape, Type

PAIRED = frozenset({"add", "sub", "mul", "div", "max", "min", "lt", "le", "gt", "ge", "eq"})
"""Primitives that broadcast one operand to the other."""

AXIS_OPERAND = {
    "mean": 0, "sum": 0, "mean_vjp": 1, "broadcast_like": 1, "softmax": 0, "merge": 0, "split": 0, "concat": 0,
    "index": 0, "slice": 0, "scatter_index": 1, "slice_vjp": 1,
}  # fmt: skip
"""Which operand carries the axis that the first attribute names."""

PLACED = frozenset({"index", "slice", "scatter_index", "slice_vjp"})
"""Primitives whose axis may be given by number."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What an operation means at the generic types: operand `small` lines up with the other one, its axis i with axis
    `where[i]`; or the attribute's axis is number `axis` of its operand. Positions count after a kept prefix."""

    small: int = 0
    where: tuple[int, ...] | None = None
    axis: int | None = None


NOTHING = Meant()


@dataclass(slots=True)
class Draft:
    """A binding whose operands are draft names. `seen` are the operands' types in their function, instantiated."""

    name: str
    hint: str | None
    type: Type
    op: Op
    seen: tuple[Type, ...]
    meant: Meant = NOTHING
    span: Span = NOWHERE
    note: str | None = None


def meaning(op: str, attrs: tuple[object, ...], generic: tuple[Type, ...], prefixes: Mapping[str, Shape]) -> Meant:
    """What a primitive means at its function's own types, in positions of the instantiated ones."""
    axis = _axis_meant(op, attrs, generic, prefixes)
    if op == "softmax" and len(generic) == 2:
        return replace(_lined_up(1, _shape(generic[1]), _shape(generic[0]), prefixes), axis=axis)
    if axis is not None:
        return Meant(axis=axis)
    if op not in PAIRED and op not in ("broadcast_like", "sum_to"):
        return NOTHING
    if not all(isinstance(t, Real | Idx | Mask) for t in generic):
        return NOTHING
    small = 1 if op == "sum_to" or (op in PAIRED and _rank(generic[0]) >= _rank(generic[1])) else 0
    return _lined_up(small, _shape(generic[small]), _shape(generic[1 - small]), prefixes)


def _axis_meant(
    op: str, attrs: tuple[object, ...], generic: tuple[Type, ...], prefixes: Mapping[str, Shape]
) -> int | None:
    if not attrs or op not in AXIS_OPERAND:
        return None
    shape = _shape(generic[AXIS_OPERAND[op]])
    named = (i for i, a in enumerate(shape.axes) if a.name == attrs[0])
    position = attrs[0] if isinstance(attrs[0], int) else next(named, None)
    return None if position is None else _lead(shape, prefixes) + position


def _lined_up(index: int, small: Shape, large: Shape, prefixes: Mapping[str, Shape]) -> Meant:
    where = align(small, large, same)
    if where is None:
        return NOTHING
    k = _lead(large, prefixes)
    first = tuple(range(_lead(small, prefixes)))
    return Meant(small=index, where=(*first, *(k + i for i in where)))


def _rank(ty: Type) -> tuple[int, int]:
    """As `elab.broadcast.broadcast` ranks its operands."""
    shape = _shape(ty)
    return (0 if shape.prefix is None else 1, len(shape.axes))


def _lead(shape: Shape, prefixes: Mapping[str, Shape]) -> int:
    """How many concrete axes a prefix has become, with those before it where none is left of it."""
    if shape.prefix is None or shape.prefix not in prefixes:
        return 0
    lead = prefixes[shape.prefix]
    return len(lead.axes) + (len(shape.front) if lead.prefix is None else 0)


def _shape(ty: Type) -> Shape:
    match ty:
        case Real(shape) | Mask(shape) | Idx(_, shape):
            return shape
        case _:
            return Shape(None, ())


def with_names(ty: Type, names: Type) -> Type:
    """A tensor type with the axis names it lacks taken from a type of the same lengths; none comes to stand twice."""
    match ty, names:
        case (Real(a), Real(b)) | (Idx(_, a), Idx(_, b)) | (Mask(a), Mask(b)) if len(a.axes) == len(b.axes):
            return with_shape(ty, _merged(a, b))
        case _:
            return ty


def _merged(a: Shape, b: Shape) -> Shape:
    taken = {x.name for x in a.axes}
    axes: list[Axis] = []
    for x, y in zip(a.axes, b.axes, strict=True):
        take = x.name is None and y.name is not None and y.name not in taken
        taken.add(y.name)
        axes.append(Axis(y.name, x.length) if take else x)
    return a.with_axes(tuple(axes))
