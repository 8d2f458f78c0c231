"""The syntax trees of a program → facts of the relations that `schema` lists with origin "ast"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from presk_rel.diagnostics import Span
from presk_rel.syntax import ast

Row = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """The parsed files of a program, the main one first. `imports` maps the id of an import's alias (`decl_id`) to
    the `path` of the file that it names; an import whose file could not be read is absent."""

    files: tuple[ast.File, ...]
    imports: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AstFacts:
    """Input rows by relation, and where each use and declaration stands."""

    rows: Mapping[str, list[Row]]
    spans: Mapping[str, Span]


def use_id(span: Span) -> str:
    """The id of the use of a name at `span`."""
    return f"{span.file}@{span.start.offset}"


def decl_id(ident: ast.Ident) -> str:
    """The id of what `ident` declares."""
    return use_id(ident.span)


def ast_facts(sources: Sources) -> AstFacts:
    """Facts of every file of a program."""
    raise NotImplementedError
