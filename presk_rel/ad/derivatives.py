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
from presk_rel.ad.row import Opaque, Row
from presk_rel.core.composites import COMPOSITES

_FAMILIES = (
    derivatives_pointwise,
    derivatives_linear,
    derivatives_axes,
    derivatives_choices,
    derivatives_structure,
)

_COMPOSITE = Opaque("composites are not differentiated: the optimizer makes them, after differentiation")

DERIVATIVES: dict[str, Row] = {row.name: row for family in _FAMILIES for row in family.ROWS} | {
    name: Row(name, (_COMPOSITE,)) for name in COMPOSITES
}
