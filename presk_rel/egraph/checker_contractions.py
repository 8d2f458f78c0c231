"""The checker's own reading of contractions of stacks: whether one does to every slice what another does."""

from __future__ import annotations

from typing import Any

from presk_rel.core.shapes import same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Real
from presk_rel.smt.linear import Linear

Axes = list[str]
Contraction = tuple[Axes, Axes, Axes]
"""The axes of two operands and of the result."""


def contraction_fact(name: str, arguments: Any, values: list[object]) -> bool:
    """Whether a condition holds: `values` are types in place of terms."""
    match name, arguments, values:
        case "per-slice", [str() as what, _], [_, str() as spec]:
            op, _, side = what.rpartition("-")
            inner = _sliced(spec, side)
            return inner is not None and _is(op, inner)
        case "per-slice-of", [_, str() as side, _], [str() as of, _, str() as spec]:
            inner, outer = _sliced(spec, side), _read(of)
            return inner is not None and outer is not None and _alike(inner, outer)
        case "summed-out", _, [str() as axis, str() as of, str() as spec]:
            before, after = _read(of), _read(spec)
            if before is None or after is None or axis not in before[2] or before[:2] != after[:2]:
                return False
            return after[2] == [n for n in before[2] if n != axis]
        case "stack-of", _, [ty, axis, Linear() as count]:
            return _is_stack(ty, axis, count)
        case "lines-up-per-slice", _, [small, large, x, y]:
            return _lines_up(small, large, x, y)
        case _:
            return False


def _is_stack(ty: object, axis: object, count: Linear) -> bool:
    """Whether the first axis is this one, of this length, and no other has its name."""
    if not isinstance(ty, Real) or ty.shape.prefix is not None or not ty.shape.axes:
        return False
    names = [a.name for a in ty.shape.axes]
    return names[0] == axis and names.count(names[0]) == 1 and ty.shape.axes[0].length == count


def _lines_up(small: object, large: object, x: object, y: object) -> bool:
    """Whether stacks of these types line up by their first axes, and behind them as their slices do."""
    if not all(isinstance(t, Real) and t.shape.prefix is None for t in (small, large, x, y)):
        return False
    p, q, s, t = (ty.shape for ty in (small, large, x, y) if isinstance(ty, Real))
    for narrow, wide, narrow_stack, wide_stack in ((p, q, s, t), (q, p, t, s)):
        if len(narrow.axes) > len(wide.axes) or (len(p.axes) == len(q.axes) and wide is p):
            continue
        inner, outer = align(narrow, wide, same), align(narrow_stack, wide_stack, same)
        return inner is not None and outer == (0, *(k + 1 for k in inner))
    return False


def _read(spec: str) -> Contraction | None:
    """`a b, b c -> a c` as lists, each without repetitions."""
    operands, arrow, result = spec.partition("->")
    lists = [part.split() for part in (*operands.split(","), result)]
    if not arrow or len(lists) != 3 or any(len(set(axes)) < len(axes) for axes in lists):
        return None
    return lists[0], lists[1], lists[2]


def _sliced(spec: str, side: str) -> Contraction | None:
    """What a contraction of stacks is at one slice: the stack's axis is the first of the operands that are stacks and
    of the result, and nowhere else."""
    whole = _read(spec)
    if whole is None or not whole[2] or side not in ("left", "right", "both"):
        return None
    axis = whole[2][0]
    stacks = (side != "right", side != "left", True)
    for axes, stack in zip(whole, stacks, strict=True):
        if (axes[:1] == [axis]) != stack or axis in axes[1:]:
            return None
    left, right, out = (axes[1:] if stack else axes for axes, stack in zip(whole, stacks, strict=True))
    return left, right, out


def _is(op: str, inner: Contraction) -> bool:
    """Whether it is what a primitive does."""
    x, w, out = inner
    match op:
        case "dot":  # … d, d … -> … …
            return bool(x) and x[-1:] == w[:1] and out == x[:-1] + w[1:] and _apart(x[:-1], x[-1:], w[1:])
        case "dot_vjp_l":  # l r, d r -> l d
            cut = len(x) - len(w) + 1
            return bool(w) and cut >= 0 and x[cut:] == w[1:] and out == x[:cut] + w[:1] and _apart(x, w[:1])
        case "dot_vjp_r":  # l d, l r -> d r
            cut = len(x) - 1
            return bool(x) and x[:-1] == w[:cut] and out == x[-1:] + w[cut:] and _apart(x, w[cut:])
        case _:
            return False


def _apart(*lists: Axes) -> bool:
    """No axis is in two of them."""
    return len({n for axes in lists for n in axes}) == sum(map(len, lists))


def _alike(inner: Contraction, outer: Contraction) -> bool:
    """Whether they are the same but for the names of axes."""
    names: dict[str, str] = {}
    for axes, others in zip(inner, outer, strict=True):
        if len(axes) != len(others) or any(names.setdefault(a, b) != b for a, b in zip(axes, others, strict=True)):
            return False
    return len(set(names.values())) == len(names)
