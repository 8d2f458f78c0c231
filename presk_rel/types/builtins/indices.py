"""Builtins on indices, masks and keys: tables, classes, positions, draws."""

from __future__ import annotations

from presk_rel.diagnostics import Label
from presk_rel.elab.ty import Axis, Idx, Mask, Real, Shape, TupleOf
from presk_rel.types.builtins.operands import distinct, key_operand, known_indices, known_real, merged
from presk_rel.types.builtins.row import Use
from presk_rel.types.check.checker import is_bad
from presk_rel.types.problems import Mismatch
from presk_rel.types.tree import KEY, TExpr, TLiteral, TPrim


def embed(use: Use) -> TExpr | None:
    """ℝ[V, D], idx[V][S] → ℝ[S, D]: the new axis has the name of the table's second."""
    table, indices = known_real(use, use.values[0]), known_indices(use, use.values[1])
    if not isinstance(table, Real):
        return table
    if not isinstance(indices, Idx):
        return indices
    if table.shape.prefix is not None or len(table.shape.axes) != 2:
        return use.c.error(
            "E2005", f"`embed` takes a table ℝ[V, D], not {use.c.show(use.values[0])}", use.values[0].span
        )
    rows, row = table.shape.axes
    failed = use.c.unifier.unify_length(rows.length, indices.bound)
    if failed is not None:
        return _differ(use, f"the table has {rows.length} rows, the indices are below {indices.bound}", failed)
    axes = (*indices.shape.axes, row)
    twice = distinct(use.c, axes, use.at, "`embed`")
    return twice or TPrim("embed", (), use.values, Real(Shape(indices.shape.prefix, axes)), use.span)


def one_hot(use: Use) -> TExpr | None:
    """idx[V][S] → ℝ[S, V], the new axis unnamed."""
    indices = known_indices(use, use.values[0])
    if not isinstance(indices, Idx):
        return indices
    shape = Shape(indices.shape.prefix, (*indices.shape.axes, Axis(None, indices.bound)))
    return TPrim("one_hot", (), use.values, Real(shape), use.span)


def cross_entropy(use: Use) -> TExpr | None:
    """ℝ[S, V], idx[V][S] → ℝ[S]."""
    logits, indices = known_real(use, use.values[0]), known_indices(use, use.values[1])
    if not isinstance(indices, Idx):
        return indices
    split = _choices(use, logits)
    if not isinstance(split, tuple):
        return split
    positions, choices = split
    use.c.unifier.where = (use.span, "`cross_entropy`")
    failed = use.c.unifier.unify_length(choices.length, indices.bound)
    failed = failed or use.c.unifier.unify_shape(positions, indices.shape)
    if failed is not None:
        shown = f"the logits {use.c.show(use.values[0])} and the classes {use.c.show(use.values[1])} do not agree"
        return _differ(use, shown, failed)
    shape = merged(use.c.unifier.shape(positions), use.c.unifier.shape(indices.shape))
    return TPrim("cross_entropy", (), use.values, Real(shape), use.span)


def argmax(use: Use) -> TExpr | None:
    """ℝ[S, V] → idx[V][S]."""
    split = _choices(use, known_real(use, use.values[0]))
    if not isinstance(split, tuple):
        return split
    positions, choices = split
    return TPrim("argmax", (), use.values, Idx(choices.length, positions), use.span)


def sample(use: Use) -> TExpr | None:
    """key, ℝ[S, V] → idx[V][S]."""
    split = _choices(use, known_real(use, use.values[1]))
    if not isinstance(split, tuple):
        return split
    positions, choices = split
    key = key_operand(use, use.values[0])
    return key if is_bad(key) else TPrim("sample", (), use.values, Idx(choices.length, positions), use.span)


def _choices(use: Use, logits: Real | TExpr | None) -> tuple[Shape, Axis] | TExpr | None:
    """The positions and the axis of choices of ℝ[S, V]."""
    if not isinstance(logits, Real):
        return logits
    if not logits.shape.axes:
        return use.c.error(
            "E2005", f"`{use.name}` needs a last axis to choose from, and ℝ[{logits.shape}] has none", use.at
        )
    return Shape(logits.shape.prefix, logits.shape.axes[:-1]), logits.shape.axes[-1]


def _differ(use: Use, message: str, failed: Mismatch) -> TExpr:
    reason, example = use.c.reason(failed)
    labels = tuple(Label(v.span, use.c.show(v)) for v in use.values)
    return use.c.error("E2003", f"`{use.name}`: {message}{reason}", use.at, labels=labels, counterexample=example)


# ------------------------------------------------------------------------------------------------- positions, masks


def positions(use: Use) -> TExpr | None:
    """positions(seq: T) : idx[T][seq: T]."""
    ((name, length),) = use.dims
    return TPrim("positions", (), (), Idx(length, Shape(None, (Axis(name.text, length),))), use.span)


def causal_mask(use: Use) -> TExpr | None:
    """causal_mask(seq: T) : bool[seq: T, seq2: T]."""
    ((name, length),) = use.dims
    axes = (Axis(name.text, length), Axis(f"{name.text}2", length))
    return TPrim("causal_mask", (), (), Mask(Shape(None, axes)), use.span)


# ------------------------------------------------------------------------------------------------------------- draws


def split_key(use: Use) -> TExpr | None:
    """key → (key, key)."""
    key = key_operand(use, use.values[0])
    return key if is_bad(key) else TPrim("split_key", (2,), (key,), TupleOf((KEY, KEY)), use.span)


def dropout(use: Use) -> TExpr | None:
    """dropout(rate, key, x); lowering reads it as x · dropout_mask(rate, key, x), or as x."""
    rate, key, x = use.values
    ty = known_real(use, x)
    if not isinstance(ty, Real):
        return ty
    key = key_operand(use, key)
    if is_bad(key):
        return key
    if not isinstance(rate, TLiteral) or not 0 <= rate.value < 1:
        message = "the rate of `dropout` is a number of at least 0 and below 1, written out"
        return use.c.error("E2034", message, rate.span, help="write dropout(0.1, key, x)")
    return TPrim("dropout", (rate.value,), (key, x), ty, use.span)
