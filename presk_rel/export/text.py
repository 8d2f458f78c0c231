"""Python expressions as text with their precedence."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from presk_rel.smt.linear import Linear

LAMBDA, COMPARE, SUM, PRODUCT, UNARY, POWER, ATOM = range(7)


@dataclass(frozen=True, slots=True)
class Py:
    """An expression; `level` is how tightly it binds. `number` says that it is a Python number, no tensor."""

    text: str
    level: int = ATOM
    number: bool = False

    def at(self, level: int) -> str:
        """The text where something that binds at `level` is expected."""
        return self.text if self.level >= level else f"({self.text})"


def infix(left: Py, op: str, right: Py, level: int, *, number: bool = False) -> Py:
    """`left op right`, a left-associative operator."""
    return Py(f"{left.at(level)} {op} {right.at(level + 1)}", level, number)


def literal(value: Fraction) -> Py:
    """The number as Python writes it."""
    text = str(abs(value.numerator)) if value.denominator == 1 else repr(abs(float(value)))
    return Py(f"-{text}", UNARY, True) if value < 0 else Py(text, ATOM, True)


def real(value: Fraction) -> Py | None:
    """A number of ℝ as Python writes it; None for one that a float cannot hold. Integers stay integers only as far as
    torch takes every product with one."""
    if value and not _LEAST <= abs(value) <= _LARGEST:
        return None
    if value.denominator == 1 and abs(value) < _EXACT:
        return literal(value)
    text = repr(abs(float(value)))
    return Py(f"-{text}", UNARY, True) if value < 0 else Py(text, ATOM, True)


_LEAST, _LARGEST = Fraction(sys.float_info.min), Fraction(sys.float_info.max)
_EXACT = 2**53


def floating(value: Py) -> Py:
    """A number as a float where it is written as an integer: Python's integers have no end, torch's have."""
    if not re.fullmatch(r"-?\d+", value.text):
        return value
    return Py(f"{value.text}.0", value.level, value.number)


def tensor(value: Py) -> Py:
    """A value as a tensor: a number becomes one of the default dtype."""
    if not value.number:
        return value
    inner = floating(value).text
    return Py(f"torch.tensor({inner})" if _FLOAT.search(inner) else f"torch.tensor(float({inner}))")


_FLOAT = re.compile(r"(?<![\w.])\d+(\.\d+|(\.\d+)?e[+-]?\d+)")


def dimension(form: Linear, symbols: dict[str, Py], constant: Callable[[int], str | None]) -> Py:
    """A linear form: `4 * D`, `D // 12`, `(3 * D + 2) // 4`; `constant` has the name of a number that is one."""
    if form.is_constant and form.const.denominator == 1:
        name = constant(form.const.numerator)
        return Py(name, ATOM, True) if name is not None else literal(form.const)
    divisor = lcm(form.const.denominator, *(c.denominator for _, c in form.terms))
    total: Py | None = None
    parts = [(symbols[s], c * divisor) for s, c in form.terms]
    if form.const:
        parts.append((Py("", ATOM, True), form.const * divisor))
    for base, c in parts:
        term = _term(base, abs(c), constant)
        if total is None:
            total = term if c > 0 else Py(f"-{term.at(UNARY)}", UNARY, True)
        else:
            total = infix(total, "+" if c > 0 else "-", term, SUM, number=True)
    whole = total or literal(Fraction(0))
    return whole if divisor == 1 else infix(whole, "//", literal(Fraction(divisor)), PRODUCT, number=True)


def _term(base: Py, coefficient: Fraction, constant: Callable[[int], str | None]) -> Py:
    name = None if base.text else constant(coefficient.numerator)
    number = Py(name, ATOM, True) if name is not None else literal(coefficient)
    if not base.text:
        return number
    return base if coefficient == 1 else infix(number, "*", base, PRODUCT, number=True)


def comment(text: str) -> str:
    """Text for one line of a comment."""
    return "".join(c for c in text if c.isprintable())
