"""What each primitive is inside a kernel, and how its operands line up with what it computes: one row per primitive.

A kernel computes all its values at the points of one index space. `indexing` says at which point of an operation's
space each operand is read: the axes of its result are numbered from 0, and the axes it sums over follow. An operand
that is read elsewhere (a gathered row, a shifted slice) is *opaque*: it must be in memory before the kernel starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ein import ein_spec
from presk_rel.core.ir import Attr, Prim
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Idx, Mask, Real, Shape, Type

Role = Literal["view", "generator", "pointwise", "expand", "reduction", "row", "contraction", "scatter", "alone"]
"""view: moves nothing. generator: needs no memory (a constant, zeros, a mask). pointwise: one entry from one entry of
each operand. expand: repeats a smaller operand. reduction: sums axes away. row: normalizes along an axis (softmax).
contraction: a sum of products; one that is no product of matrices is a
reduction, or pointwise (`graph`). scatter: adds up rows where indices say. alone: a launch of its own."""

_BY_ROLE: dict[Role, str] = {
    "view": "field set_field record tuple proj set_elem slice_params merge split reshape_like split_heads merge_heads "
    "index slice split_key",
    "generator": "const dim pi zeros ones zeros_like ones_like positions causal_mask dropout_mask",
    "pointwise": "real add sub mul div neg pow gelu relu exp tanh sqrt abs log sigmoid sin cos gelu' normal_pdf "
    "heaviside sign max min lt le gt ge eq one_hot embed scatter_index slice_vjp scatter_params "
    "set_slice gelu_vjp relu_vjp tanh_vjp sigmoid_vjp mse_vjp",
    "expand": "broadcast_like mean_vjp",
    "reduction": "sum mean sum_to sum_squares cross_entropy argmax logsumexp",
    "row": "softmax cross_entropy_vjp standardize standardize_vjp layer_norm layer_norm_vjp softmax_vjp "
    "log_softmax log_softmax_vjp",
    "contraction": "dot dot_vjp_l dot_vjp_r ein linear",
    "scatter": "embed_vjp",
    "alone": "normal xavier_uniform sample stack_params concat deviation mse layer_norm_vjp_scale "
    + " ".join(op for op in COMPOSITES if op.startswith("attention")),
}
ROLES: dict[str, Role] = {op: role for role, ops in _BY_ROLE.items() for op in ops.split()}

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Indexing:
    """The result has axes 0 … `rank`-1, sums run over axes `rank` … `rank + summed`-1, a row operation runs along the
    axes `along` of its result; `operands[i][k]` is the axis at which axis k of operand i is read, None if opaque."""

    rank: int
    summed: int
    along: Places
    operands: tuple[Places | None, ...]


def shape_of(ty: Type) -> Shape | None:
    """The shape of a tensor; None for anything else."""
    return ty.shape if isinstance(ty, Real | Idx | Mask) else None


def rank_of(shape: Shape) -> int:
    """The number of axes, a prefix counted as one."""
    return lead_of(shape) + len(shape.axes)


def lead_of(shape: Shape) -> int:
    """The number of axes in front: a prefix, counted as one, and those before it."""
    return 0 if shape.prefix is None else len(shape.front) + 1


def indexing(op: Prim, types: tuple[Type, ...], result: Type) -> Indexing | None:
    """How a primitive on tensors reads its operands; None if not all of them are tensors, keys or numbers, or the
    operation is a view or a launch of its own."""
    target = shape_of(result)
    role = ROLES[op.op]
    if target is None or role in ("view", "alone"):
        return None
    shapes = tuple(shape_of(t) for t in types)
    special = _SPECIAL.get(op.op)
    if special is None:
        return Indexing(rank_of(target), 0, (), tuple(_aligned(s, target) for s in shapes))
    known = tuple(s for i, s in enumerate(shapes) if s is not None and i not in PRIMS[op.op].shape_only)
    if len(known) != len(types) - len(PRIMS[op.op].shape_only):
        return None
    return special(op.attrs, known, target)


def _aligned(small: Shape | None, large: Shape) -> Places | None:
    """Where the axes of `small` lie in `large`, prefixes in front; None where it is no part of it."""
    where = None if small is None else align(small, large, same)
    if small is None or where is None:
        return None
    lead = lead_of(large)
    return (*range(lead_of(small)), *(i + lead for i in where))


def _axis(shape: Shape, name: Attr) -> int | None:
    found = [i for i, a in enumerate(shape.axes) if name in (a.name, i)]
    return found[0] + lead_of(shape) if found else None


def _without(shape: Shape, axis: int, last: int) -> Places:
    """The axes of `shape`, numbered without `axis`, which is `last`."""
    return tuple(last if k == axis else k - (k > axis) for k in range(rank_of(shape)))


def _sum(attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing | None:
    (x,) = shapes
    n = rank_of(target)
    if not attrs:
        return Indexing(n, rank_of(x), (), (tuple(range(rank_of(x))),))
    axis = _axis(x, attrs[0])
    return None if axis is None else Indexing(n, 1, (), (_without(x, axis, n),))


def _sum_to(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing | None:
    (x,) = shapes
    kept = _aligned(target, x)
    if kept is None:
        return None
    n = rank_of(target)
    summed = [k for k in range(rank_of(x)) if k not in kept]
    where = {k: i for i, k in enumerate(kept)} | {k: n + i for i, k in enumerate(summed)}
    return Indexing(n, len(summed), (), (tuple(where[k] for k in range(rank_of(x))),))


def _expand(attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing | None:
    (x,) = shapes
    n = rank_of(target)
    if not attrs:
        return Indexing(n, 0, (), (_aligned(x, target),))
    axis = _axis(target, attrs[0])
    return None if axis is None else Indexing(n, 0, (), (tuple(k for k in range(n) if k != axis),))


def _softmax(attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing | None:
    axis = _axis(target, attrs[0])
    return None if axis is None else Indexing(rank_of(target), 0, (axis,), tuple(_aligned(s, target) for s in shapes))


def _cross_entropy(_attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    n = rank_of(target)
    return Indexing(n, 1, (), (tuple(range(n + 1)), tuple(range(n))))


def _cross_entropy_vjp(_attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    n = rank_of(target)
    return Indexing(n, 0, (n - 1,), (tuple(range(n - 1)), tuple(range(n)), tuple(range(n - 1))))


def _argmax(_attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    n = rank_of(target)
    return Indexing(n, 1, (), (tuple(range(n + 1)),))


def _dot(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    n, rows = rank_of(target), rank_of(shapes[0]) - 1
    return Indexing(n, 1, (), ((*range(rows), n), (n, *range(rows, n))))


def _linear(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    product = _dot((), shapes[:2], target)
    return Indexing(product.rank, 1, (), (*product.operands, _aligned(shapes[2], target)))


def _dot_vjp_l(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    n, summed = rank_of(target), rank_of(shapes[1]) - 1
    summed_axes = range(n, n + summed)
    return Indexing(n, summed, (), ((*range(n - 1), *summed_axes), (n - 1, *summed_axes)))


def _dot_vjp_r(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    n, summed = rank_of(target), rank_of(shapes[0]) - 1
    summed_axes = range(n, n + summed)
    return Indexing(n, summed, (), ((*summed_axes, 0), (*summed_axes, *range(1, n))))


def _ein(attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], _target: Shape) -> Indexing | None:
    spec = ein_spec(str(attrs[0]))
    if spec is None:
        return None
    places = {name: i for i, name in enumerate(spec.result)}
    for names in spec.operands:
        for name in names:
            places.setdefault(name, len(places))
    n = len(spec.result)
    return Indexing(n, len(places) - n, (), tuple(tuple(places[a] for a in names) for names in spec.operands))


def _embed(_attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    return Indexing(rank_of(target), 0, (), (None, tuple(range(rank_of(target) - 1))))


def _embed_vjp(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], _target: Shape) -> Indexing:
    summed = rank_of(shapes[1])
    return Indexing(2, summed, (), ((*range(2, 2 + summed), 1), tuple(range(2, 2 + summed))))


def _one_hot(_attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    return Indexing(rank_of(target), 0, (), (tuple(range(rank_of(target) - 1)),))


def _shifted(_attrs: tuple[Attr, ...], shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    return Indexing(rank_of(target), 0, (), tuple(None for _ in shapes))


def _set_slice(_attrs: tuple[Attr, ...], _shapes: tuple[Shape, ...], target: Shape) -> Indexing:
    return Indexing(rank_of(target), 0, (), (tuple(range(rank_of(target))), None))


_Rule = Callable[[tuple[Attr, ...], tuple[Shape, ...], Shape], "Indexing | None"]
_SPECIAL: dict[str, _Rule] = {
    "sum": _sum,
    "mean": _sum,
    "logsumexp": _sum,
    "sum_squares": _sum,
    "sum_to": _sum_to,
    "broadcast_like": _expand,
    "mean_vjp": _expand,
    **dict.fromkeys(
        (
            *("softmax", "softmax_vjp", "log_softmax", "log_softmax_vjp"),
            *("standardize", "standardize_vjp", "layer_norm", "layer_norm_vjp"),
        ),
        _softmax,
    ),
    "cross_entropy": _cross_entropy,
    "cross_entropy_vjp": _cross_entropy_vjp,
    "argmax": _argmax,
    "dot": _dot,
    "linear": _linear,
    "dot_vjp_l": _dot_vjp_l,
    "dot_vjp_r": _dot_vjp_r,
    "ein": _ein,
    "embed": _embed,
    "embed_vjp": _embed_vjp,
    "one_hot": _one_hot,
    "scatter_index": _shifted,
    "slice_vjp": _shifted,
    "scatter_params": _shifted,
    "set_slice": _set_slice,
}
"""Operations whose operands do not line up with the result by broadcasting. `shapes` are those of the operands whose
values are read."""
