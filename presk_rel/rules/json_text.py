"""JSON text of values that nest deeper than the standard library's recursion allows, as proofs may."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

DEEPEST = 24
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
        elif isinstance(item, dict) and item:
            yield "{"
            todo.append((depth, _break(depth), _Close("}")))
            named = [(f"{json.dumps(k, ensure_ascii=False)}: ", v) for k, v in cast(dict[str, Any], item).items()]
            todo.extend(reversed(_entries(named, depth + 1)))
        elif isinstance(item, list) and item:
            yield "["
            todo.append((depth, _break(depth), _Close("]")))
            todo.extend(reversed(_entries([("", v) for v in cast(list[Any], item)], depth + 1)))
        else:
            yield json.dumps(item, ensure_ascii=False)


class _Close:
    def __init__(self, text: str) -> None:
        self.text = text


def _break(depth: int) -> str:
    return "\n" + "  " * min(depth, DEEPEST)


def _entries(named: list[tuple[str, Any]], depth: int) -> list[tuple[int, str, Any]]:
    return [(depth, ("," if i else "") + _break(depth) + name, v) for i, (name, v) in enumerate(named)]
