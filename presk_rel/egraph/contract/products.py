"""Operations read as sums of products: a label for each axis of each factor; what the result lacks is summed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from presk_rel.core.ein import ein_spec
from presk_rel.core.ir import Attr
from presk_rel.core.shapes import same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Real, Shape, Type

Label = int
Labels = tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """The sum, over the labels that are not of the result, of the product of the factors. Factors are the operands
    whose values are read, in order."""

    factors: tuple[Labels, ...]
    result: Labels


READ = frozenset(("dot", "dot_vjp_l", "dot_vjp_r", "mul", "sum", "sum_to", "ein", "broadcast_like"))
"""The operations that are sums of products. (A `broadcast_like` is one where other factors have its axes.)"""


def product_of(op: str, attrs: tuple[Attr, ...], types: tuple[Type, ...]) -> Product | None:
    """An operation as a sum of products; None where it is none, or of axes that `...` stands for. `types` are those of
    all operands."""
    shapes = [t.shape for t in types if isinstance(t, Real)]
    if op not in READ or len(shapes) != len(types) or any(s.prefix is not None for s in shapes):
        return None
    ranks = [len(s.axes) for s in shapes]
    match op, ranks:
        case "dot", [m, n] if m and n:
            return _joined(m, n, m - 1, 0, 1)
        case "dot_vjp_l", [m, n] if m >= n - 1 >= 0:
            return _joined(m, n, m - n + 1, 1, n - 1)
        case "dot_vjp_r", [m, n] if n >= m - 1 >= 0:
            return _joined(m, n, 0, 0, m - 1)
        case "mul", [_, _]:
            return _entries(shapes)
        case "sum", [n]:
            gone = _axis(shapes[0], attrs)
            return Product((tuple(range(n)),), tuple(i for i in range(n) if gone is not None and i != gone))
        case (("sum_to" | "broadcast_like"), [_, _]):
            return _along(op, attrs, shapes)
        case "ein", _:
            return _of_spec(str(attrs[0]))
        case _:
            return None


def _joined(m: int, n: int, left: int, right: int, length: int) -> Product:
    """Two factors that share `length` axes, from `left` and from `right` on; the result has the other ones."""
    fresh = count(m)
    x = tuple(range(m))
    y = tuple(x[left + i - right] if right <= i < right + length else next(fresh) for i in range(n))
    shared = set(x[left : left + length])
    return Product((x, y), tuple(i for i in (*x, *y) if i not in shared))


def _entries(shapes: list[Shape]) -> Product | None:
    large = 0 if len(shapes[0].axes) >= len(shapes[1].axes) else 1
    where = align(shapes[1 - large], shapes[large], same)
    whole = tuple(range(len(shapes[large].axes)))
    if where is None:
        return None
    return Product((whole, where) if large == 0 else (where, whole), whole)


def _axis(shape: Shape, attrs: tuple[Attr, ...]) -> int | None:
    return next((i for i, a in enumerate(shape.axes) if attrs and a.name == attrs[0]), None)


def _along(op: str, attrs: tuple[Attr, ...], shapes: list[Shape]) -> Product | None:
    """A sum down to the axes of a template, or a repetition along them."""
    x, template = shapes
    large, small = (x, template) if op == "sum_to" else (template, x)
    where = align(small, large, same)
    if attrs:
        gone = _axis(large, attrs)
        where = None if gone is None else tuple(i for i in range(len(large.axes)) if i != gone)
    if where is None:
        return None
    whole = tuple(range(len(large.axes)))
    return Product((whole,), where) if op == "sum_to" else Product((where,), whole)


def _of_spec(text: str) -> Product | None:
    spec = ein_spec(text)
    if spec is None:
        return None
    number: dict[str, Label] = {}
    lists = [tuple(number.setdefault(n, len(number)) for n in axes) for axes in (*spec.operands, spec.result)]
    return Product(tuple(lists[:-1]), lists[-1])
