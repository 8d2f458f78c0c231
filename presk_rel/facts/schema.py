"""The relational schema: one row per relation of `rules.dl`. The `.decl`s there agree with it (a test compares them).

A meaning is a sentence with the columns in braces: `presk query --relations` prints it as it stands, `presk why` with
the values of a fact filled in.
"""

from __future__ import annotations

from typing import Literal

from presk_rel.facts.schema_ast import AST_ROWS
from presk_rel.facts.schema_core import CORE_ROWS
from presk_rel.facts.schema_row import Column, RelationRow

__all__ = ["SCHEMA", "Column", "RelationRow", "inputs"]

SCHEMA: dict[str, RelationRow] = {row.name: row for row in (*AST_ROWS, *CORE_ROWS)}


def inputs(origin: Literal["ast", "core"]) -> tuple[str, ...]:
    """The input relations whose facts come from syntax trees, or from PSK-Core."""
    return tuple(row.name for row in SCHEMA.values() if row.role == "input" and row.origin == origin)
