"""The second kernel: mpmath at `--bits` + 40 (`--kernel mpmath`). An implementation independent of FLINT; its results
are *measured* (they agree with the balls in the tests), not proven: there is no error bound, and a comparison takes the
computed value at its word."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from presk_rel.exec.exact.ball_text import trimmed
from presk_rel.exec.exact.kernel import (
    Choices,
    Events,
    RowFunctions,
    Site,
    boxed,
    distinct,
    filled,
    repeat,
    undefined,
)
from presk_rel.exec.exact.untyped import mpmath_context
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import Array, HostReals

GUARD_BITS = 40
MAX_MAGNITUDE = 4096
"""mpmath's functions of an argument of magnitude 2^n work at n more bits; beyond this they are refused, not left to
run."""

MAX_PRINTED = 2_000_000

Number: TypeAlias = Any
"""`mpmath.mpf`."""


def _table(mp: Any) -> dict[str, Callable[[Number], Number]]:
    one, zero = mp.mpf(1), mp.mpf(0)
    return {
        "neg": lambda x: -x,
        "gelu": lambda x: x * mp.ncdf(x),
        "relu": lambda x: x if x > 0 else zero,
        "exp": mp.exp,
        "tanh": mp.tanh,
        "sqrt": mp.sqrt,
        "abs": abs,
        "log": mp.log,
        "sigmoid": lambda x: one / (one + mp.exp(-x)),
        "sin": mp.sin,
        "cos": mp.cos,
        "gelu'": lambda x: mp.ncdf(x) + x * mp.npdf(x),
        "normal_pdf": mp.npdf,
        "heaviside": lambda x: one if x > 0 else zero,
        "sign": lambda x: one if x > 0 else (-one if x < 0 else zero),
    }


_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
}  # fmt: skip


def _rows(mp: Any) -> RowFunctions:
    def exp(x: Number) -> Number:
        if not x or mp.mag(x) <= MAX_MAGNITUDE:
            return mp.exp(x)
        if x > 0:
            fail("E7005", f"a score is beyond another by more than 2^{MAX_MAGNITUDE}", None)
        return mp.mpf(0)

    def powers(row: list[Number]) -> list[Number]:
        top = max(row)
        return [exp(e - top) for e in row]

    def softmax(row: list[Number]) -> list[Number]:
        exps = powers(row)
        whole = mp.fsum(exps)
        return [e / whole for e in exps]

    def cross_entropy(row: list[Number], y: int) -> Number:
        others = [exp(e - row[y]) for i, e in enumerate(row) if i != y]
        return mp.log1p(mp.fsum(others)) if others else mp.mpf(0)

    def argmax(row: list[Number]) -> int:
        return row.index(max(row))

    def sample(row: list[Number], draw: float) -> int:
        exps = powers(row)
        target, reached = mp.fsum(exps) * mp.mpf(draw), mp.mpf(0)
        for i, e in enumerate(exps[:-1]):
            reached += e
            if reached > target:
                return i
        return len(row) - 1

    return RowFunctions(softmax, cross_entropy, argmax, sample, lambda op, a, b: _COMPARISONS[op](a, b))


OUTSIDE: dict[str, tuple[Callable[[Number], bool], str]] = {
    "sqrt": (lambda x: x < 0, "the square root of a negative number"),
    "log": (lambda x: x <= 0, "the logarithm of a number that is not positive"),
}
_UNBOUNDED = frozenset({"neg", "relu", "abs", "sqrt", "log", "heaviside", "sign"})
"""The functions that are safe at any magnitude."""


class Measured:
    """See `kernel.Kernel`."""

    name = "mpmath"

    def __init__(self, precision: int) -> None:
        self.events = Events()
        self.mp: Any = mpmath_context.clone()
        self.mp.prec = precision
        self.unary_table = _table(self.mp)
        self.rows = _rows(self.mp)
        self.extremes: dict[str, Any] = {"max": np.frompyfunc(max, 2, 1), "min": np.frompyfunc(min, 2, 1)}

    def settle(self, chosen: Choices, shape: tuple[int, ...], site: Site, what: Callable[[int], str]) -> list[int]:
        return [c for c in chosen if c is not None]  # this kernel decides everything, rightly or not

    def pi(self) -> Array:
        return boxed(+self.mp.pi)

    def fraction(self, x: Number) -> Fraction:
        """The exact value of a number. E7005 when its exponent is beyond what can be printed."""
        man, exp = x.man_exp  # without the sign
        if abs(exp) > MAX_PRINTED:
            fail("E7005", f"a result is beyond 2^{MAX_PRINTED} in size: {trimmed(self.mp.nstr(x, 10))}", None)
        return Fraction(int(man) if x >= 0 else -int(man)) * Fraction(2) ** int(exp)

    def _number(self, q: Fraction) -> Number:
        return self.mp.mpf(q.numerator) / q.denominator if q.denominator != 1 else self.mp.mpf(q.numerator)

    def inject(self, data: HostReals) -> Array:
        shape, data = data.shape, distinct(data)
        return repeat(self._injected(data), shape)

    def _injected(self, data: HostReals) -> Array:
        if data.dtype == object:
            return filled([self._number(Fraction(q)) for q in data.ravel().tolist()], data.shape)
        return filled([self.mp.mpf(v) for v in data.ravel().tolist()], data.shape)

    def rational(self, q: Fraction) -> Array:
        return boxed(self._number(q))

    def unary(self, op: str, x: Array, site: Site) -> Array:
        cut = distinct(x)
        operands = cut.ravel().tolist()
        self._check(op, operands, site)
        return repeat(filled(list(map(self.unary_table[op], operands)), cut.shape), x.shape)

    def _check(self, op: str, operands: list[Number], site: Site) -> None:
        if op in OUTSIDE:
            outside, what = OUTSIDE[op]
            bad = next((x for x in operands if outside(x)), None)
            if bad is not None:
                undefined(site, f"{what}: {trimmed(self.mp.nstr(bad, 15))}")
        if op not in _UNBOUNDED and any(x and self.mp.mag(x) > MAX_MAGNITUDE for x in operands):
            fail("E7005", f"an operand of {op} is beyond 2^{MAX_MAGNITUDE} in {site}", site.span)

    def power(self, x: Array, n: int, site: Site) -> Array:
        cut = distinct(x)
        if n > 1 and any(e and abs(self.mp.mag(e)) * n > 2**62 for e in cut.ravel().tolist()):
            fail("E7005", f"a power {n} is beyond what can be represented in {site}", site.span)
        return repeat(filled([e**n for e in cut.ravel().tolist()], cut.shape), x.shape)

    def binary(self, op: str, x: Array, y: Array, site: Site) -> Array:
        shape = np.broadcast_shapes(x.shape, y.shape)
        a, b = distinct(x), distinct(y)
        match op:
            case "add":
                result = a + b
            case "sub":
                result = a - b
            case "mul":
                result = a * b
            case "max" | "min":
                result = self.extremes[op](a, b)
            case _:
                if any(not e for e in b.ravel().tolist()):
                    undefined(site, "division by zero")
                result = a / b
        return repeat(result, shape)

    def total(self, x: Array, over: tuple[int, ...]) -> Array:
        kept = [axis for axis in range(x.ndim) if axis not in over]
        shape = tuple(x.shape[axis] for axis in kept)
        width = int(np.prod([x.shape[axis] for axis in over], dtype=object))
        rows = x.transpose((*kept, *over)).reshape(int(np.prod(shape, dtype=object)), width).tolist()
        return filled([self.mp.fsum(row) for row in rows], shape)

    def matmul(self, x: Array, y: Array) -> Array:
        columns = [list(c) for c in y.T.tolist()]
        entries = [self.mp.fdot(row, column) for row in x.tolist() for column in columns]
        return filled(entries, (x.shape[0], y.shape[1]))
