"""The dimension forms that a type mentions, in order of appearance."""

from __future__ import annotations

from collections.abc import Iterator

from presk_rel.elab.ty import (
    Applied,
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
)
from presk_rel.smt.linear import Linear


def type_forms(ty: Type) -> Iterator[Linear]:
    """Every length, bound, argument and count in `ty`, left to right."""
    match ty:
        case Real(shape) | Mask(shape):
            yield from _shape(shape)
        case Idx(bound, shape):
            yield bound
            yield from _shape(shape)
        case Hyper() | Key():
            return
        case TupleOf(items):
            for item in items:
                yield from type_forms(item)
        case Params(instance) | ModuleValue(instance):
            yield from instance_forms(instance)
        case Function(params, result):
            for param in params:
                yield from type_forms(param)
            yield from type_forms(result)


def _shape(shape: Shape) -> Iterator[Linear]:
    return (axis.length for axis in shape.axes)


def instance_forms(instance: Instance) -> Iterator[Linear]:
    match instance:
        case Applied(_, args):
            yield from args
        case Stacked(count, inner):
            yield count
            yield from instance_forms(inner)
        case Composed(outer, inner):
            yield from instance_forms(outer)
            yield from instance_forms(inner)
