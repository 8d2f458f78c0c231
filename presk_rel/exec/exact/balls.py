"""The proven kernel: FLINT's real balls (`arb`), entries of numpy object arrays; products of matrices by `arb_mat`.

Every operation returns balls that contain the exact values for every choice of exact values in the operand balls. The
working precision is FLINT's global `ctx.prec`, set by the caller (`exec.exact.proven`).

No comparison of balls is ever read as a two-valued one: `x > 0` is "certainly positive". A function with a jump gives
the hull of its values when it is undecided, and says so (`Event`); an operation that may be undefined gives a ball of
no information and says so. `exact_at` holds what is known of operands as exact rationals, by step
(`exec.exact.rationals`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from presk_rel.exec.exact.ball_rows import BALL_ROWS, total
from presk_rel.exec.exact.ball_text import shown
from presk_rel.exec.exact.kernel import (
    Choices,
    Event,
    Events,
    Site,
    Undecided,
    at_entry,
    boxed,
    distinct,
    filled,
    is_constant,
    only,
    repeat,
    undefined,
)
from presk_rel.exec.exact.untyped import arb, arb_mat, fmpq
from presk_rel.exec.values import Array, HostReals

Ball: TypeAlias = Any
"""`flint.arb`."""

ZERO, ONE, HALF = arb(0), arb(1), arb(0.5)


def to_ball(q: Fraction) -> Ball:
    return (
        arb(q.numerator) if q.denominator == 1 and abs(q.numerator) < 2**53 else arb(fmpq(q.numerator, q.denominator))
    )


# --------------------------------------------------------------------------- entry by entry: one row per function


def _normal_cdf(x: Ball) -> Ball:
    """Φ(x) = erfc(-x/√2)/2: no cancellation for negative x."""
    return (-x / arb(2).sqrt()).erfc() * HALF


def _normal_pdf(x: Ball) -> Ball:
    return (-(x * x) * HALF).exp() / (arb.pi() * 2).sqrt()


def _gelu(x: Ball) -> Ball:
    return x * _normal_cdf(x)


def _gelu_prime(x: Ball) -> Ball:
    return _normal_cdf(x) + x * _normal_pdf(x)


def _relu(x: Ball) -> Ball:
    if x >= 0:
        return x
    return ZERO if x <= 0 else x.max(ZERO)


def _abs(x: Ball) -> Ball:
    return abs(x)


def _sigmoid(x: Ball) -> Ball:
    return ONE / (ONE + (-x).exp())


def _heaviside(x: Ball) -> Ball:
    """1 where x > 0, else 0; None when undecided."""
    if x > 0:
        return ONE
    return ZERO if x <= 0 else None


def _sign(x: Ball) -> Ball:
    if x > 0:
        return ONE
    if x < 0:
        return -ONE
    return ZERO if x.is_zero() else None


def _sqrt(x: Ball) -> Ball:
    """None where x may be negative."""
    return x.sqrt() if x >= 0 else None


def _log(x: Ball) -> Ball:
    return x.log() if x > 0 else None


UNARY: dict[str, Callable[[Ball], Ball]] = {
    "neg": lambda x: -x,
    "gelu": _gelu,
    "relu": _relu,
    "exp": arb.exp,
    "tanh": arb.tanh,
    "sqrt": _sqrt,
    "abs": _abs,
    "log": _log,
    "sigmoid": _sigmoid,
    "sin": arb.sin,
    "cos": arb.cos,
    "gelu'": _gelu_prime,
    "normal_pdf": _normal_pdf,
    "heaviside": _heaviside,
    "sign": _sign,
}

HULLS: dict[str, Callable[[], Ball]] = {
    "heaviside": lambda: ZERO.union(ONE),
    "sign": lambda: (-ONE).union(ONE),
}
"""The functions with a jump: what an undecided entry becomes."""

DOMAINS: dict[str, tuple[Callable[[Ball], bool], str]] = {
    "sqrt": (lambda x: bool(x < 0), "the square root of a negative number"),
    "log": (lambda x: bool(x <= 0), "the logarithm of a number that is not positive"),
}
"""The functions not defined everywhere: what is certainly outside, and its name."""


_EXTREMES: dict[str, Any] = {"max": np.frompyfunc(arb.max, 2, 1), "min": np.frompyfunc(arb.min, 2, 1)}


class Balls:
    """See `kernel.Kernel`."""

    name = "balls"
    rows = BALL_ROWS

    def __init__(
        self, exact_at: Mapping[int, Array] | None = None, chosen_at: Mapping[int, Choices] | None = None
    ) -> None:
        self.events = Events()
        self.exact_at: Mapping[int, Array] = exact_at or {}
        self.chosen_at: Mapping[int, Choices] = chosen_at or {}
        self.proven: dict[int, Choices] = {}
        """The choices made so far, by step; None where one was open."""

    def settle(self, chosen: Choices, shape: tuple[int, ...], site: Site, what: Callable[[int], str]) -> list[int]:
        self.proven[site.step] = chosen
        known = self.chosen_at.get(site.step)
        if known is not None:
            chosen = [k if c is None else c for c, k in zip(chosen, known, strict=True)]
        made = [c for c in chosen if c is not None]
        if len(made) == len(chosen):
            return made
        i = chosen.index(None)
        at = tuple(int(k) for k in np.unravel_index(i, shape)) if shape else ()
        raise Undecided(Event("undecided", site, f"the choice of {site.operation}", at, what(i)))

    def inject(self, data: HostReals) -> Array:
        cut = distinct(data)
        convert: Callable[[Any], Ball] = to_ball if data.dtype == object else arb
        return repeat(filled([convert(e) for e in cut.ravel().tolist()], cut.shape), data.shape)

    def rational(self, q: Fraction) -> Array:
        return boxed(to_ball(q))

    def pi(self) -> Array:
        return boxed(arb.pi())

    def unary(self, op: str, x: Array, site: Site) -> Array:
        cut = distinct(x)
        entries = list(map(UNARY[op], cut.ravel().tolist()))
        if op in HULLS or op in DOMAINS:
            entries = self._settle(op, entries, cut, site)
        return repeat(filled(entries, cut.shape), x.shape)

    def _settle(self, op: str, entries: list[Ball], x: Array, site: Site) -> list[Ball]:
        """Decide the entries that the balls left open: by what is known exactly, else by a hull and an event."""
        if all(e is not None for e in entries):
            return entries
        known = self._known(site, x)
        for i, (entry, operand) in enumerate(zip(entries, x.ravel().tolist(), strict=True)):
            if entry is not None:
                continue
            q = known[i] if known is not None else None
            entries[i] = self._exactly(op, q, site) if q is not None else self._open(op, i, operand, x, site)
        return entries

    def _known(self, site: Site, x: Array) -> list[Any] | None:
        exact = self.exact_at.get(site.step)
        return None if exact is None else exact[(*(slice(0, n) for n in x.shape), ...)].ravel().tolist()

    def _exactly(self, op: str, q: Any, site: Site) -> Ball:
        result = UNARY[op](arb(q) if q != 0 else ZERO)
        if result is None and op in DOMAINS:
            undefined(site, DOMAINS[op][1])
        return result

    def _open(self, op: str, i: int, operand: Ball, x: Array, site: Site) -> Ball:
        at = tuple(int(k) for k in np.unravel_index(i, x.shape))
        if op in HULLS:
            where = f"it is {shown(operand)}"
            self.events.add(Event("undecided", site, f"the sign of the operand of {op}", at, where))
            return HULLS[op]()
        outside, what = DOMAINS[op]
        if outside(operand):
            undefined(site, f"{what}: {shown(operand)}{at_entry(at)}")
        self.events.add(Event("undefined", site, what, at, f"it is {shown(operand)}"))
        return arb.nan()

    def power(self, x: Array, n: int, site: Site) -> Array:
        if n == 0:
            return repeat(ONE, x.shape)
        cut = distinct(x)
        entries = cut.ravel().tolist()
        result = [_power(e, n) for e in entries]
        return repeat(filled(result, cut.shape), x.shape)

    def binary(self, op: str, x: Array, y: Array, site: Site) -> Array:
        shape = np.broadcast_shapes(x.shape, y.shape)
        shortcut = _zero_operand(op, x, y, shape)
        if shortcut is not None:
            return shortcut
        a, b = distinct(x), distinct(y)
        match op:
            case "add":
                result = a + b
            case "sub":
                result = a - b
            case "mul":
                result = a * b
            case "max" | "min":
                result = _EXTREMES[op](a, b)
            case _:
                result = a / self._divisor(b, site)
        return repeat(result, shape)

    def _divisor(self, y: Array, site: Site) -> Array:
        """The divisor, with the entries that may be 0 decided where they are known exactly."""
        entries = y.ravel().tolist()
        # `e == 0` would be another question: "certainly 0".
        doubtful = [i for i, e in enumerate(entries) if not bool(e != 0)]
        if not doubtful:
            return y
        known = self._known(site, y)
        for i in doubtful:
            at = tuple(int(k) for k in np.unravel_index(i, y.shape))
            q = known[i] if known is not None else None
            if entries[i].is_zero() or q == 0:
                undefined(site, f"division by zero{at_entry(at)}")
            if q is not None:
                entries[i] = arb(q)
                continue
            self.events.add(Event("undefined", site, "division by zero", at, f"it is {shown(entries[i])}"))
        return filled(entries, y.shape)

    def total(self, x: Array, over: tuple[int, ...]) -> Array:
        repeated = 1
        cut: list[Any] = [slice(None)] * x.ndim
        for axis in over:
            if x.strides[axis] == 0 and x.shape[axis] > 0:
                repeated *= x.shape[axis]
                cut[axis] = slice(0, 1)
        kept = [axis for axis in range(x.ndim) if axis not in over]
        y = x[(*cut, ...)].transpose((*kept, *over))
        shape = tuple(x.shape[axis] for axis in kept)
        width = int(np.prod([y.shape[i] for i in range(len(kept), x.ndim)], dtype=object))
        rows = y.reshape(int(np.prod(shape, dtype=object)), width).tolist()
        sums = filled([total(row) for row in rows], shape)
        return sums if repeated == 1 else boxed(sums * arb(repeated))

    def matmul(self, x: Array, y: Array) -> Array:
        (m, k), n = x.shape, y.shape[1]
        if 0 in (m, k, n) or _is_zero(x) or _is_zero(y):
            return repeat(ZERO, (m, n))
        product = arb_mat(m, k, x.ravel().tolist()) * arb_mat(k, n, y.ravel().tolist())
        return filled(product.entries(), (m, n))


def _is_zero(x: Array) -> bool:
    return is_constant(x) and only(x).is_zero()


def _power(x: Ball, n: int) -> Ball:
    """xⁿ, n > 0. (FLINT's own power of a ball around 0 is no number.)"""
    if not x.contains(0):
        return x**n
    result = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        x = x * x
        n >>= 1
    return result


def _zero_operand(op: str, x: Array, y: Array, shape: tuple[int, ...]) -> Array | None:
    """Zeros are one entry, repeated; adding them gives the other operand itself."""
    if op in ("add", "mul") and _is_zero(x):
        return repeat(y if op == "add" else ZERO, shape)
    if op in ("add", "sub", "mul") and _is_zero(y):
        return repeat(ZERO if op == "mul" else x, shape)
    return None
