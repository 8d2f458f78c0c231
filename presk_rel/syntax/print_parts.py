"""What the printer works with: strings, and nodes still to be printed; a stack turns them into text (printer.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from presk_rel.diagnostics.record import record
from presk_rel.syntax import ast

BLOCK: Final = 0
"""The level of a place that has an end of its own, where a `let` needs no parentheses."""
EXPR: Final = 1
UNARY: Final = 7
POSTFIX: Final = 9
ATOM: Final = 10

LEVELS: Final[dict[ast.BinaryOp, int]] = {
    "|>": 1, "|": 2, "⊗": 3, "∘": 3, "==": 4, "<=": 4, ">=": 4, "<": 4, ">": 4, "+": 5, "-": 5,
    "*": 6, "/": 6, "%": 6, "·": 6, "^": 8,
}  # fmt: skip
"""Precedence (spec: "Expressions"), loosest first. All associate to the left but `^`."""

INDENT: Final = "  "


@record
class Task:
    """`node` to be printed by `expand`, in a place of precedence `level`.

    `last`: nothing follows in the same brackets that a `λ` at the end of it would take for its body.
    `margin`: the white space at the start of its lines.
    """

    expand: Callable[[Task], Sequence[Part]]
    node: Any
    level: int = EXPR
    last: bool = True
    margin: str = ""


Part: TypeAlias = str | Task


def render(first: Task) -> str:
    """Depth first, without recursion."""
    done: list[str] = []
    stack: list[Part] = [first]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            done.append(part)
        else:
            stack.extend(reversed(part.expand(part)))
    return "".join(done)


def separated(parts: Iterable[Part], separator: str = ", ") -> list[Part]:
    result: list[Part] = []
    for part in parts:
        if result:
            result.append(separator)
        result.append(part)
    return result
