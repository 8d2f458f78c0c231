"""Numeric literals → exact rationals, within bounds that keep exact arithmetic finite."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.diagnostics import Diagnostics
from presk_rel.syntax import ast

LONGEST = 1000
"""Digits of a literal's value, before or after the point."""


def exact(diagnostics: Diagnostics, literal: ast.Nat | ast.Decimal) -> Fraction | None:
    """The number as written, exactly; E1029 when it has more than 1000 digits before or after the point."""
    mantissa, _, exponent = literal.text.lower().partition("e")
    digits, _, decimals = mantissa.partition(".")
    long = len(digits) > LONGEST or len(decimals) > LONGEST or len(exponent) > 6
    if long or abs(int(exponent or "0")) > LONGEST:
        diagnostics.error(
            "E1029", f"this number has more than {LONGEST} digits before or after its point", literal.span
        )
        return None
    return Fraction(literal.text)
