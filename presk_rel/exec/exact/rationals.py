"""The exact shadow: what of a run is rational, exactly; the rest unknown (`None`).

Balls cannot decide a tie: `relu'(0.1 + 0.2 - 0.3)` is a question about an exact zero that no precision answers. When a
run stays undecided the same program is run once on this kernel, which keeps rational values as fractions (through the
operations that keep them rational, and through `0 · unknown = 0`), and remembers the operands of the undecided steps.
The shadow is bounded: beyond `MAX_BITS` a value, and beyond `MAX_OPERATIONS` the whole run, is given up as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias

import numpy as np

from presk_rel.exec.exact.kernel import Choices, Events, Site, boxed, filled
from presk_rel.exec.exact.rational_rows import RATIONAL_ROWS
from presk_rel.exec.exact.untyped import fmpq
from presk_rel.exec.values import Array, HostReals

MAX_BITS = 20_000
MAX_OPERATIONS = 2_000_000

Rational: TypeAlias = Any
"""`flint.fmpq`, or None: unknown."""


class GivenUp(Exception):
    """The shadow needs more operations than it may take, or a choice that it cannot make. What it has found holds."""


def to_rational(q: Fraction) -> Rational:
    return fmpq(q.numerator, q.denominator)


def _bounded(q: Rational) -> Rational:
    return q if max(int(q.p).bit_length(), int(q.q).bit_length()) <= MAX_BITS else None


def _add(a: Rational, b: Rational) -> Rational:
    return None if a is None or b is None else _bounded(a + b)


def _sub(a: Rational, b: Rational) -> Rational:
    return None if a is None or b is None else _bounded(a - b)


def _mul(a: Rational, b: Rational) -> Rational:
    if a is not None and a == 0:
        return a
    if b is not None and b == 0:
        return b
    return None if a is None or b is None else _bounded(a * b)


def _div(a: Rational, b: Rational) -> Rational:
    return None if a is None or b is None or b == 0 else _bounded(a / b)


def _max(a: Rational, b: Rational) -> Rational:
    return None if a is None or b is None else b if a < b else a


def _min(a: Rational, b: Rational) -> Rational:
    return None if a is None or b is None else a if a < b else b


def _sqrt(x: Rational) -> Rational:
    if x < 0:
        return None
    p, q = isqrt(int(x.p)), isqrt(int(x.q))
    return fmpq(p, q) if p * p == int(x.p) and q * q == int(x.q) else None


def _at(point: int, value: Rational) -> Callable[[Rational], Rational]:
    return lambda x: value if x == point else None


UNARY: dict[str, Callable[[Rational], Rational]] = {
    "neg": lambda x: -x,
    "gelu": _at(0, fmpq(0)),
    "relu": lambda x: x if x > 0 else fmpq(0),
    "exp": _at(0, fmpq(1)),
    "tanh": _at(0, fmpq(0)),
    "sqrt": _sqrt,
    "abs": lambda x: x if x >= 0 else -x,
    "log": _at(1, fmpq(0)),
    "sigmoid": _at(0, fmpq(1, 2)),
    "sin": _at(0, fmpq(0)),
    "cos": _at(0, fmpq(1)),
    "gelu'": _at(0, fmpq(1, 2)),
    "normal_pdf": lambda x: None,
    "heaviside": lambda x: fmpq(1 if x > 0 else 0),
    "sign": lambda x: fmpq(1 if x > 0 else -1 if x < 0 else 0),
}
_BINARY = {
    "add": np.frompyfunc(_add, 2, 1),
    "sub": np.frompyfunc(_sub, 2, 1),
    "mul": np.frompyfunc(_mul, 2, 1),
    "div": np.frompyfunc(_div, 2, 1),
    "max": np.frompyfunc(_max, 2, 1),
    "min": np.frompyfunc(_min, 2, 1),
}


class Rationals:
    """See `kernel.Kernel`. `operands[step]` is the operand (the divisor, for `div`) of each step in `wanted`;
    `chosen[step]` are the choices of each step, as far as they are known: those that balls have `proven`, and those
    that rationals decide."""

    name = "rationals"
    rows = RATIONAL_ROWS

    def __init__(self, wanted: frozenset[int], proven: Mapping[int, Choices] | None = None) -> None:
        self.events = Events()
        self.wanted = wanted
        self.proven: Mapping[int, Choices] = proven or {}
        self.chosen: dict[int, Choices] = {}
        self.operands: dict[int, Array] = {}
        self.operations = 0

    def _spend(self, n: int) -> None:
        self.operations += n
        if self.operations > MAX_OPERATIONS:
            raise GivenUp

    def settle(self, chosen: Choices, shape: tuple[int, ...], site: Site, what: Callable[[int], str]) -> list[int]:
        self._spend(len(chosen))
        known = self.proven.get(site.step, [None] * len(chosen))
        self.chosen[site.step] = both = [c if k is None else k for c, k in zip(chosen, known, strict=True)]
        made = [c for c in both if c is not None]
        if len(made) < len(both):
            raise GivenUp
        return made

    def inject(self, data: HostReals) -> Array:
        self._spend(data.size)
        return filled([to_rational(Fraction(v)) for v in data.ravel().tolist()], data.shape)

    def rational(self, q: Fraction) -> Array:
        return boxed(to_rational(q))

    def pi(self) -> Array:
        return boxed(None)

    def unary(self, op: str, x: Array, site: Site) -> Array:
        self._spend(x.size)
        if site.step in self.wanted:
            self.operands[site.step] = x
        f = UNARY[op]
        return filled([None if e is None else f(e) for e in x.ravel().tolist()], x.shape)

    def power(self, x: Array, n: int, site: Site) -> Array:
        self._spend(x.size)
        return filled([_power(e, n) for e in x.ravel().tolist()], x.shape)

    def binary(self, op: str, x: Array, y: Array, site: Site) -> Array:
        self._spend(max(x.size, y.size))
        if op == "div" and site.step in self.wanted:
            self.operands[site.step] = y
        return boxed(_BINARY[op](x, y))

    def total(self, x: Array, over: tuple[int, ...]) -> Array:
        self._spend(x.size)
        kept = [axis for axis in range(x.ndim) if axis not in over]
        shape = tuple(x.shape[axis] for axis in kept)
        width = int(np.prod([x.shape[axis] for axis in over], dtype=object))
        rows = x.transpose((*kept, *over)).reshape(int(np.prod(shape, dtype=object)), width).tolist()
        return filled([_dot(row, [fmpq(1)] * width) for row in rows], shape)

    def matmul(self, x: Array, y: Array) -> Array:
        self._spend(x.size * y.shape[1])
        columns = y.T.tolist()
        return filled([_dot(row, column) for row in x.tolist() for column in columns], (x.shape[0], y.shape[1]))


def _power(x: Rational, n: int) -> Rational:
    if n == 0:
        return fmpq(1)
    if x is None or x in (0, 1):
        return x
    bits = max(int(x.p).bit_length(), int(x.q).bit_length())
    return x**n if bits * n <= MAX_BITS else None


def _dot(row: list[Rational], column: list[Rational]) -> Rational:
    total = fmpq(0)
    for a, b in zip(row, column, strict=True):
        total = _add(total, _mul(a, b))
    return total
