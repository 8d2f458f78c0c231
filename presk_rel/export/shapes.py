"""Axes where PyTorch counts and broadcasts otherwise than Presk."""

from __future__ import annotations

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Idx, Mask, Real, Shape, Type


def shape_of(ty: Type) -> Shape:
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape):
            return shape
        case _:
            return Shape(None, ())


def dim_of(shape: Shape, place: object) -> int:
    """`dim=` of an axis, by name or by number; from the end where leading axes are open."""
    names = [a.name for a in shape.axes]
    if isinstance(place, str) and place not in names:
        raise PreskBug("export", f"no axis {place} in [{shape}]")
    position = names.index(place) if isinstance(place, str) else int(str(place))
    return position - len(names) if shape.prefix is not None else position


def lined_up(small: Type, large: Type) -> str:
    """What to append to a tensor so that PyTorch's broadcasting is Presk's: unsqueezes, where axes stand between."""
    s, t = shape_of(small), shape_of(large)
    where = align(s, t, lambda a, b: a == b)
    if where is None:
        where = align(s, t, lambda _a, _b: True)
    if where is None:
        raise PreskBug("export", f"[{s}] does not broadcast into [{t}]")
    n = len(t.axes)
    text = ""
    order = sorted(range(len(where)), key=lambda k: where[k])
    if order != list(range(len(where))):
        source = tuple(k - len(where) for k in range(len(where)))
        target = tuple(order.index(k) - len(where) for k in range(len(where)))
        text = f".movedim({source}, {target})"
    first = -1 if s.prefix is not None else min(where, default=n)
    missing = [i for i in range(n - 1, -1, -1) if i not in where and i > first]
    return text + "".join(f".unsqueeze({i - n})" for i in missing)
