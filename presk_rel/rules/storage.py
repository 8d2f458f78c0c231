"""Programs that have been read, kept as JSON in the user's cache folder: reading the shipped rules again would cost
more than solving them. Data only, checked against the text of every file that the program was made of.

Any trouble with the cache means reading the files; it is never an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from presk_rel.diagnostics import Pos, Span
from presk_rel.diagnostics import cache as store
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
"""What is stored is a list of values, each made of those before it, so that equal ones are stored once: a node is the
list of its class's number from 1 and of the places of its fields; a tuple the list of 0 and of the places of its items;
a span the list of -1, the place of its file and six numbers. Texts, numbers and None stand for themselves."""

_NUMBERS: Mapping[type[Any], int] = {c: i for i, c in enumerate(_CLASSES, 1)}
_FIELDS: Mapping[type[Any], tuple[str, ...]] = {c: c.__match_args__ for c in _CLASSES}


def source_of(path: str, text: str) -> Source:
    return path, store.digest(text)


def load_program(path: str, search: Sequence[str]) -> Program | None:
    """The stored program of the file at `path`, if every file it was made of is as it was."""
    key = _key(path, search)
    text = store.read(f"rules-{key}.json", key)
    if text is None:
        return None
    try:
        stored = json.loads(text)
        if all(source_of(p, _text(p))[1] == digest for p, digest in stored["sources"]):
            return _decode_program(stored["program"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return None


def store_program(path: str, search: Sequence[str], program: Program, sources: Sequence[Source]) -> None:
    key = _key(path, search)
    encoder = _Encoder()
    encoder.put((tuple(program.relations.values()), program.types, program.rules, program.facts))
    try:
        text = json.dumps({"sources": sources, "program": encoder.values}, separators=(",", ":"))
        store.write(f"rules-{key}.json", key, text)
    except (ValueError, RecursionError):
        return


def _key(path: str, search: Sequence[str]) -> str:
    return store.digest("\0".join([_reader_digest(), os.getcwd(), path, *search]))


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


@cache
def _reader_digest() -> str:
    """Changes whenever the code that reads programs does."""
    with os.scandir(os.path.dirname(os.path.abspath(__file__))) as files:
        stats = sorted((f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file())
    return store.digest(repr(stats))


class _Encoder:
    """Puts values into the list that is stored, the last of them last."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self.places: dict[object, int] = {}

    def put(self, value: object) -> int:
        """The place of a value."""
        if isinstance(value, Span):
            ends = (value.start, value.end)
            numbers = [n for p in ends for n in (p.line, p.column, p.offset)]
            return self.place([-1, self.put(value.file), *numbers])
        if isinstance(value, tuple):
            return self.place([0, *(self.put(v) for v in cast(tuple[object, ...], value))])
        if type(value) in _NUMBERS:
            parts = (getattr(value, f) for f in _FIELDS[type(value)])
            return self.place([_NUMBERS[type(value)], *(self.put(part) for part in parts)])
        return self.place(cast("str | int | None", value))

    def place(self, value: str | int | list[int] | None) -> int:
        key = (list, *value) if isinstance(value, list) else (type(value), value)
        if key not in self.places:
            self.places[key] = len(self.values)
            self.values.append(value)
        return self.places[key]


def _decode_program(stored: list[Any]) -> Program:
    made: list[Any] = []
    for value in stored:
        if not isinstance(value, list):
            made.append(value)
            continue
        number, *places = cast("list[int]", value)
        if number > 0:
            make = cast("Callable[..., object]", _CLASSES[number - 1])
            made.append(make(*[made[i] for i in places]))
        elif number == 0:
            made.append(tuple([made[i] for i in places]))
        else:
            file, *ends = places
            made.append(Span(made[file], Pos(*ends[:3]), Pos(*ends[3:])))
    relations, types, rules, facts = made[-1]
    return Program({decl.name: decl for decl in cast("tuple[RelationDecl, ...]", relations)}, types, rules, facts)
