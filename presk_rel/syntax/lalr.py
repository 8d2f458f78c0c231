"""The LALR(1) table of grammar.lark: compiled by lark once, then kept as JSON in the user's cache folder.

Lark's own cache is a pickle under a guessable name in the temporary folder; ours is data only, is checked against the
grammar's digest, and is optional: where nothing can be written the table is compiled again (0.3 s).
Not for parsing: driver.py runs the table.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

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
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    digest = hashlib.sha256(f"{_FORMAT} {grammar}".encode()).hexdigest()
    path = _cache_folder() / f"grammar-{digest[:16]}.json"
    cached = _read(path, digest)
    if cached is not None:
        return cached
    data = _compile(grammar)
    _write(path, digest, data)
    return _decode(data)


def _compile(grammar: str) -> dict[str, Any]:
    from presk_rel.syntax.lark_table import compile_grammar

    return compile_grammar(grammar)


def _cache_folder() -> Path:
    root = os.environ.get("PRESK_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(root or Path(os.path.expanduser("~")) / ".cache") / "presk"


def _read(path: Path, digest: str) -> Table | None:
    """None for every kind of absent, foreign or damaged cache: it is then written anew."""
    try:
        head, _, body = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if head != f"{digest} {hashlib.sha256(body.encode()).hexdigest()}":
        return None
    return _decode(json.loads(body))


def _write(path: Path, digest: str, data: dict[str, Any]) -> None:
    """By rename, so that no reader sees half a file; a folder that cannot be written is no error."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = f"{digest} {hashlib.sha256(body.encode()).hexdigest()}\n{body}"
    name = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def _decode(data: dict[str, Any]) -> Table:
    productions = [
        Production(origin, size, build, tuple(None if c is None else (c[0], c[1]) for c in children))
        for origin, size, build, children in data["productions"]
    ]
    return Table(data["actions"], data["gotos"], productions, data["starts"], data["ends"])
