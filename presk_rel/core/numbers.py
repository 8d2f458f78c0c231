"""Exact numbers as text: `2`, `-0.02`, `1e-30`, `1/3`; reading the text of a number gives it back."""

from __future__ import annotations

import re
from fractions import Fraction

from presk_rel.smt.digits import digits

MAX_DIGITS = 20_000
"""Digits and decimal exponents beyond this are refused in text: a few characters must not ask for gigabytes."""

_CHUNK = 4_000
_NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")


def number_text(value: Fraction) -> str:
    """Decimal where the decimal ends, else `p/q`; short exponents are written out."""
    sign = "-" if value < 0 else ""
    mantissa, exponent = _decimal(abs(value))
    if mantissa is None:
        return f"{sign}{digits(abs(value.numerator))}/{digits(value.denominator)}"
    text = digits(mantissa)
    if 0 <= exponent <= 20:
        return sign + text + "0" * exponent
    if -20 <= exponent < 0:
        text = text.rjust(1 - exponent, "0")
        return f"{sign}{text[:exponent]}.{text[exponent:]}"
    return f"{sign}{text}e{exponent}"


def _decimal(value: Fraction) -> tuple[int | None, int]:
    """Mantissa (no trailing zero) and exponent of a non-negative decimal; None where the decimal does not end."""
    rest, twos = _strip(value.denominator, 2)
    rest, fives = _strip(rest, 5)
    if rest != 1:
        return None, 0
    exponent = max(twos, fives)
    mantissa = value.numerator * 10**exponent // value.denominator
    if mantissa == 0:
        return 0, 0
    if exponent == 0:
        mantissa, exponent = _strip(mantissa, 10)
        return mantissa, exponent
    return mantissa, -exponent


def _strip(n: int, factor: int) -> tuple[int, int]:
    """`n` without its factors, and how many there were."""
    count = 0
    while n and n % factor == 0:
        n //= factor
        count += 1
    return n, count


def natural(text: str) -> int:
    """The natural that digits denote. ValueError beyond MAX_DIGITS."""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    value = 0
    for i in range(0, len(text), _CHUNK):
        part = text[i : i + _CHUNK]
        value = value * 10 ** len(part) + int(part)
    return value


def decimal(text: str) -> Fraction:
    """The rational that a decimal literal (`3e-4`, `0.02`, `7`) denotes. ValueError where it is none, or too long."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is no number")
    whole, part, exponent = match.group(1), match.group(2) or "", match.group(3) or "0"
    if len(exponent) > 6 or abs(int(exponent)) > MAX_DIGITS:
        raise ValueError(f"a number with exponent {exponent[:12]}")
    shift = int(exponent) - len(part)
    mantissa = natural(whole + part)
    return Fraction(mantissa * 10**shift) if shift >= 0 else Fraction(mantissa, 10**-shift)
