"""Typing rules of the primitives on index tensors, masks and keys (`core.typing_rules`)."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.rule import RuleError, Use, key, real
from presk_rel.core.shapes import compatible_axes, compatible_shapes, merge_names, same
from presk_rel.elab.broadcast import broadcast
from presk_rel.elab.ty import Axis, Hyper, Idx, Mask, Real, Shape, Type


def _indices(u: Use, i: int) -> Idx:
    ty = u.args[i]
    if not isinstance(ty, Idx):
        raise RuleError(f"operand {i + 1} of {u.op} is an index tensor, not {ty}")
    return ty


def rule_comparison(u: Use) -> Type:
    match u.args:
        case Hyper() as a, Hyper() as b if a == b:
            return Hyper("bool")
        case (Real(s), Real(t)) | (Idx(_, s), Idx(_, t)) if (shape := broadcast(s, t, same)) is not None:
            return Mask(shape)
        case a, b:
            raise RuleError(f"{u.op} does not apply to {a} and {b}")
        case _:
            raise RuleError(f"{u.op} takes 2 operands")


# ----------------------------------------------------------------------------------------------- tables and logits


def _rows(u: Use, w: Shape, i: Idx) -> Shape:
    """The shape of the rows of a table ℝ[V, D] at idx[V][S]."""
    if w.prefix is not None or len(w.axes) != 2 or w.axes[0].length != i.bound:
        raise RuleError(f"{u.op}: ℝ[{w}] is no table of {i.bound} rows")
    return i.shape.with_axes((*i.shape.axes, w.axes[1]))


def rule_embed(u: Use) -> Type:
    return Real(_rows(u, real(u, 0), _indices(u, 1)))


def rule_embed_vjp(u: Use) -> Type:
    ct, w = real(u, 0), real(u, 2)
    rows = _rows(u, w, _indices(u, 1))
    if not compatible_shapes(ct, rows):
        raise RuleError(f"embed_vjp: the cotangent is ℝ[{ct}], the rows ℝ[{rows}]")
    return Real(w)


def rule_one_hot(u: Use) -> Type:
    i = _indices(u, 0)
    return Real(i.shape.with_axes((*i.shape.axes, Axis(None, i.bound))))


def _logits(u: Use, i: int) -> tuple[Shape, Axis]:
    """The shape of the positions and the axis of the choices of ℝ[S, V]."""
    shape = real(u, i)
    if not shape.axes:
        raise RuleError(f"{u.op}: ℝ[{shape}] has no last axis")
    return shape.with_axes(shape.axes[:-1]), shape.axes[-1]


def _positions(u: Use, logits: int, indices: int) -> Shape:
    positions, choices = _logits(u, logits)
    i = _indices(u, indices)
    if i.bound != choices.length or not compatible_shapes(positions, i.shape):
        raise RuleError(f"{u.op}: {i} are no choices of {u.args[logits]}")
    return merge_names(positions, i.shape)


def rule_cross_entropy(u: Use) -> Type:
    return Real(_positions(u, 0, 1))


def rule_cross_entropy_vjp(u: Use) -> Type:
    ct, positions = real(u, 0), _positions(u, 1, 2)
    if not compatible_shapes(ct, positions):
        raise RuleError(f"cross_entropy_vjp: the cotangent is ℝ[{ct}], the value ℝ[{positions}]")
    return u.args[1]


def rule_argmax(u: Use) -> Type:
    positions, choices = _logits(u, 0)
    return Idx(choices.length, positions)


def rule_sample(u: Use) -> Type:
    key(u, 0)
    positions, choices = _logits(u, 1)
    return Idx(choices.length, positions)


# --------------------------------------------------------------------------------------------- of the binding's type


def rule_positions(u: Use) -> Type:
    match u.declared:
        case Idx(bound, Shape(None, (axis,))) if axis.length == bound:
            return u.declared
        case ty:
            raise RuleError(f"positions gives idx[T][T], not {ty}")


def rule_causal_mask(u: Use) -> Type:
    match u.declared:
        case Mask(Shape(None, (a, b))) if compatible_axes((Axis(None, a.length),), (b,)):
            return u.declared
        case ty:
            raise RuleError(f"causal_mask gives bool[T, T], not {ty}")


def rule_dropout_mask(u: Use) -> Type:
    key(u, 0)
    rate = u.attrs[0]
    assert isinstance(rate, Fraction)
    if not 0 <= rate < 1:
        raise RuleError("dropout_mask takes a rate of at least 0 and below 1")
    return Real(real(u, 1))
