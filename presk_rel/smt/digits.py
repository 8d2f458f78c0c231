"""Decimal digits of naturals of any size: `str` refuses more than 4,300."""

from __future__ import annotations

_CHUNK = 4_000
_BASE = 10**_CHUNK


def digits(n: int) -> str:
    """The decimal digits of a natural number."""
    parts: list[str] = []
    while n >= _BASE:
        n, low = divmod(n, _BASE)
        parts.append(str(low).rjust(_CHUNK, "0"))
    parts.append(str(n))
    return "".join(reversed(parts))
