"""The derivative table: one row per primitive of `core.prims.PRIMS`, and one place to look it up. Rows are written
where their family is: entry by entry, linear maps, axes, choices, structure. A test fails for a primitive without a
row."""

from __future__ import annotations

from presk_rel.ad import (
    derivatives_axes,
    derivatives_choices,
    derivatives_linear,
    derivatives_pointwise,
    derivatives_structure,
)
from presk_rel.ad.row import Row

_FAMILIES = (
    derivatives_pointwise,
    derivatives_linear,
    derivatives_axes,
    derivatives_choices,
    derivatives_structure,
)

DERIVATIVES: dict[str, Row] = {row.name: row for family in _FAMILIES for row in family.ROWS}
