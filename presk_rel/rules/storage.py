"""Programs that have been read, kept as JSON in the user's cache folder: reading the shipped rules again would cost
more than solving them. Data only, checked against the text of every file that the program was made of.

Any trouble with the cache means reading the files; it is never an error.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from presk_rel.diagnostics import Pos, Span
from presk_rel.rules import ast
from presk_rel.rules.ast import Program, RelationDecl

Source = tuple[str, str]
"""The path of a file and the digest of its text."""

_CLASSES: Sequence[type[Any]] = (
    ast.Variable,
    ast.Wildcard,
    ast.Constant,
    ast.Binary,
    ast.Call,
    ast.Aggregate,
    ast.Atom,
    ast.Negation,
    ast.Comparison,
    ast.Attribute,
    ast.RelationDecl,
    ast.TypeDecl,
    ast.Rule,
    ast.FactClause,
)
"""A node is stored as the list of its class's number from 1 and its fields; a tuple as the list of 0
and its items; a span as the list of -1, its file and six numbers."""

_NUMBERS: Mapping[type[Any], int] = {c: i for i, c in enumerate(_CLASSES, 1)}
_FIELDS: Mapping[type[Any], tuple[str, ...]] = {c: tuple(f.name for f in fields(c)) for c in _CLASSES}


def cache_folder() -> Path | None:
    """The folder for what can be computed again, made if need be; None where there can be none."""
    root = os.environ.get("PRESK_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(root) / "presk"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def source_of(path: Path, text: str) -> Source:
    return str(path), sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def load_program(path: Path, search: Sequence[Path]) -> Program | None:
    """The stored program of the file at `path`, if every file it was made of is as it was."""
    place = _place(path, search)
    if place is None or not place.is_file():
        return None
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        if all(source_of(Path(p), Path(p).read_text(encoding="utf-8"))[1] == d for p, d in stored["sources"]):
            return _decode_program(stored["program"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return None


def store_program(path: Path, search: Sequence[Path], program: Program, sources: Sequence[Source]) -> None:
    place = _place(path, search)
    if place is None:
        return
    parts = [tuple(program.relations.values()), program.types, program.rules, program.facts]
    try:
        text = json.dumps({"sources": sources, "program": [_encode(p) for p in parts]}, separators=(",", ":"))
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(place)
    except (OSError, ValueError, RecursionError):
        return


def _place(path: Path, search: Sequence[Path]) -> Path | None:
    folder = cache_folder()
    key = "\0".join([_reader_digest(), os.getcwd(), str(path), *map(str, search)])
    digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return None if folder is None else folder / f"rules-{digest[:24]}.json"


@cache
def _reader_digest() -> str:
    """Changes whenever the code that reads programs does."""
    digest = sha256()
    for file in sorted(Path(__file__).parent.glob("*.*")):
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _encode(value: object) -> object:
    if isinstance(value, tuple):
        return [0, *(_encode(v) for v in cast(tuple[object, ...], value))]
    if isinstance(value, Span):
        ends = (value.start, value.end)
        return [-1, value.file, *(n for p in ends for n in (p.line, p.column, p.offset))]
    if type(value) in _NUMBERS:
        return [_NUMBERS[type(value)], *(_encode(getattr(value, f)) for f in _FIELDS[type(value)])]
    return value


def _decode(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    number, *parts = cast(list[Any], value)
    if number == -1:
        return Span(parts[0], Pos(*parts[1:4]), Pos(*parts[4:7]))
    decoded = [_decode(p) if isinstance(p, list) else p for p in parts]
    if number == 0:
        return tuple(decoded)
    return cast(Callable[..., object], _CLASSES[number - 1])(*decoded)


def _decode_program(parts: list[Any]) -> Program:
    relations, types, rules, facts = map(_decode, parts)
    return Program({decl.name: decl for decl in cast(tuple[RelationDecl, ...], relations)}, types, rules, facts)
