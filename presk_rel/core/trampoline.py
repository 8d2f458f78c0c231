"""Recursive walks without the interpreter's stack: a walker is a generator that yields the walks it waits for.

def size(e):
    total = 1
    for child in e.children:
        total += yield size(child)
    return total

run(size(tree))
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

R = TypeVar("R")

Walk = Generator["Walk[Any]", Any, R]
"""A walk that ends with an `R`; what it yields is run first, and its result sent back."""


def run(walk: Walk[R]) -> R:
    """The result of a walk, however deep it goes."""
    waiting: list[Walk[Any]] = [walk]
    value: Any = None
    while waiting:
        try:
            child = waiting[-1].send(value)
        except StopIteration as end:
            waiting.pop()
            value = end.value
        else:
            waiting.append(child)
            value = None
    return value
