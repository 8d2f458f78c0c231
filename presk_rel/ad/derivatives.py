"""The derivative table: one row per primitive of `core.prims.PRIMS`, and one place to look it up. Rows are written
where their family is: entry by entry, linear maps, structure. A test fails for a primitive without a row."""

from __future__ import annotations

from presk_rel.ad import derivatives_linear, derivatives_pointwise, derivatives_structure
from presk_rel.ad.row import Row

DERIVATIVES: dict[str, Row] = {
    row.name: row for row in (*derivatives_pointwise.ROWS, *derivatives_linear.ROWS, *derivatives_structure.ROWS)
}
