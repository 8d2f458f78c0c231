"""The numeric libraries without usable type stubs, seen as `Any`, in one place."""

from __future__ import annotations

from typing import Any

import flint
import mpmath

_flint: Any = flint
arb: Any = _flint.arb
"""A real ball: `[mid ± rad]`."""
arb_mat: Any = _flint.arb_mat
fmpq: Any = _flint.fmpq
flint_context: Any = _flint.ctx
"""FLINT's global context; `flint_context.workprec(p)` sets the precision of balls for a block."""
mpmath_context: Any = getattr(mpmath, "mp")  # noqa: B009 - typed as an unknown module attribute otherwise
"""mpmath's default context; `clone()` it."""
