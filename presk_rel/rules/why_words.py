"""Facts of the relations in words, and where in the source they are about."""

from __future__ import annotations

from collections.abc import Mapping

from presk_rel.diagnostics import Span
from presk_rel.facts.schema import SCHEMA
from presk_rel.rules.ast import Value
from presk_rel.rules.printer import atom_text
from presk_rel.rules.proof import Pattern, ProofNode

CLASS = {"Cinf": "C∞", "C0plus": "C⁰⁺", "Disc": "Disc"}

PLACES = ("site", "use", "decl", "target", "result", "variable", "formal", "closure", "fn", "callee")
"""Columns that may say where a fact is about, the most telling first."""


def short(name: Value | None) -> str:
    """A variable without its function: `f/x.0` → `x.0`."""
    return str(name).rpartition("/")[2]


def sentence(fact: Pattern) -> str:
    """A fact by the meaning of its relation in the schema."""
    relation, row = fact
    schema = SCHEMA.get(relation)
    if schema is None:
        return atom_text(relation, row)
    words = {c.name: _word(c.name, v) for c, v in zip(schema.columns, row, strict=True)}
    return schema.meaning.format(**words)


def _word(column: str, value: Value | None) -> str:
    if value is None:
        return f"some {column.replace('_', ' ')}"
    return CLASS[value] if value in CLASS else short(value) if isinstance(value, str) else str(value)


def place(node: ProofNode, spans: Mapping[str, Span]) -> Span | None:
    """Where in the source a step of a proof is about."""
    return None if node.fact is None else fact_place(node.fact, spans)


def fact_place(fact: Pattern, spans: Mapping[str, Span]) -> Span | None:
    relation, row = fact
    schema = SCHEMA.get(relation)
    columns = {} if schema is None else {c.name: v for c, v in zip(schema.columns, row, strict=True)}
    for column in PLACES:
        value = columns.get(column)
        span = None if not isinstance(value, str) else spans.get(value) or spans.get(_whole(value))
        if span is not None:
            return span
    return None


def _whole(leaf: str) -> str:
    """The variable that a leaf is part of: `f/x.0` → `f/x`."""
    function, slash, name = leaf.rpartition("/")
    return f"{function}{slash}{name.partition('.')[0]}"
