"""Rows of the primitives that read scores, indices and masks: softmax, cross-entropy, embedding, choices, draws."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper
from presk_rel.exec.exact.ball_text import shown
from presk_rel.exec.exact.kernel import COMPARISONS, Choices, at_entry, filled, only, repeat, undefined
from presk_rel.exec.exact.rows_arithmetic import aligned, spread
from presk_rel.exec.exact.step import Step, rational_of
from presk_rel.exec.values import Array, HyperValue, IndexTensor, Tensor, Value, shape_of

_HYPER: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
}  # fmt: skip
_REFLEXIVE = {"lt": False, "le": True, "gt": False, "ge": True, "eq": True}


def lines(x: Array) -> list[list[Any]]:
    """The rows along the last axis."""
    width = x.shape[-1]
    return x.reshape(int(np.prod(x.shape[:-1], dtype=object)), width).tolist()


# ------------------------------------------------------------------------------------------- softmax and cross-entropy


def row_softmax(step: Step) -> Value:
    x, axis = step.data(0), step.axis(0, step.attrs[0])
    if x.size == 0:
        return step.result(x)
    scores = np.moveaxis(x, axis, -1)
    if len(step.args) == 1:
        entries = [e for row in lines(scores) for e in step.kernel.rows.softmax(row)]
    else:
        mask = spread(step, step.data(1), step.shape(1), step.shape(0))
        entries = _masked(step, scores, np.moveaxis(np.broadcast_to(mask, x.shape), axis, -1))
    return step.result(np.moveaxis(filled(entries, scores.shape), -1, axis))


def _masked(step: Step, scores: Array, allowed: Array) -> list[Any]:
    """0 where the mask refuses. E7004 for a row it empties."""
    empty = ~allowed.any(axis=-1)
    if empty.any():
        at = tuple(int(i) for i in np.argwhere(empty)[0])
        undefined(step.site, f"a softmax whose mask refuses every position{at_entry(at)}")
    zero = only(step.kernel.rational(Fraction(0)))
    entries: list[Any] = []
    for row, keep in zip(lines(scores), lines(allowed), strict=True):
        parts = iter(step.kernel.rows.softmax([e for e, k in zip(row, keep, strict=True) if k]))
        entries += [next(parts) if k else zero for k in keep]
    return entries


def row_cross_entropy(step: Step) -> Value:
    scores, targets = step.data(0), step.data(1)
    pairs = zip(lines(scores), targets.ravel().tolist(), strict=True)
    return step.result(filled([step.kernel.rows.cross_entropy(row, y) for row, y in pairs], scores.shape[:-1]))


def row_cross_entropy_vjp(step: Step) -> Value:
    """(softmax(l) - one_hot(y)) · ct. The entry y of the difference is minus the sum of the others: no cancellation."""
    ct, scores, targets = step.data(0), step.data(1), step.data(2)
    zero = only(step.kernel.rational(Fraction(0)))
    entries: list[Any] = []
    for row, y in zip(lines(scores), targets.ravel().tolist(), strict=True):
        parts = step.kernel.rows.softmax(row)
        others = filled([*parts[:y], zero, *parts[y + 1 :]], (len(row),))
        rest = step.kernel.unary("neg", step.kernel.total(others, (0,)), step.site)
        entries += [*parts[:y], only(rest), *parts[y + 1 :]]
    slopes = filled(entries, scores.shape)
    return step.result(step.kernel.binary("mul", slopes, ct[..., None], step.site))


# ------------------------------------------------------------------------------------------------------------- indices


def row_embed(step: Step) -> Value:
    return step.result(step.data(0)[step.data(1), ...])


def row_embed_vjp(step: Step) -> Value:
    """The rows of ct added up at their index; an index without rows has zeros."""
    ct, where = step.data(0), step.data(1).ravel()
    rows = ct.reshape(len(where), *ct.shape[step.data(1).ndim :])
    out = np.array(repeat(step.kernel.rational(Fraction(0)), shape_of(step.target())))
    for i in np.unique(where).tolist():
        out[i, ...] = step.kernel.total(rows[where == i], (0,))
    return step.result(out)


def row_one_hot(step: Step) -> Value:
    where = step.data(0)
    out = np.array(repeat(step.kernel.rational(Fraction(0)), shape_of(step.target())))
    np.put_along_axis(out, where[..., None], only(step.kernel.rational(Fraction(1))), axis=-1)
    return step.result(out)


def row_positions(step: Step) -> Value:
    return step.result(np.arange(step.target()[0][1], dtype=np.int64))


def row_causal_mask(step: Step) -> Value:
    n, m = shape_of(step.target())
    return step.result(np.tri(n, m, dtype=np.bool_))


# ------------------------------------------------------------------------------------------------------------- choices


def row_argmax(step: Step) -> Value:
    rows = lines(step.data(0))
    return _chosen(step, [step.kernel.rows.argmax(row) for row in rows], lambda i: f"the scores are {_shown(rows[i])}")


def row_sample(step: Step) -> Value:
    rows = lines(step.data(1))
    draws = step.draws("sample", step.key(), step.data(1).shape[:-1], None).ravel().tolist()
    chosen = [step.kernel.rows.sample(row, u) for row, u in zip(rows, draws, strict=True)]
    return _chosen(step, chosen, lambda i: f"the draw is {shown(draws[i])}, the scores are {_shown(rows[i])}")


def _chosen(step: Step, chosen: Choices, what: Callable[[int], str]) -> Value:
    shape = shape_of(step.target())
    return step.result(np.array(step.kernel.settle(chosen, shape, step.site, what), dtype=np.int64).reshape(shape))


def _shown(row: list[Any]) -> str:
    head = ", ".join(shown(e) for e in row[:8])
    return f"[{head}, …]" if len(row) > 8 else f"[{head}]"


def row_compare(step: Step) -> Value:
    match step.args:
        case (HyperValue(_, a), HyperValue(_, b)) if isinstance(step.type, Hyper):
            return HyperValue(step.type.kind, Fraction(_HYPER[step.op](a, b)))
        case (IndexTensor(), IndexTensor()):
            return step.result(np.asarray(_INTEGERS[step.op](*aligned(step))))
        case (Tensor(), Tensor()):
            return _compared(step)
        case _:
            raise PreskBug("exec", f"{step.op} of {[type(a).__name__ for a in step.args]} in {step.where}")


_INTEGERS: dict[str, Any] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
}  # fmt: skip
assert set(_INTEGERS) == set(_HYPER) == set(COMPARISONS)


def _compared(step: Step) -> Value:
    shape = shape_of(step.target())
    if step.data(0) is step.data(1):
        return step.result(np.broadcast_to(np.bool_(_REFLEXIVE[step.op]), shape))
    a, b = (np.broadcast_to(x, shape).ravel().tolist() for x in aligned(step))
    compare = step.kernel.rows.compare
    chosen: Choices = [compare(step.op, x, y) for x, y in zip(a, b, strict=True)]
    made = step.kernel.settle(chosen, shape, step.site, lambda i: f"it compares {a[i]} with {b[i]}")
    return step.result(np.array(made, dtype=np.bool_).reshape(shape))


# --------------------------------------------------------------------------------------------------------------- draws


def row_dropout_mask(step: Step) -> Value:
    rate = Fraction(rational_of(step.attrs[0]))
    dropped = step.draws(step.op, step.key(), shape_of(step.target()), rate)
    entries = np.array(repeat(step.kernel.rational(1 / (1 - rate)), dropped.shape))
    entries[dropped] = only(step.kernel.rational(Fraction(0)))
    return step.result(entries)
