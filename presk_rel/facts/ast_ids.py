"""How facts name the uses and declarations of source programs."""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.syntax import ast


def use_id(span: Span) -> str:
    """The id of the use of a name at `span`."""
    return f"{span.file}@{span.start.offset}"


def decl_id(ident: ast.Ident) -> str:
    """The id of what `ident` declares."""
    return use_id(ident.span)
