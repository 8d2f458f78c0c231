"""Values of the interpreter of these tests: arrays, trees, and random ones of a type.

A real tensor is a numpy array of mpf (dtype object), an index tensor or a key one of int64, a mask one of bool; a
parameter tree is a dict, a tuple a tuple, a hyperparameter a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from presk_rel.core.ir import Program
from presk_rel.core.shapes import prefixes_in
from presk_rel.elab.ty import Idx, Key, Mask, Params, Real, Shape, TupleOf, Type, leaves

Value = Any
Array = np.ndarray[Any, Any]


def scalar(x: Any) -> Array:
    out = np.empty((), dtype=object)
    out[()] = x
    return out


def asarray(x: Value) -> Array:
    """A real as an array; numpy gives bare entries for arrays of rank 0."""
    return x if isinstance(x, np.ndarray) else np.asarray(x) if isinstance(x, np.generic) else scalar(x)


def is_real(x: Value) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == object


def stack(values: list[Value]) -> Value:
    match values[0]:
        case dict() as first:
            return {k: stack([v[k] for v in values]) for k in first}
        case tuple() as first:
            return tuple(stack([v[k] for v in values]) for k in range(len(first)))
        case np.ndarray():
            return np.stack(values)
        case only:
            return only


def tree(f: Callable[..., Value], *values: Value) -> Value:
    """`f` of the leaves."""
    match values[0]:
        case dict() as first:
            return {k: tree(f, *(v[k] for v in values)) for k in first}
        case tuple() as first:
            return tuple(tree(f, *(v[k] for v in values)) for k in range(len(first)))
        case _:
            return f(*values)


# ------------------------------------------------------------------------------------------------ values of a type


def random_value(
    program: Program, ty: Type, dims: dict[str, int], lead: tuple[int, ...], draw: Callable[[], Any]
) -> Value:
    """A value of a type, its reals drawn by `draw`; a prefix stands for the axes `lead`."""
    match ty:
        case Real(shape):
            out = np.empty(lengths_of(shape, dims, lead), dtype=object)
            for i in np.ndindex(out.shape):
                out[i] = draw()
            return out
        case TupleOf(items):
            return tuple(random_value(program, t, dims, lead, draw) for t in items)
        case Params(instance):
            out_tree: dict[str, Value] = {}
            for path, leaf in leaves(program.modules, instance):
                _set(out_tree, path.split("."), random_value(program, leaf, dims, lead, draw))
            return out_tree
        case Key(shape):
            return _whole_numbers(shape, dims, lead, lambda: int(draw() * 100_000))
        case Idx(bound, shape):
            n = int(bound.evaluate(dims))
            return _whole_numbers(shape, dims, lead, lambda: int(draw() * 1_000) % n)
        case Mask(shape):
            return _whole_numbers(shape, dims, lead, lambda: int(draw() * 1_000) % 3).astype(bool)
        case _:
            return 7


def lengths_of(shape: Shape, dims: dict[str, int], lead: tuple[int, ...] = ()) -> list[int]:
    front, rest = ([int(a.length.evaluate(dims)) for a in run] for run in (shape.front, shape.axes))
    return [*front, *(lead if shape.prefix else ()), *rest]


def prefix_of(types: list[Type], args: list[Value]) -> tuple[int, ...]:
    """What a prefix stands for, by the first of the arguments that has one, also in a tuple."""
    for ty, value in zip(types, args, strict=True):
        match ty:
            case Real(shape) | Idx(_, shape) | Mask(shape) if shape.prefix is not None:
                return value.shape[len(shape.front) : value.ndim - len(shape.axes)]
            case TupleOf(items) if any(prefixes_in(t) for t in items):
                return prefix_of(list(items), list(value))
            case _:
                continue
    return ()


def _whole_numbers(shape: Shape, dims: dict[str, int], lead: tuple[int, ...], draw: Callable[[], int]) -> Array:
    out = np.empty(lengths_of(shape, dims, lead), dtype=np.int64)
    for i in np.ndindex(out.shape):
        out[i] = draw()
    return out


def _set(into: dict[str, Value], path: list[str], value: Value) -> None:
    for step in path[:-1]:
        into = into.setdefault(step, {})
    into[path[-1]] = value


def flat(value: Value) -> list[Any]:
    """The real entries, in order; keys and hyperparameters are none."""
    match value:
        case dict():
            return [x for v in value.values() for x in flat(v)]
        case tuple():
            return [x for v in value for x in flat(v)]
        case _ if is_real(value):
            return [*value.reshape(-1)]
        case _:
            return []
