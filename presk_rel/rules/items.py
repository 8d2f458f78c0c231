"""What a file of rules is made of before names are resolved: its items, in order."""

from __future__ import annotations

from presk_rel.diagnostics import Diagnostic, Diagnostics, Span
from presk_rel.diagnostics.record import record
from presk_rel.rules.ast import Atom, Attribute, Literal, TypeDecl


@record
class Declaration:
    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    span: Span


@record
class Direction:
    """`.input` or `.output` of some relations."""

    keyword: str
    names: tuple[str, ...]
    span: Span


@record
class Include:
    path: str
    span: Span


@record
class Clause:
    """Heads, and the alternatives of the body (one empty conjunction for a fact)."""

    heads: tuple[Atom, ...]
    alternatives: tuple[tuple[Literal, ...], ...]
    name: str | None
    span: Span


Item = Declaration | TypeDecl | Direction | Include | Clause

_RESERVED = """
    as autoinc band bnot bor brie bshl bshr bshru btree btree_delete bxor cat contains count debug_delta eqrel false
    inline input land lnot lor lxor magic match max mean min nil no_inline no_magic ord output overridable printsize
    range recursive_iteration_cnt stateful strlen substr sum to_float to_number to_string to_unsigned true
    __FILE__ __INCL__ __LINE__
"""
RESERVED = frozenset(_RESERVED.split())
"""Words that Soufflé does not read as names."""


def in_order(found: Diagnostics) -> list[Diagnostic]:
    """The diagnostics by file and place."""
    return sorted(found.items, key=lambda d: (d.span is not None, d.span))
