"""The tree and the tokens for `presk dump --stage ast|tokens`: as indented text and as JSON-able data with spans.

Chains are flat in both, so that neither a reader nor a JSON library has to nest as deep as the program is long:
`let` bindings in a row are one node with `bindings` and a `body`, and `a + b - c` is one node with `first` and `rest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, cast

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.render import span_to_json
from presk_rel.syntax import ast
from presk_rel.syntax.token import DECIMAL, END, NAME, NAT, NEWLINE, QUANTITY, STRING, TYPED, Token

_TOKEN_NAMES: Final = {
    NAME: "Ident", NAT: "Nat", DECIMAL: "Float", QUANTITY: "Quantity", STRING: "Str", NEWLINE: "Newline", END: "End",
    TYPED: ":",
}  # fmt: skip
"""The spec's names of the tokens that carry a text."""


def tokens_to_text(tokens: list[Token]) -> str:
    """One token a line: where it starts, its kind, its text."""
    rows = [(f"{t.start.line}:{t.start.column}", _TOKEN_NAMES.get(t.kind, t.kind), _token_text(t)) for t in tokens]
    return "".join(f"{place:<8} {kind} {text}".rstrip() + "\n" for place, kind, text in rows)


def tokens_to_json(tokens: list[Token], file: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": _TOKEN_NAMES.get(t.kind, t.kind),
            "text": _token_text(t) or None,
            "span": span_to_json(Span(file, t.start, t.end)),
        }
        for t in tokens
    ]


def _token_text(token: Token) -> str:
    if token.kind not in _TOKEN_NAMES or token.kind in (NEWLINE, END, TYPED):
        return ""
    return token.text.replace(" ", "") if token.kind == QUANTITY else token.text


# ------------------------------------------------------------------------------------------------------------ tree


def _parts(node: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a node in order, chains flattened; spans apart."""
    if isinstance(node, ast.Let):
        bindings, body = let_chain(node)
        yield "bindings", tuple(bindings)
        yield "body", body
    elif isinstance(node, ast.Binary):
        first, rest = binary_chain(node)
        yield "first", first
        yield "rest", tuple(rest)
    elif isinstance(node, _Row):
        yield from node.parts
    else:
        yield from ((f.name, getattr(node, f.name)) for f in fields(node) if f.name not in ("span", "op_span"))


class _Row:
    """One link of a chain, dumped like a node."""

    __slots__ = ("name", "parts", "span")

    def __init__(self, name: str, span: Span, *parts: tuple[str, Any]) -> None:
        self.name, self.span, self.parts = name, span, parts


def let_chain(node: ast.Let) -> tuple[list[_Row], ast.Expr]:
    bindings: list[_Row] = []
    body: ast.Expr = node
    while isinstance(body, ast.Let):
        bindings.append(_Row("Binding", body.span, ("pattern", body.pattern), ("value", body.value)))
        body = body.body
    return bindings, body


def binary_chain(node: ast.Binary) -> tuple[ast.Expr, list[_Row]]:
    rest: list[_Row] = []
    first: ast.Expr = node
    while isinstance(first, ast.Binary):
        rest.append(_Row("Operand", first.op_span, ("op", first.op), ("right", first.right)))
        first = first.left
    return first, rest[::-1]


def _is_node(value: Any) -> bool:
    return isinstance(value, _Row) or hasattr(value, "__dataclass_fields__")


def _name(node: Any) -> str:
    return node.name if isinstance(node, _Row) else type(node).__name__


def ast_to_json(root: Any) -> Any:
    """`{"node": "Call", "span": {…}, …fields}`; tuples are lists, absent parts null. A file's name is in its `path`."""
    result: list[Any] = [None]
    stack: list[tuple[Any, Any, Any]] = [(root, result, 0)]
    while stack:
        value, container, key = stack.pop()
        if isinstance(value, tuple):
            nodes = cast(tuple[Any, ...], value)
            items: list[Any] = [None] * len(nodes)
            container[key] = items
            stack.extend((item, items, i) for i, item in enumerate(nodes))
        elif _is_node(value):
            parts = list(_parts(value))
            data: dict[str, Any] = {"node": _name(value), "span": span_to_json(value.span)}
            container[key] = data | {name: None for name, _ in parts}
            stack.extend((part, container[key], name) for name, part in parts)
        else:
            container[key] = value
    return result[0]


def ast_to_text(root: Any) -> str:
    """One node a line: its field, its kind, its own texts, where it starts; what is inside it is indented."""
    lines: list[str] = []
    stack: list[tuple[int, str, Any]] = [(0, "", root)]
    while stack:
        depth, label, node = stack.pop()
        parts = list(_parts(node))
        texts = [_inline(name, part) for name, part in parts if _is_inline(part)]
        place = f"{node.span.start.line}:{node.span.start.column}"
        lines.append("  " * depth + " ".join([f"{label}{_name(node)}", *filter(None, texts), f"@{place}"]))
        inside: list[tuple[int, str, Any]] = []
        for name, part in parts:
            if isinstance(part, tuple):
                inside += [(depth + 1, f"{name}: ", item) for item in cast(tuple[Any, ...], part)]
            elif not _is_inline(part):
                inside.append((depth + 1, f"{name}: ", part))
        stack.extend(reversed(inside))
    return "\n".join(lines) + "\n"


def _is_inline(part: Any) -> bool:
    return isinstance(part, ast.Ident) or not (isinstance(part, tuple) or _is_node(part))


def _inline(name: str, part: Any) -> str:
    if part is None or part is False:
        return ""
    if isinstance(part, ast.Ident):
        return f"{name}={part.text}"
    return name if part is True else f"{name}={part!r}" if name in ("value", "path") else str(part)
