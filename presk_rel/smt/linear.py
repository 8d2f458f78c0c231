"""Dimensions as linear forms over symbols in ℕ, with rational coefficients (spec: "Dimensions").

A `Linear` is canonical: no zero coefficients, symbols sorted; two forms are equal as polynomials iff they are `==`.
A symbol is the name of a `dim` or type parameter (two files' dims of one name are one symbol), or an inference
variable `?n` of the type checker. Arithmetic here never asks Z3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

from presk_rel.diagnostics.record import record
from presk_rel.smt.digits import digits

_ZERO, _ONE = Fraction(0), Fraction(1)
"""One object each, since equal objects that are the same need not be compared."""


@record
class Linear:
    """`const + Σ coefficient·symbol`. Build with `constant`, `symbol` and the operators, never by hand."""

    terms: tuple[tuple[str, Fraction], ...]
    const: Fraction

    def __hash__(self) -> int:
        """Without the coefficients, which take longer to hash than to compare."""
        return hash((*[s for s, _ in self.terms], self.const.numerator))

    def __add__(self, other: Linear) -> Linear:
        return linear((*self.terms, *other.terms), self.const + other.const)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scale(-1)

    def scale(self, factor: Fraction | int) -> Linear:
        if factor == 1:
            return self
        factor = Fraction(factor)
        return linear(((s, c * factor) for s, c in self.terms), self.const * factor)

    def times(self, other: Linear) -> Linear | None:
        """The product; None where neither is a number."""
        if self.is_constant:
            return other.scale(self.const)
        return self.scale(other.const) if other.is_constant else None

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(s for s, _ in self.terms)

    def coefficient(self, symbol: str) -> Fraction:
        return dict(self.terms).get(symbol, Fraction(0))

    def substitute(self, values: Mapping[str, Linear]) -> Linear:
        """Replace symbols by forms, all at once; symbols absent from `values` stay."""
        for s, _ in self.terms:
            if s in values:
                break
        else:
            return self
        if self.const == 0 and len(self.terms) == 1:
            ((s, c),) = self.terms
            return values[s].scale(c)
        result = constant(self.const)
        for s, c in self.terms:
            result += values[s].scale(c) if s in values else linear(((s, c),), Fraction(0))
        return result

    def evaluate(self, values: Mapping[str, int]) -> Fraction:
        """The value at naturals; KeyError for an unbound symbol."""
        return self.const + sum((c * values[s] for s, c in self.terms), Fraction(0))

    def __str__(self) -> str:
        """Source syntax: `4*D`, `D / 12`, `T + 1`, `2*D - 1`, `3*D / 4`; re-reads as the same form."""
        out = ""
        for s, c in self.terms:
            out = _join(out, c < 0, _monomial(s, abs(c)))
        if self.const or not out:
            c = self.const
            out = _join(
                out, c < 0, digits(abs(c.numerator)) + (f" / {digits(c.denominator)}" if c.denominator != 1 else "")
            )
        return out


def _monomial(s: str, c: Fraction) -> str:
    head = s if c.numerator == 1 else f"{digits(c.numerator)}*{s}"
    return head if c.denominator == 1 else f"{head} / {digits(c.denominator)}"


def _join(left: str, negative: bool, right: str) -> str:
    if not left:
        return f"-{right}" if negative else right
    return f"{left} {'-' if negative else '+'} {right}"


def linear(terms: Iterable[tuple[str, Fraction]], const: Fraction) -> Linear:
    """The canonical form of a sum of terms."""
    acc: dict[str, Fraction] = {}
    for s, c in terms:
        acc[s] = acc.get(s, Fraction(0)) + c
    return Linear(tuple(sorted((s, c) for s, c in acc.items() if c)), const)


@lru_cache(maxsize=4096)
def constant(value: int | Fraction) -> Linear:
    return Linear((), Fraction(value))


@lru_cache(maxsize=4096)
def symbol(name: str) -> Linear:
    return Linear(((name, _ONE),), _ZERO)
