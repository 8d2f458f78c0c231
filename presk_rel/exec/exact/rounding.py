"""Correct rounding to decimal digits, proven by Ziv's test: both ends of what an entry is known to lie in round to the
same decimal. Ties go to the even digit; only an exactly known value can be a tie.

Digits of a real: `sign · digits · 10^exponent`, `digits` without trailing zeros, written `0.0625`, `-1.5e-31`, `0`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from presk_rel.exec.exact.untyped import arb

GUARD_DIGITS = 8
MAX_EXACT_EXPONENT = 200_000
"""Exact values with a larger binary exponent are rounded by their ball only."""

Ball: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Decimal:
    """A correctly rounded value; `bound` is 10^`unit`/2, the largest possible distance to the exact one, None when the
    decimal *is* the exact value."""

    text: str
    unit: int | None


@dataclass(frozen=True, slots=True)
class Below:
    """An entry proven to be smaller than the floor in absolute value, and not more."""


ZERO = Decimal("0", None)
BELOW = Below()


def round_ball(x: Ball, digits: int, floor: int) -> Decimal | Below | None:
    """The decimal of `digits` significant digits that every point of the ball rounds to; `BELOW` when the ball holds 0
    and is within ±2^-floor; None when the ball is too wide to say."""
    if not x.is_finite():
        return None
    if x.is_zero():
        return ZERO
    if x.is_exact() and (rounded := _round_exact(x, digits)) is not None:
        return rounded
    triple: tuple[Any, Any, Any] = x.mid_rad_10exp(digits + GUARD_DIGITS)
    mid, rad, exponent = int(triple[0]), int(triple[1]), int(triple[2])
    if abs(mid) <= rad:
        return BELOW if abs(x) < arb((1, -floor)) else None
    common = _common(abs(mid), rad, digits)
    if common is None:
        return None
    unit = common[1] + exponent
    return Decimal(_written(mid < 0, common[0], unit), unit)


def _common(mid: int, rad: int, digits: int) -> tuple[int, int] | None:
    """What both ends of `mid ± rad` round to, if it is one decimal. One division decides almost always: the ends lie on
    one side of the same half."""
    k = decimal_length(mid) - digits
    if k > 0:
        m, rest = divmod(mid, power_of_ten(k))
        half = power_of_ten(k) // 2
        if rad <= rest < half - rad:
            return m, k
        if half + rad < rest < 2 * half - rad and m + 1 < power_of_ten(digits):
            return m + 1, k
    low, high = _nearest(mid - rad, digits), _nearest(mid + rad, digits)
    return low if low == high else None


def _round_exact(x: Ball, digits: int) -> Decimal | None:
    man, exp = (int(v) for v in x.man_exp())
    if abs(exp) > MAX_EXACT_EXPONENT:
        return None
    return round_rational(Fraction(man) * Fraction(2) ** exp, digits)


def round_rational(q: Fraction, digits: int) -> Decimal:
    """`q` correctly rounded to `digits` significant digits."""
    if q == 0:
        return ZERO
    p, d = abs(q.numerator), q.denominator
    shift = digits + 2 + max(0, int((d.bit_length() - p.bit_length()) * 0.30103) + 1)
    scaled, rest = divmod(p * 10**shift, d)
    # A sticky digit: whatever is cut off counts as more than nothing, and never as a half.
    n, unit = _nearest(scaled * 10 + (1 if rest else 0), digits)
    unit -= shift + 1
    exact = Fraction(n) * Fraction(10) ** unit == abs(q)
    return Decimal(_written(q < 0, n, unit), None if exact else unit)


def _nearest(n: int, digits: int) -> tuple[int, int]:
    """`(m, k)` with `m · 10^k` nearest to `n > 0` and `m` of exactly `digits` digits, ties to even."""
    length = decimal_length(n)
    if length <= digits:
        return n * 10 ** (digits - length), length - digits
    k = length - digits
    m, rest = divmod(n, 10**k)
    half = 5 * 10 ** (k - 1)
    if rest > half or (rest == half and m % 2 == 1):
        m += 1
    return (m // 10, k + 1) if m == 10**digits else (m, k)


@lru_cache(maxsize=1024)
def power_of_ten(k: int) -> int:
    return 10**k


def decimal_length(n: int) -> int:
    """The number of decimal digits of `n > 0`."""
    guess = int((n.bit_length() - 1) * 0.30102999566398120) + 1
    return guess + 1 if n >= power_of_ten(guess) else guess


def _written(negative: bool, digits: int, exponent: int) -> str:
    text = str(digits)
    width = len(text)
    lead = exponent + width - 1
    sign = "-" if negative else ""
    if -7 <= lead < 0:
        return f"{sign}0.{_ZEROS[-lead - 1]}{text.rstrip('0')}"
    kept = text.rstrip("0")
    if 0 <= lead < width:
        whole, tail = text[: lead + 1], kept[lead + 1 :]
        return f"{sign}{whole}.{tail}" if tail else sign + whole
    tail = f".{kept[1:]}" if len(kept) > 1 else ""
    return f"{sign}{kept[0]}{tail}e{lead}"


_ZEROS = tuple("0" * n for n in range(8))


def bound_text(unit: int | None, floor: int | None) -> str:
    """A decimal at least as large as half a unit 10^unit and as 2^-floor: `5e-78`, `0` for an exact tensor."""
    candidates = [] if unit is None else [(5, unit - 1)]
    if floor is not None:
        # 2^-floor = 10^-(floor·log10 2), rounded up to one digit.
        exponent = -int(floor * 0.30102999566398119) - 1
        digit = -(-(10**-exponent) // 2**floor)
        candidates.append((1, exponent + 1) if digit >= 10 else (digit, exponent))
    if not candidates:
        return "0"
    exponent, digit = max((exponent, digit) for digit, exponent in candidates)
    return f"{digit}e{exponent}"
