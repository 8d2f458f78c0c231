"""How many entries a shape has, as a polynomial in the dims: `reshape_like` keeps it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from presk_rel.elab.ty import Axis
from presk_rel.smt.linear import Linear

_MAX_TERMS = 2_000

Polynomial = dict[tuple[str, ...], Fraction]
"""Coefficients by monomial: its dims, sorted, as often as their powers."""


def same_volume(a: tuple[Axis, ...], b: tuple[Axis, ...]) -> bool:
    """Whether two lists of axes span as many entries at all dims. False too where the forms have too many terms."""
    left, right = Counter(x.length for x in a), Counter(x.length for x in b)
    p, q = _product([*(left - right).elements()]), _product([*(right - left).elements()])
    return p is not None and p == q


def _product(forms: list[Linear]) -> Polynomial | None:
    total: Polynomial = {(): Fraction(1)}
    for form in forms:
        terms = [*(((s,), c) for s, c in form.terms), *([((), form.const)] if form.const else [])]
        if len(total) * len(terms) > _MAX_TERMS:
            return None
        wider: Polynomial = {}
        for monomial, c in total.items():
            for extra, d in terms:
                key = tuple(sorted((*monomial, *extra)))
                wider[key] = wider.get(key, Fraction(0)) + c * d
        total = {m: c for m, c in wider.items() if c}
    return total


def product(a: Linear, b: Linear) -> Linear | None:
    """The product of two lengths; None where neither is constant."""
    if a.is_constant:
        return b.scale(a.const)
    return a.scale(b.const) if b.is_constant else None
