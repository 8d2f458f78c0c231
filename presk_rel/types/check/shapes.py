"""Broadcasting of real tensors whose lengths may be unknown, and what is said when they do not line up."""

from __future__ import annotations

from presk_rel.diagnostics import Label, Span
from presk_rel.elab.broadcast import align, broadcast
from presk_rel.elab.ty import Idx, Mask, Real, Shape
from presk_rel.types.check.checker import Checker
from presk_rel.types.problems import Mismatch
from presk_rel.types.tree import TExpr

_BROADCAST = (
    "shapes line up by their last axes, or by name where every axis of the smaller is named; "
    "there is no length-1 broadcasting"
)


def broadcast_shapes(c: Checker, s: Shape, t: Shape, span: Span, what: str) -> Shape | None:
    """The shape of two tensors combined, unknown lengths solved; None if they do not line up."""
    u = c.unifier
    shape = broadcast(s, t, u.same)
    if shape is None:
        return None
    u.where = (span, what)
    for small in (s, t):
        where = align(small, shape, u.same)
        for axis, i in zip(small.axes, where or (), strict=False):
            if u.unify_length(axis.length, shape.axes[i].length) is not None:
                return None
    return u.shape(shape)


def no_broadcast(c: Checker, what: str, at: Span, left: TExpr, right: TExpr) -> TExpr:
    """E2003, with the last pair of axes that does not agree: the reason a reader looks for."""
    failed = _clash(c, _shape(c, left), _shape(c, right))
    reason, example = ("", None) if failed is None else c.reason(failed)
    labels = (Label(left.span, c.show(left)), Label(right.span, c.show(right)))
    message = f"{what} cannot line up {c.show(left)} with {c.show(right)}{reason}"
    return c.error("E2003", message, at, labels=labels, counterexample=example, help=_BROADCAST)


def _shape(c: Checker, node: TExpr) -> Shape:
    ty = c.type_of(node)
    assert isinstance(ty, Real | Idx | Mask)
    return ty.shape


def _clash(c: Checker, s: Shape, t: Shape) -> Mismatch | None:
    for a, b in zip(reversed(s.axes), reversed(t.axes), strict=False):
        if a.name is not None and b.name is not None and a.name != b.name:
            return Mismatch(f"the axis {a.name}", f"the axis {b.name}")
        if not c.unifier.same(a.length, b.length):
            return Mismatch(str(a.length), str(b.length), (a.length, b.length), axis=a.name or b.name)
    return None
