"""The LALR(1) table of grammar.lark: compiled by lark once, then kept as JSON in the user's cache folder.

Lark's own cache is a pickle under a guessable name in the temporary folder; ours is data only, is checked against the
grammar's digest, and is optional: where nothing can be written the table is compiled again (0.3 s).
Not for parsing: driver.py runs the table.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, TypeAlias

from presk_rel.diagnostics import cache
from presk_rel.diagnostics.record import record

END = "$END"
_FORMAT = 1

Child: TypeAlias = tuple[int, bool] | None
"""Which symbol of a production is a child (and whether it is a list to splice); None for an absent optional part."""


@record
class Production:
    """`origin` → `size` symbols; `build` names the function of build.py, or is "" where the only child is passed on.

    >>> # const: "const" name [":" type] "=" expr   with the type absent
    >>> # Production("const", 4, "const", ((1, False), None, (3, False)))
    """

    origin: str
    size: int
    build: str
    children: tuple[Child, ...]


@record
class Table:
    """`actions[state][kind]` is a state to shift to, or `~p` to reduce by `productions[p]`."""

    actions: list[dict[str, int]]
    gotos: list[dict[str, int]]
    productions: list[Production]
    starts: dict[str, int]
    ends: dict[str, int]


@functools.cache
def table() -> Table:
    """The table of the shipped grammar, from the cache where it is fresh."""
    with open(os.path.join(os.path.dirname(__file__), "grammar.lark"), encoding="utf-8") as file:
        grammar = file.read()
    digest = cache.digest(f"{_FORMAT} {grammar}")
    name = f"grammar-{digest}.json"
    cached = cache.read(name, digest)
    if cached is not None:
        return _decode(json.loads(cached))
    data = _compile(grammar)
    cache.write(name, digest, json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    return _decode(data)


def _compile(grammar: str) -> dict[str, Any]:
    from presk_rel.syntax.lark_table import compile_grammar

    return compile_grammar(grammar)


def _decode(data: dict[str, Any]) -> Table:
    productions = [
        Production(origin, size, build, tuple(None if c is None else (c[0], c[1]) for c in children))
        for origin, size, build, children in data["productions"]
    ]
    return Table(data["actions"], data["gotos"], productions, data["starts"], data["ends"])
