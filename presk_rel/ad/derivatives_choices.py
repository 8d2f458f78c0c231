"""Derivative rows of what chooses among the entries of an axis: softmax, tables, losses and draws.

The last axis of logits need not have a name, so sums and broadcasts along it are products with ones.
"""

from __future__ import annotations

from presk_rel.ad.axes import with_names
from presk_rel.ad.builder import Builder
from presk_rel.ad.forward import each, symmetric
from presk_rel.ad.row import Flat, Opaque, Point, Row, Site
from presk_rel.core.ir import Var
from presk_rel.elab.ty import Real, Shape, Type

_INDEX = Opaque("an index is no real number")
_KEY = Opaque("a draw is a function of its key, which is no real number")
_CHOICE = Flat("its result is an index")


def _softmax(b: Builder, s: Site, i: int) -> Var:
    """y = softmax(x): y·(ct - Σ ct·y), the sum along the axis. Where a mask refuses, y is 0."""
    x, ty = s.args[0], b.types[s.args[0]]
    assert isinstance(ty, Real)
    ct, y = (with_names(b, v, s.attrs, x) for v in (s.ct, s.result))
    kept = Real(ty.shape.with_axes(tuple(a for a in ty.shape.axes if a.name != s.attrs[0])))
    weight = b.prim("sum", kept, b.prim("mul", ty, ct, y), attrs=s.attrs)
    mean = b.prim("broadcast_like", ty, weight, y, attrs=s.attrs)
    return b.prim("mul", ty, y, b.prim("sub", ty, ct, mean))


# ------------------------------------------------------------------------------------------------------ along the end


def _ones_of_last(b: Builder, v: Var) -> Var:
    ty = b.types[v]
    assert isinstance(ty, Real)
    return b.prim("ones", Real(Shape(None, ty.shape.axes[-1:])))


def _summed(b: Builder, v: Var, ty: Type) -> Var:
    """The sums of `v` along its last axis."""
    return b.prim("dot", ty, v, _ones_of_last(b, v))


def _spread(b: Builder, v: Var, like: Var) -> Var:
    """`v` repeated along the last axis of `like`."""
    return b.prim("dot_vjp_l", b.types[like], v, _ones_of_last(b, like))


# ---------------------------------------------------------------------------------------------------- tables and losses


def _embed(b: Builder, s: Site, i: int) -> Var:
    return b.prim("embed_vjp", b.types[s.args[0]], s.ct, s.args[1], s.args[0])


def _embed_vjp(b: Builder, s: Site, i: int) -> Var:
    return b.prim("embed", b.types[s.args[0]], s.ct, s.args[1])


def _cross_entropy(b: Builder, s: Site, i: int) -> Var:
    logits, target = s.args
    return b.prim("cross_entropy_vjp", b.types[logits], s.ct, logits, target)


def _slope(b: Builder, losses: Var, logits: Var, target: Var) -> Var:
    """softmax(l) - one_hot(target), the derivative of every entry of `losses`."""
    ones = b.prim("ones_like", b.types[losses], losses)
    return b.prim("cross_entropy_vjp", b.types[logits], ones, logits, target)


def _cross_entropy_tangent(b: Builder, p: Point) -> Var:
    v, (logits, target) = p.tangents[0], p.args
    assert v is not None
    change = b.prim("mul", b.types[logits], _slope(b, p.result, logits, target), v)
    return _summed(b, change, b.types[p.result])


def _scale(b: Builder, s: Site, i: int) -> Var:
    """`cross_entropy_vjp c, l, t` with respect to c: Σ ct·(softmax(l) - one_hot(t)) along the last axis."""
    losses, logits, target = s.args
    change = b.prim("mul", b.types[logits], s.ct, _slope(b, losses, logits, target))
    return _summed(b, change, b.types[losses])


def _curvature(b: Builder, s: Site, i: int) -> Var:
    """`cross_entropy_vjp c, l, t` with respect to l: with y = softmax(l), c·y·(ct - Σ ct·y)."""
    losses, logits, target = s.args
    ty = b.types[logits]
    y = b.prim("add", ty, _slope(b, losses, logits, target), b.prim("one_hot", ty, target))
    weight = _summed(b, b.prim("mul", ty, s.ct, y), b.types[losses])
    change = b.prim("mul", ty, y, b.prim("sub", ty, s.ct, _spread(b, weight, logits)))
    return b.prim("mul", ty, _spread(b, losses, logits), change)


def _cross_entropy_vjp_tangent(b: Builder, p: Point) -> Var:
    ct, logits, _ = p.tangents
    ty = b.types[p.result]
    scaled = None if ct is None else b.prim(p.op, ty, ct, *p.args[1:])
    if logits is None:
        assert scaled is not None
        return scaled
    curved = _curvature(b, Site(p.attrs, p.args, p.result, logits), 1)
    return curved if scaled is None else b.prim("add", ty, scaled, curved)


ROWS = (
    Row("softmax", (_softmax, Flat("a mask is no real number")), symmetric(_softmax)),
    Row("embed", (_embed, _INDEX), each),
    Row("embed_vjp", (_embed_vjp, _INDEX, Flat("read for its shape only")), each),
    Row("one_hot", (_INDEX,)),
    Row("cross_entropy", (_cross_entropy, _INDEX), _cross_entropy_tangent),
    Row("cross_entropy_vjp", (_scale, _curvature, _INDEX), _cross_entropy_vjp_tangent),
    Row("argmax", (_CHOICE,)),
    Row("sample", (_KEY, _CHOICE)),
    Row("dropout_mask", (_KEY, Flat("read for its shape only"))),
    Row("positions"),
    Row("causal_mask"),
)
