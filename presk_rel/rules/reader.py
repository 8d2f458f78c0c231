"""Text of one file of rules → its clauses and directives, before names are resolved. Not for includes or validation.

The parse tree is folded bottom-up without recursion, so that nesting in hostile input costs memory, not the stack.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast

import lark
from lark.lexer import PatternStr

from presk_rel.diagnostics import Diagnostic, Diagnostics, Pos, PreskError, Span
from presk_rel.diagnostics import cache as store
from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    Attribute,
    Binary,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Term,
    TypeDecl,
    Variable,
    Wildcard,
)
from presk_rel.rules.items import RESERVED, Clause, Declaration, Direction, Include, Item, in_order
from presk_rel.rules.walk import literal_terms

DEPTH_LIMIT = 100
"""Levels of nested terms and aggregates in one literal."""

ALTERNATIVES_LIMIT = 256
"""Conjunctions that the `;` of one clause may multiply out to."""

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {c: c for c in "\"'\\"}
_NAME_COMMENT = re.compile(r"\s*//\s*\[([A-Za-z][\w-]*(?:\.[\w-]+)*)\]")
_COMMENT_LINE = re.compile(r"\s*//")
_DIRECTIVE = re.compile(r"\.[a-z_]+")


@cache
def _grammar() -> lark.Lark:
    text = Path(__file__).with_name("dialect.lark").read_text(encoding="utf-8")
    folder = store.folder()
    return lark.Lark(
        text,
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
        start=["start", "body"],
        cache=False if folder is None else os.path.join(folder, f"dialect-{store.digest(text)}.lark"),
    )


def read_items(text: str, file: str) -> list[Item]:
    """The items of `text` in order. Raises `PreskError` with E9101, E9102, E9112, E9113 or E9115."""
    return [cast(Item, value) for value in _fold(text, file, "start", portable=True)]


def read_body(text: str, file: str) -> tuple[tuple[Literal, ...], ...]:
    """The alternatives of a body that stands alone, as in a query. Its variables may be any identifiers."""
    return cast(tuple[tuple[Literal, ...], ...], tuple(_fold(text, file, "body", portable=False)))


def _fold(text: str, file: str, start: str, *, portable: bool) -> list[object]:
    try:
        tree = cast(Callable[[str, str], lark.ParseTree], _grammar().parse)(text, start)
    except lark.UnexpectedInput as error:
        raise PreskError([_syntax_error(error, text, file)]) from None
    folder = _Folder(file, text.split("\n"), portable)
    values = list(folder.fold(tree))
    if folder.found.has_errors:
        raise PreskError(in_order(folder.found))
    return values


def _syntax_error(error: lark.UnexpectedInput, text: str, file: str) -> Diagnostic:
    offset = len(text) if _at_end(error) else error.pos_in_stream or 0
    line = text.count("\n", 0, offset) + 1
    start = Pos(line, offset - (text.rfind("\n", 0, offset) + 1) + 1, offset)
    directive = _DIRECTIVE.match(text, offset)
    if directive is not None:
        end = Pos(line, start.column + len(directive[0]), directive.end())
        return Diagnostic(
            "E9113", f"the directive `{directive[0]}` is not part of presk's rule language", Span(file, start, end)
        )
    width = 1 if offset < len(text) else 0
    span = Span(file, start, Pos(line, start.column + width, offset + width))
    found = f"`{text[offset]}`" if width else "the end of the text"
    return Diagnostic("E9101", f"unexpected {found}{_expected(error)}", span)


def _at_end(error: lark.UnexpectedInput) -> bool:
    if isinstance(error, lark.UnexpectedToken):
        return cast(lark.Token, error.token).type == "$END"
    return error.pos_in_stream is None or error.pos_in_stream < 0


def _expected(error: lark.UnexpectedInput) -> str:
    raw = error.expected if isinstance(error, lark.UnexpectedToken) else getattr(error, "allowed", None) or ()
    shown = sorted({_terminal_text(name) for name in cast(Iterable[str], raw)})
    if not shown:
        return ""
    return "; expected " + " or ".join(shown[:8]) + (" …" if len(shown) > 8 else "")


_TERMINALS = {
    "$END": "the end",
    "ADDITIVE": "an operator",
    "MULTIPLICATIVE": "an operator",
    "COMPARE": "a comparison",
    "DIRECTION": "a directive",
    "EXTREMUM": "a function",
    "FUNCTION": "a function",
    "IDENT": "a name",
    "NUMBER": "a number",
    "QUALIFIED": "a name",
    "QUALIFIER": "a qualifier",
    "STRING": "a string",
    "SUM": "an aggregate",
}
"""How messages call the terminals of the grammar that are not plain text."""


@cache
def _terminal_text(name: str) -> str:
    for terminal in _grammar().terminals:
        if terminal.name == name and isinstance(terminal.pattern, PatternStr):
            return f"`{terminal.pattern.value}`"
    return _TERMINALS.get(name, name)


@dataclass(slots=True)
class _Folder:
    """Folds parse trees to items. `values` and `depths` are keyed by the identity of live nodes."""

    file: str
    lines: list[str]
    portable: bool
    found: Diagnostics = field(default_factory=Diagnostics)
    depths: dict[int, int] = field(default_factory=dict[int, int])

    def fold(self, tree: lark.ParseTree) -> Sequence[object]:
        """The value of the root, which the caller knows to be a sequence."""
        values: dict[int, object] = {}
        for node in tree.iter_subtrees():
            children = [values[id(c)] if isinstance(c, lark.Tree) else str(c) for c in node.children]
            values[id(node)] = _HANDLERS[node.data](self, self._span(node), children)
        return cast(Sequence[object], values[id(tree)])

    def _span(self, node: lark.ParseTree) -> Span:
        meta = node.meta
        if meta.empty:
            return Span(self.file, Pos(1, 1, 0), Pos(1, 1, 0))
        return Span(
            self.file,
            Pos(meta.line, meta.column, meta.start_pos),
            Pos(meta.end_line, meta.end_column, meta.end_pos),
        )

    def deeper(self, value: Term, parts: Iterable[Term], span: Span) -> Term:
        """`value`, built of `parts`, unless it is nested too deeply."""
        depth = 1 + max((self.depths.get(id(p), 0) for p in parts), default=0)
        if depth > DEPTH_LIMIT:
            raise PreskError([Diagnostic("E9102", f"terms nest deeper than {DEPTH_LIMIT} levels", span)])
        self.depths[id(value)] = depth
        return value

    def clause_name(self, span: Span) -> str | None:
        """The bracketed name in the comment lines that stand directly above line `span.start.line`."""
        row = span.start.line - 2
        while row >= 0 and _COMMENT_LINE.match(self.lines[row]):
            named = _NAME_COMMENT.match(self.lines[row])
            if named is not None:
                return named[1]
            row -= 1
        return None


Children = list[Any]
"""Values that the grammar's shape determines; each handler below states what it takes by how it unpacks."""


def _declaration(f: _Folder, span: Span, children: Children) -> Item:
    attributes = tuple(c for c in children if isinstance(c, Attribute))
    qualifiers = {"brie", "btree", "inline", "no_inline", "magic", "no_magic"}
    before = children[: children.index(attributes[0])] if attributes else [c for c in children if c not in qualifiers]
    return Declaration(tuple(before), attributes, span)


def _string(f: _Folder, span: Span, children: Children) -> Term:
    return Constant(_unescape(f, children[0], span))


def _unescape(f: _Folder, quoted: str, span: Span) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            f.found.error("E9101", f"unknown escape `\\{match[1]}` in a string", span)
        return _ESCAPES.get(match[1], "")

    return re.sub(r"\\(.)", one, quoted[1:-1], flags=re.DOTALL)


def _number(f: _Folder, span: Span, children: Children) -> Term:
    digits: str = children[0]
    if len(digits) > 40:
        raise PreskError([Diagnostic("E9115", "a number of the rule language has 32 bits", span)])
    base = {"0x": 16, "0b": 2}.get(digits[:2], 10)
    return Constant(int(digits, base))


def _variable(f: _Folder, span: Span, children: Children) -> Term:
    (name,) = children
    if f.portable and (name in RESERVED or not name.isascii()):
        f.found.error("E9101", f"`{name}` cannot be a variable: Soufflé does not read it as a name", span)
    return Variable(name)


def _negate(f: _Folder, span: Span, children: Children) -> Term:
    (term,) = children
    if isinstance(term, Constant) and isinstance(term.value, int):
        return Constant(-term.value)
    return f.deeper(Binary("-", Constant(0), term), (term,), span)


def _binary(f: _Folder, span: Span, children: Children) -> Term:
    left, operator, right = children
    return f.deeper(Binary(operator, left, right), (left, right), span)


def _call(f: _Folder, span: Span, children: Children) -> Term:
    function, *arguments = children
    return f.deeper(Call(function, tuple(arguments)), arguments, span)


def _aggregate(f: _Folder, span: Span, children: Children) -> Term:
    *front, raw_body = children
    alternatives = ((raw_body,),) if isinstance(raw_body, Atom) else cast(tuple[tuple[Literal, ...], ...], raw_body)
    if len(alternatives) != 1:
        f.found.error("E9113", "`;` inside an aggregate is not part of the rule language", span)
    operator, target = front if front else ("count", None)
    terms = [t for literal in alternatives[0] for t in literal_terms(literal)]
    parts = terms if target is None else [*terms, target]
    return f.deeper(Aggregate(operator, target, alternatives[0], span), parts, span)


def _atom(f: _Folder, span: Span, children: Children) -> Atom:
    name, *arguments = children
    return Atom(name, tuple(arguments), span)


def _comparison(f: _Folder, span: Span, children: Children) -> Literal:
    left, operator, right = children
    return Comparison(operator, left, right, span)


def _conjunction(f: _Folder, span: Span, children: Children) -> tuple[tuple[Literal, ...], ...]:
    choices = [(((c,),) if isinstance(c, Atom | Negation | Comparison) else c) for c in children]
    count = 1
    for choice in choices:
        count *= len(choice)
    _limit_alternatives(count, span)
    return tuple(tuple(literal for part in parts for literal in part) for parts in product(*choices))


def _body(f: _Folder, span: Span, children: Children) -> tuple[tuple[Literal, ...], ...]:
    _limit_alternatives(sum(map(len, children)), span)
    return tuple(conjunction for alternatives in children for conjunction in alternatives)


def _limit_alternatives(count: int, span: Span) -> None:
    if count > ALTERNATIVES_LIMIT:
        raise PreskError([Diagnostic("E9102", f"`;` makes more than {ALTERNATIVES_LIMIT} alternatives", span)])


def _clause(f: _Folder, span: Span, children: Children) -> Item:
    heads = tuple(c for c in children if isinstance(c, Atom))
    alternatives = children[-1] if not isinstance(children[-1], Atom) else ((),)
    return Clause(heads, alternatives, f.clause_name(span), span)


def _subsumption(f: _Folder, span: Span, children: Children) -> Item:
    f.found.error(
        "E9112",
        "subsumption is refused: a tuple that it deletes could not be part of a proof",
        span,
        help="keep every tuple, and say in a second relation which one is best (`!higher(...)`)",
    )
    return Clause((), (), None, span)


_HANDLERS: dict[str, Callable[[_Folder, Span, Children], object]] = {
    "start": lambda f, span, c: c,
    "declaration": _declaration,
    "attribute": lambda f, span, c: Attribute(c[0], c[1]),
    "type_subset": lambda f, span, c: TypeDecl(c[0], (c[1],), False, span),
    "type_union": lambda f, span, c: TypeDecl(c[0], tuple(c[1:]), True, span),
    "direction": lambda f, span, c: Direction(c[0], tuple(c[1:]), span),
    "include": lambda f, span, c: Include(_unescape(f, c[0], span), span),
    "fact": _clause,
    "rule": _clause,
    "subsumption": _subsumption,
    "head": _atom,
    "body": _body,
    "conjunction": _conjunction,
    "negation": lambda f, span, c: Negation(c[0], span),
    "group": lambda f, span, c: c[0],
    "comparison": _comparison,
    "atom": _atom,
    "binary": _binary,
    "negate": _negate,
    "wildcard": lambda f, span, c: Wildcard(),
    "number": _number,
    "string": _string,
    "variable": _variable,
    "call": _call,
    "aggregate": _aggregate,
}
