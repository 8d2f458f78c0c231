"""The exponent of `^` (spec: "`^ n` takes a natural exponent"): naturals and constants, joined by + - * / and ^."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.elab.dims import path_text
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Checker, is_bad
from presk_rel.types.tree import TLiteral

LARGEST_BITS = 256
"""Of a number on the way to an exponent; more than any exponent has."""


_BEYOND = "is at most a million, and this is more"


class _Refused(Exception):
    """Carries why an exponent is none; None where that is reported already."""


def exponent_of(c: Checker, expr: ast.Expr) -> int | None:
    """The value of an exponent; None, with E2017, where it is no natural number that is known here."""
    what = f"`{path_text(expr)}`" if isinstance(expr, ast.Name | ast.Field) else "this"
    try:
        value = _value(c, expr)
        if value.denominator == 1 and value >= 0:
            return int(value)
        why = f"is a natural number or a constant, and {what} is none"
    except _Refused as refused:
        why = f"is a natural number or a constant, and {what} is none" if refused.args == () else refused.args[0]
    if why is not None:
        helped = "x^y for a real y is exp(y * log(x)); 1/x is a division; the square root is sqrt(x)"
        c.error("E2017", f"an exponent {why}", expr.span, help=helped)
    return None


def _value(c: Checker, expr: ast.Expr) -> Fraction:
    """Left operands by a loop, since they may be ten thousand."""
    chain: list[ast.Binary] = []
    while isinstance(expr, ast.Binary) and expr.op in ("+", "-", "*", "/", "^"):
        chain.append(expr)
        expr = expr.left
    value = _operand(c, expr)
    for node in reversed(chain):
        value = _within(_operation(node.op, value, _value(c, node.right)))
    return value


def _operand(c: Checker, expr: ast.Expr) -> Fraction:
    match expr:
        case ast.Negate(operand=operand):
            return -_value(c, operand)
        case _:
            value = c.infer(expr)
            if is_bad(value):
                raise _Refused(None)
            if not isinstance(value, TLiteral):
                raise _Refused
            return value.value


def _operation(op: str, a: Fraction, b: Fraction) -> Fraction:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" if b:
            return a / b
        case "^" if b.denominator == 1 and b >= 0:
            if b > LARGEST_BITS and a not in (0, 1, -1):
                raise _Refused(_BEYOND)
            return a ** int(b) if b <= LARGEST_BITS else a ** int(b % 2 + 2)
        case _:
            raise _Refused


def _within(value: Fraction) -> Fraction:
    if value.numerator.bit_length() > LARGEST_BITS:
        raise _Refused(_BEYOND)
    return value
