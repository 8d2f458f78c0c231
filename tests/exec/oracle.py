"""An independent opinion on results: mpmath numbers, rounded by Python's `decimal`."""

import decimal
from collections.abc import Iterable
from typing import Any

import mpmath

from presk_rel.exec.values import Rounded, Tensor, Value, leaves


def nearest(x: mpmath.mpf, digits: int) -> decimal.Decimal:
    """`x`, exactly converted, rounded to `digits` significant digits, ties to even."""
    sign, man, exp, _ = x._mpf_
    with decimal.localcontext(decimal.Context(prec=20_000, Emax=10**9, Emin=-(10**9))):
        exact = decimal.Decimal(int(man)) * decimal.Decimal(2) ** int(exp)
        exact = -exact if sign else exact
    return decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN).create_decimal(exact)


def decimals(value: Value) -> list[decimal.Decimal]:
    """Every real of a result, in order."""
    found: list[decimal.Decimal] = []
    for _, leaf in leaves(value):
        if isinstance(leaf, Tensor):
            assert isinstance(leaf.data, Rounded)
            found += [decimal.Decimal(t) for t in leaf.data.text.ravel().tolist()]
    return found


def texts(value: Value) -> list[str]:
    return [t for _, leaf in leaves(value) if isinstance(leaf, Tensor) for t in leaf.data.text.ravel().tolist()]


def agree(value: Value, expected: Iterable[Any], digits: int) -> bool:
    return decimals(value) == [nearest(mpmath.mpf(x), digits) for x in expected]
