"""Rows of scores of which some are known exactly, as rationals: what softmax, cross-entropy and the choices are, where
that is rational or follows from rationals; None elsewhere.

A softmax is rational where all scores are equal (uniform), or where there is one score alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

from presk_rel.exec.exact.kernel import RowFunctions
from presk_rel.exec.exact.untyped import fmpq

Rational: TypeAlias = Any


def softmax(row: list[Rational]) -> list[Rational]:
    n = len(row)
    uniform = n == 1 or (row[0] is not None and all(e is not None and e == row[0] for e in row))
    return [fmpq(1, n) if uniform else None] * n


def cross_entropy(row: list[Rational], y: int) -> Rational:
    return fmpq(0) if len(row) == 1 else None


def argmax(row: list[Rational]) -> int | None:
    if any(e is None for e in row):
        return 0 if len(row) == 1 else None
    best = 0
    for i, e in enumerate(row):
        if e > row[best]:
            best = i
    return best


def sample(row: list[Rational], draw: float) -> int | None:
    if softmax(row)[0] is None:
        return None
    return int(Fraction(draw) * len(row))  # the least i with (i + 1)/n > u


def compare(op: str, a: Rational, b: Rational) -> bool | None:
    if a is None or b is None:
        return None
    match op:
        case "lt":
            return bool(a < b)
        case "le":
            return bool(a <= b)
        case "gt":
            return bool(a > b)
        case "ge":
            return bool(a >= b)
        case _:
            return bool(a == b)


RATIONAL_ROWS = RowFunctions(softmax, cross_entropy, argmax, sample, compare)
