"""JSON text of values that nest deeper than the standard library's recursion allows, as proofs may."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

DEEPEST = 40
"""Levels that are indented; deeper ones stand at the same column, or the text would grow with the square of depth."""


def json_text(value: Any) -> str:
    """Like `json.dumps(value, ensure_ascii=False, indent=2)`, without recursion."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    todo: list[tuple[int, str, Any]] = [(0, "", value)]
    while todo:
        depth, lead, item = todo.pop()
        yield lead
        if isinstance(item, _Close):
            yield item.text
        elif isinstance(item, dict | list) and item:
            todo.append((depth, _break(depth), _Close("}" if isinstance(item, dict) else "]")))
            yield "{" if isinstance(item, dict) else "["
            todo.extend(reversed(_entries(item, depth + 1)))
        else:
            yield json.dumps(item, ensure_ascii=False)


class _Close:
    def __init__(self, text: str) -> None:
        self.text = text


def _break(depth: int) -> str:
    return "\n" + "  " * min(depth, DEEPEST)


def _entries(item: dict[str, Any] | list[Any], depth: int) -> list[tuple[int, str, Any]]:
    named = (
        [(f"{json.dumps(key, ensure_ascii=False)}: ", v) for key, v in item.items()]
        if isinstance(item, dict)
        else [("", v) for v in item]
    )
    return [(depth, ("," if i else "") + _break(depth) + name, v) for i, (name, v) in enumerate(named)]
