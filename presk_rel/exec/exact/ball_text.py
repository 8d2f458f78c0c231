"""Balls in messages, as people write numbers."""

from __future__ import annotations

from typing import Any

DIGITS = 15


def shown(ball: Any) -> str:
    """A ball that is known to 15 digits as that number, `-1e-300`; else what it lies between. Other numbers as they
    are."""
    if not hasattr(ball, "rel_accuracy_bits"):
        return trimmed(str(ball))
    if not ball.is_finite():
        return "unknown"
    if ball.is_exact() or ball.rel_accuracy_bits() >= 3.4 * DIGITS - 4:
        return trimmed(ball.mid().str(DIGITS, radius=False))
    low, high = (trimmed(end.str(3, radius=False)) for end in (ball.lower(), ball.upper()))
    return f"between {low} and {high}"


def trimmed(number: str) -> str:
    """A decimal without the zeros at its end: `-1.00e-300` is `-1e-300`."""
    mantissa, e, exponent = number.partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}{e}{exponent}"
