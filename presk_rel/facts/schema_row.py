"""What a row of the relational schema says."""

from __future__ import annotations

from typing import Literal

from presk_rel.diagnostics.record import record

Type = Literal["symbol", "number"]
Role = Literal["input", "derived"]
Origin = Literal["ast", "core"]


@record
class Column:
    name: str
    type: Type


@record
class RelationRow:
    """`meaning` has the columns in braces. `role`: facts come from outside, or are derived. `origin`: about source
    programs, or about PSK-Core."""

    name: str
    columns: tuple[Column, ...]
    meaning: str
    role: Role
    origin: Origin


def row(signature: str, meaning: str, role: Role, origin: Origin) -> RelationRow:
    """`row("parent(scope outer)", …)`: columns are symbols; `index#` is a column `index` of numbers."""
    name, _, rest = signature.removesuffix(")").partition("(")
    columns = tuple(Column(c.removesuffix("#"), "number" if c.endswith("#") else "symbol") for c in rest.split())
    return RelationRow(name, columns, meaning, role, origin)
