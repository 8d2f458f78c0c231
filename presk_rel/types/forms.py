"""What unification asks of linear forms with unknowns `?n`."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from presk_rel.smt.linear import Linear
from presk_rel.smt.solver import Condition, Divides


def bare_unknown(form: Linear) -> str | None:
    """The unknown that `form` is, if it is one and nothing more."""
    if form.const != 0 or len(form.terms) != 1 or form.terms[0][1] != 1:
        return None
    name = form.terms[0][0]
    return name if name.startswith("?") else None


def may_be_negative(form: Linear) -> bool:
    """May `form` be below 0 for some naturals, by the look of it?"""
    return form.const < 0 or any(c < 0 for _, c in form.terms)


def is_integral(form: Linear) -> bool:
    return form.const.denominator == 1 and all(c.denominator == 1 for _, c in form.terms)


def divisibility(form: Linear) -> Condition | None:
    """The condition under which a form with fractions is an integer; None when it has no fractions."""
    denominators = [form.const.denominator, *(c.denominator for _, c in form.terms)]
    k = lcm(*denominators)
    return None if k == 1 else Divides(k, form.scale(Fraction(k)))
