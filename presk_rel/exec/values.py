"""Run-time values, shared by every executor. What `data` holds is the executor's affair (`exec.exact`: numpy arrays of
balls, mpmath numbers or exact rationals; `exec.torch`: tensors; arguments and draws: *host data*, see `HostReals`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
HostReals: TypeAlias = NDArray[Any]
"""Exact reals before they reach an executor: an array of float64, of integers, or of `Fraction` objects."""

RunAxis: TypeAlias = tuple[str | None, int]
RunAxes: TypeAlias = tuple[RunAxis, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of reals; `data` has the shape that `axes` says, in row-major order."""

    axes: RunAxes
    data: Any


@dataclass(frozen=True, slots=True)
class IndexTensor:
    """Integers `0 ≤ i < bound`."""

    bound: int
    axes: RunAxes
    data: Any


@dataclass(frozen=True, slots=True)
class MaskTensor:
    axes: RunAxes
    data: Any


@dataclass(frozen=True, slots=True)
class HyperValue:
    """A hyperparameter: an exact rational; a `bool` is 0 or 1."""

    kind: str
    value: Fraction


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: bytes


@dataclass(frozen=True, slots=True)
class TupleValue:
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class TreeValue:
    """A parameter tree: its fields in declaration order."""

    fields: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class StackValue:
    """Values that have no leading axis to stack along (keys, hyperparameters), one per iteration of a fold."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """`closure fn{dims}[captured]`, its dimensions evaluated where it was made."""

    fn: str
    dims: Mapping[str, int]
    captured: tuple[Value, ...]


Value: TypeAlias = (
    Tensor | IndexTensor | MaskTensor | HyperValue | KeyValue | TupleValue | TreeValue | StackValue | FunctionValue
)
Leaf: TypeAlias = Tensor | IndexTensor | MaskTensor | HyperValue | KeyValue | FunctionValue

UNIT = TupleValue(())
"""What stands where no cotangent is: for a key, an index, a mask or a hyperparameter."""


@dataclass(frozen=True, slots=True)
class Rounded:
    """The reals of a result as they are printed: an object array of decimals (or of floats, from an executor that has
    nothing better), with a decimal bound of every entry's distance to the exact value (None: nothing is claimed) and
    the number of entries that are only proven to be below a floor."""

    text: Array
    error_bound: str | None = None
    zeros_below: int = 0


def shape_of(axes: RunAxes) -> tuple[int, ...]:
    return tuple(n for _, n in axes)


def count(axes: RunAxes) -> int:
    """The number of entries, exactly (it may be far beyond what fits in memory)."""
    result = 1
    for _, n in axes:
        result *= n
    return result


def map_leaves(f: Callable[[Leaf], Value], value: Value) -> Value:
    """Apply `f` to every leaf; the tree keeps its form."""
    match value:
        case TupleValue(items):
            return TupleValue(tuple(map_leaves(f, v) for v in items))
        case StackValue(items):
            return StackValue(tuple(map_leaves(f, v) for v in items))
        case TreeValue(fields):
            return TreeValue({n: map_leaves(f, v) for n, v in fields.items()})
        case _:
            return f(value)


def leaves(value: Value, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Every leaf with its path: `l1.w` in a tree, `0` in a tuple, the empty path for the value itself."""
    match value:
        case TupleValue(items) | StackValue(items):
            for i, v in enumerate(items):
                yield from leaves(v, f"{path}.{i}" if path else str(i))
        case TreeValue(fields):
            for n, v in fields.items():
                yield from leaves(v, f"{path}.{n}" if path else n)
        case _:
            yield path, value


def take(value: Value, i: int) -> Value:
    """Slice `i` of a stacked value."""
    match value:
        case Tensor(axes, data):
            return Tensor(axes[1:], data[i, ...])
        case IndexTensor(bound, axes, data):
            return IndexTensor(bound, axes[1:], data[i, ...])
        case MaskTensor(axes, data):
            return MaskTensor(axes[1:], data[i, ...])
        case StackValue(items):
            return items[i]
        case TupleValue(items):
            return TupleValue(tuple(take(v, i) for v in items))
        case TreeValue(fields):
            return TreeValue({n: take(v, i) for n, v in fields.items()})
        case HyperValue() | KeyValue() | FunctionValue():
            raise TypeError(f"a {type(value).__name__} has no slices")


def stack(values: list[Value], like: Value) -> Value:
    """The stack of `values`, each of the form of `like`, which gives the shape when there are none."""
    match like:
        case Tensor(axes):
            return Tensor(((None, len(values)), *axes), _stack_data(values, like.data))
        case IndexTensor(bound, axes):
            return IndexTensor(bound, ((None, len(values)), *axes), _stack_data(values, like.data))
        case MaskTensor(axes):
            return MaskTensor(((None, len(values)), *axes), _stack_data(values, like.data))
        case TupleValue(items):
            parts = [[v.items[k] for v in values if isinstance(v, TupleValue)] for k in range(len(items))]
            return TupleValue(tuple(stack(p, v) for p, v in zip(parts, items, strict=True)))
        case TreeValue(fields):
            rows = {n: [v.fields[n] for v in values if isinstance(v, TreeValue)] for n in fields}
            return TreeValue({n: stack(rows[n], v) for n, v in fields.items()})
        case HyperValue() | KeyValue() | FunctionValue() | StackValue():
            return StackValue(tuple(values))


def _stack_data(values: list[Value], like: Array) -> Array:
    data = [v.data for v in values if isinstance(v, Tensor | IndexTensor | MaskTensor)]
    if not data:
        return np.empty((0, *np.shape(like)), dtype=like.dtype)
    return np.stack(data)
