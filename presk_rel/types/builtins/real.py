"""Builtins on real tensors: entry by entry, reductions, contraction, injection, softmax, extrema."""

from __future__ import annotations

from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import SCALAR_REAL, Hyper, Idx, Mask, Real, Shape
from presk_rel.types.builtins.operands import known_mask, known_real, named_axis, real_operand
from presk_rel.types.builtins.row import Use
from presk_rel.types.check.contraction import contract
from presk_rel.types.check.shapes import broadcast_shapes, no_broadcast
from presk_rel.types.infer import Meta, ity
from presk_rel.types.numbers import DEFAULT
from presk_rel.types.tree import TExpr, TPrim


def elementwise(use: Use) -> TExpr | None:
    """ℝ[S] → ℝ[S]."""
    ty = real_operand(use, use.values[0])
    return TPrim(use.name, (), use.values, ty, use.span) if isinstance(ty, Real) else ty


def reduction(use: Use) -> TExpr | None:
    """ℝ[S] → ℝ[], or with `axis a` ℝ[S] without that axis."""
    ty = real_operand(use, use.values[0])
    if not isinstance(ty, Real):
        return ty
    if not use.axes:
        return TPrim(use.name, (), use.values, SCALAR_REAL, use.span)
    found = named_axis(use, ty.shape, use.axes[0], use.values[0])
    if not isinstance(found, int):
        return found
    axes = ty.shape.axes
    left = Shape(ty.shape.prefix, axes[:found] + axes[found + 1 :])
    return TPrim(use.name, (use.axes[0].text,), use.values, Real(left), use.span)


def softmax(use: Use) -> TExpr | None:
    """ℝ[S] → ℝ[S] along an axis; `where = m` with a mask that broadcasts into S without widening it."""
    masked = "where" in use.named
    ty = (known_real if masked else real_operand)(use, use.values[0])
    if not isinstance(ty, Real):
        return ty
    found = named_axis(use, ty.shape, use.axes[0], use.values[0])
    if not isinstance(found, int):
        return found
    attrs = (use.axes[0].text,)
    if not masked:
        return TPrim("softmax", attrs, use.values, ty, use.span)
    node = use.named["where"]
    mask = known_mask(use, node)
    if not isinstance(mask, Mask):
        return mask
    if align(mask.shape, ty.shape, use.c.unifier.same) is None:
        message = f"the mask {use.c.show(node)} does not broadcast into {use.c.show(use.values[0])}"
        return use.c.error("E2003", message, node.span)
    return TPrim("softmax", attrs, (*use.values, node), ty, use.span)


def injection(use: Use) -> TExpr | None:
    """A hyperparameter, or an index tensor entry by entry, as reals."""
    node = use.values[0]
    ty = use.c.type_of(node)
    match ty:
        case Meta(number=None):
            return None
        case Meta(number=kind) if kind is not None:
            use.c.unifier.unify(ity(node), DEFAULT[kind])
            return TPrim("real", (), use.values, SCALAR_REAL, use.span)
        case Hyper(kind) if kind != "bool":
            return TPrim("real", (), use.values, SCALAR_REAL, use.span)
        case Idx(_, shape):
            return TPrim("real", (), use.values, Real(shape), use.span)
        case Real():
            message = f"`real` injects numbers and indices, and {use.c.show(node)} is real already"
            return use.c.error("E2005", message, node.span)
        case _:
            return use.c.error("E2005", f"`real` injects numbers and indices, not {use.c.show(node)}", node.span)


def matmul(use: Use) -> TExpr | None:
    return contract(use.c, use.values[0], use.values[1], use.at, use.span)


def extremum(use: Use) -> TExpr | None:
    """`max`, `min`: of two reals, broadcast as + broadcasts."""
    return _extremum(use, use.name, use.values[0], use.values[1])


def clamp(use: Use) -> TExpr | None:
    """clamp(x, lo, hi) is min(max(x, lo), hi)."""
    if known_real(use, use.values[2]) is None:
        return None
    inner = _extremum(use, "max", use.values[0], use.values[1])
    return None if inner is None else _extremum(use, "min", inner, use.values[2])


def _extremum(use: Use, op: str, left: TExpr, right: TExpr) -> TExpr | None:
    a, b = known_real(use, left), known_real(use, right)
    if not isinstance(a, Real):
        return a
    if not isinstance(b, Real):
        return b
    shape = broadcast_shapes(use.c, a.shape, b.shape, use.at, f"`{use.name}`")
    if shape is None:
        return no_broadcast(use.c, f"`{use.name}`", use.at, left, right)
    return TPrim(op, (), (left, right), Real(shape), use.span)
