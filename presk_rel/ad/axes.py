"""Axes by name where the type of a value lacks the name: a binding may declare a type with fewer names than its
operation gives, and its cotangent has that type."""

from __future__ import annotations

from presk_rel.ad.builder import Builder
from presk_rel.core.ir import Attr, Var
from presk_rel.core.shapes import same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Axis, Real


def axes(b: Builder, v: Var) -> tuple[Axis, ...]:
    ty = b.types[v]
    assert isinstance(ty, Real)
    return ty.shape.axes


def has_axis(b: Builder, v: Var, name: Attr) -> bool:
    return any(a.name == name for a in axes(b, v))


def with_names(b: Builder, v: Var, attrs: tuple[Attr, ...], like: Var) -> Var:
    """`v` with the axis that `attrs` name, if they do; `like`, of the same lengths, has it."""
    if not attrs or has_axis(b, v, attrs[0]):
        return v
    return b.prim("reshape_like", b.types[like], v, like)


def place(b: Builder, v: Var, attr: Attr, like: Var) -> Attr:
    """The place of `like` that `attr` means, as `v`, of as many axes, has it."""
    if not isinstance(attr, str) or has_axis(b, v, attr):
        return attr
    return next(i for i, a in enumerate(axes(b, like)) if a.name == attr)


def _alignment(b: Builder, small: Var, large: Var) -> tuple[int, ...] | None:
    x, y = b.types[small], b.types[large]
    assert isinstance(x, Real) and isinstance(y, Real)
    return align(x.shape, y.shape, same)


def as_large(b: Builder, v: Var, like: Var, *smalls: Var) -> Var:
    """`v` such that each of `smalls` lines up with it as with `like`, of the same lengths."""
    if all(_alignment(b, x, v) == _alignment(b, x, like) for x in smalls):
        return v
    return b.prim("reshape_like", b.types[like], v, like)


def as_small(b: Builder, v: Var, like: Var, large: Var) -> Var:
    """`v` such that it lines up with `large` as `like`, of the same lengths, does."""
    if _alignment(b, v, large) == _alignment(b, like, large):
        return v
    return b.prim("reshape_like", b.types[like], v, like)


def larger(b: Builder, x: Var, y: Var) -> Var:
    """The operand of a broadcasting operation whose shape the result has, up to names (`elab.broadcast`)."""
    return x if _rank(b, x) >= _rank(b, y) else y


def _rank(b: Builder, v: Var) -> tuple[bool, int]:
    ty = b.types[v]
    assert isinstance(ty, Real)
    return ty.shape.prefix is not None, len(ty.shape.axes)
