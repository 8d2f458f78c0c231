"""What a row of the relational schema says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Type = Literal["symbol", "number"]
Role = Literal["input", "derived"]
Origin = Literal["ast", "core"]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
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
