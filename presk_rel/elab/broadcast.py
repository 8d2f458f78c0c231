"""How two shapes line up (spec: "Broadcasting"): by trailing axes, then by name. One definition for the type checker,
the verifier, differentiation and every executor.

Alignment is decided on *static* types. A prefix is one block: `ℝ[...]` lines up with the front of `ℝ[..., model: D]`,
which trailing axes of an instance (`ℝ[5]` against `ℝ[5, model: D]`) would not say. So code that replaces a prefix by
concrete axes must keep the old alignment explicit (`broadcast_like axis model`), never recompute it.
"""

from __future__ import annotations

from collections.abc import Callable

from presk_rel.elab.ty import Axis, Shape
from presk_rel.smt.linear import Linear

SameLength = Callable[[Linear, Linear], bool]


def compatible(a: Axis, b: Axis, same: SameLength) -> bool:
    """Equal lengths, and names equal or one of them absent."""
    return (a.name is None or b.name is None or a.name == b.name) and same(a.length, b.length)


def same_lead(a: Shape, b: Shape, same: SameLength) -> bool:
    """Whether two shapes have the same prefix, and the same axes before it."""
    pairs = len(a.front) == len(b.front) and all(compatible(x, y, same) for x, y in zip(a.front, b.front, strict=True))
    return pairs and a.prefix == b.prefix


def align(small: Shape, large: Shape, same: SameLength) -> tuple[int, ...] | None:
    """For each axis of `small`, the index of the axis of `large` (in `large.axes`, after the prefix) it lines up with;
    None when `small` does not broadcast into `large`. A prefix of `small` lines up with the equal prefix of `large`."""
    if small.prefix is not None and not same_lead(small, large, same):
        return None
    n, m = len(small.axes), len(large.axes)
    if n > m:
        return None
    if small.prefix is None or n == m:
        trailing = tuple(range(m - n, m))
        if all(compatible(a, large.axes[i], same) for a, i in zip(small.axes, trailing, strict=True)):
            return trailing
    return _by_name(small, large, same)


def _by_name(small: Shape, large: Shape, same: SameLength) -> tuple[int, ...] | None:
    where = {a.name: i for i, a in enumerate(large.axes) if a.name is not None}
    found: list[int] = []
    for a in small.axes:
        i = where.get(a.name) if a.name is not None else None
        if i is None or not same(a.length, large.axes[i].length):
            return None
        found.append(i)
    return tuple(found) if len(set(found)) == len(found) else None


def broadcast(a: Shape, b: Shape, same: SameLength) -> Shape | None:
    """The shape of `a + b`: the larger one, an axis unnamed there taking the name it lines up with; None when neither
    broadcasts into the other. A permuted equal shape (by name) gives `a`'s order."""
    small, large = (b, a) if _rank(a) >= _rank(b) else (a, b)
    where = align(small, large, same)
    if where is None:
        return None
    names = {i: x.name for x, i in zip(small.axes, where, strict=True)}
    taken = {x.name for x in large.axes}
    return large.with_axes(tuple(_named(x, names.get(i), taken) for i, x in enumerate(large.axes)))


def _rank(shape: Shape) -> tuple[int, int]:
    return (0 if shape.prefix is None else 1, len(shape.axes))


def _named(axis: Axis, name: str | None, taken: set[str | None]) -> Axis:
    return axis if axis.name is not None or name is None or name in taken else Axis(name, axis.length)
