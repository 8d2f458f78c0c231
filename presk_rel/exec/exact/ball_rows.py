"""Rows of scores on balls: softmax, cross-entropy, and the choices, which are made only where they are proven.

Exponents of balls are unbounded, so a softmax needs no shift; the loss is `log(1 + Σ_{i≠y} e^(x_i - x_y))`, which keeps
its relative precision however small or large it is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from presk_rel.exec.exact.kernel import RowFunctions
from presk_rel.exec.exact.untyped import arb

Ball: TypeAlias = Any
ZERO, ONE = arb(0), arb(1)


def total(row: list[Ball]) -> Ball:
    result = ZERO
    for e in row:
        result = result + e
    return result


def softmax(row: list[Ball]) -> list[Ball]:
    """A row of one score is exactly 1."""
    if len(row) == 1:
        return [ONE]
    powers = [e.exp() for e in row]
    whole = total(powers)
    return [e / whole for e in powers]


def cross_entropy(row: list[Ball], y: int) -> Ball:
    chosen = row[y]
    return total([(e - chosen).exp() for i, e in enumerate(row) if i != y]).log1p()


def argmax(row: list[Ball]) -> int | None:
    """If an index is proven the least of a greatest entry, the scan ends there: nothing before it holds against it, and
    nothing after it is certainly greater."""
    best = 0
    for i, e in enumerate(row):
        if e > row[best]:
            best = i
    top = row[best]
    before = all(bool(top > e) for e in row[:best])
    return best if before and all(bool(top >= e) for e in row[best + 1 :]) else None


def sample(row: list[Ball], draw: float) -> int | None:
    """`c_i > u` as `Σ_{j≤i} e^x_j > u·Σ e^x_j`. The last one exceeds any draw."""
    powers = [e.exp() for e in row]
    target = total(powers) * arb(draw)
    reached = ZERO
    for i, e in enumerate(powers[:-1]):
        reached = reached + e
        if reached > target:
            return i
        if not bool(reached <= target):
            return None
    return len(row) - 1


def compare(op: str, a: Ball, b: Ball) -> bool | None:
    match op:
        case "lt":
            yes, no = a < b, a >= b
        case "le":
            yes, no = a <= b, a > b
        case "gt":
            yes, no = a > b, a <= b
        case "ge":
            yes, no = a >= b, a < b
        case _:
            yes, no = a == b, a != b
    return True if yes else False if no else None


BALL_ROWS = RowFunctions(softmax, cross_entropy, argmax, sample, compare)
