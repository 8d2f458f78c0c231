"""Rows of the primitives that move entries: views, selections, and their adjoints. Reals, indices and masks alike."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from presk_rel.diagnostics import PreskBug
from presk_rel.exec.exact.kernel import is_constant, only, repeat
from presk_rel.exec.exact.step import Step
from presk_rel.exec.shapes import int_of
from presk_rel.exec.values import Array, Value, shape_of
from presk_rel.smt.linear import Linear


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """Row-major; an array that repeats one entry still does."""
    return repeat(only(x), shape) if is_constant(x) else x.reshape(shape)


def row_reshape(step: Step) -> Value:
    """`merge`, `split`, `reshape_like`: what they make is in the type."""
    return step.result(reshaped(step.data(0), shape_of(step.target())))


def row_split_heads(step: Step) -> Value:
    """[…, seq, model] → […, heads, seq, hd]."""
    x = step.data(0)
    *_, heads, seq, width = shape_of(step.target())
    return step.result(np.moveaxis(reshaped(x, (*x.shape[:-2], seq, heads, width)), -2, -3))


def row_merge_heads(step: Step) -> Value:
    return step.result(reshaped(np.moveaxis(step.data(0), -3, -2), shape_of(step.target())))


def number(step: Step, i: int) -> int:
    """The integer that attribute `i` denotes."""
    form = step.attrs[i]
    if not isinstance(form, Linear):
        raise PreskBug("exec", f"a dimension was expected, not {form!r}")
    return int_of(form, step.env, step.where, step.site.span)


def selector(step: Step, operand: int) -> tuple[Any, ...]:
    """What `index`, `slice` and their adjoints select of operand `operand`."""
    axis = step.axis(operand, step.attrs[0])
    ahead = (slice(None),) * axis
    if step.op in ("index", "scatter_index"):
        return (*ahead, number(step, 1), ...)
    return (*ahead, slice(number(step, 1), number(step, 2)), ...)


def row_select(step: Step) -> Value:
    """A small part is copied, so that the rest can go when its last reader has."""
    part = step.data(0)[selector(step, 0)]
    return step.result(part if is_constant(part) or part.size * 2 > step.data(0).size else np.array(part))


def row_scatter(step: Step) -> Value:
    """Zeros of operand 1's shape, with ct where that one selects."""
    out = np.array(repeat(step.kernel.rational(Fraction(0)), shape_of(step.target())))
    out[selector(step, 1)] = step.data(0)
    return step.result(out)


def row_concat(step: Step) -> Value:
    x, y = step.data(0), step.data(1)
    shape = shape_of(step.target())
    if prod(shape) and is_constant(x) and is_constant(y) and only(x) is only(y):
        return step.result(repeat(only(x), shape))
    return step.result(np.concatenate((x, y), axis=step.axis(0, step.attrs[0])))
