"""Walking syntax trees of any depth for the names they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from presk_rel.diagnostics import Span
from presk_rel.syntax import ast


@cache
def _children(node_class: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(node_class) if f.compare)


def walk(root: Any) -> Iterator[Any]:
    """Every syntax node under `root`, itself included, in source order; by a loop."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(reversed(node))  # pyright: ignore[reportUnknownArgumentType]
        elif is_dataclass(node) and not isinstance(node, Span):
            yield node
            stack.extend(getattr(node, name) for name in reversed(_children(type(node))))


def type_paths(root: Any) -> Iterator[ast.Expr]:
    """Every path under `root` that stands for a type or module (and not those in its dimensions)."""
    for node in walk(root):
        match node:
            case ast.NamedType(path) | ast.ParamsType(path) | ast.ModuleRef(path):
                yield path
            case _:
                continue


def paths(root: Any) -> Iterator[ast.Name | ast.Field]:
    """Every `Name` and `Field` under `root`: a path gives itself and each of its beginnings."""
    return (node for node in walk(root) if isinstance(node, ast.Name | ast.Field))
