r"""Relations as files: one row a line, columns separated by tabs, UTF-8, as Soufflé's `.facts` and `.csv`.

One scheme of escapes for both directions and both engines: in a symbol, backslash, tab, newline and carriage return
are written `\\`, `\t`, `\n`, `\r`. Other symbols stand as they are. A row without columns is the line `()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.rules.ast import BaseType, Program, RelationDecl, Row, Value

SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPED = re.compile(r"\\([\\tnr])")
_TO_ESCAPE = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_FROM_ESCAPE = {v[1]: k for k, v in _TO_ESCAPE.items()}


def escape(symbol: str) -> str:
    """Concatenation commutes with it: `escape(a + b) == escape(a) + escape(b)`."""
    if SPECIAL.search(symbol) is None:
        return symbol
    return SPECIAL.sub(lambda m: _TO_ESCAPE[m[0]], symbol)


def unescape(text: str) -> str:
    """The inverse of `escape`; a backslash before any other character stands for itself."""
    return _ESCAPED.sub(lambda m: _FROM_ESCAPE[m[1]], text) if "\\" in text else text


def write_facts(directory: Path, program: Program, facts: Mapping[str, Iterable[Row]]) -> None:
    """Writes `NAME.facts` for every input relation, also for those without rows: Soufflé stops at a missing file."""
    for name in program.inputs:
        write_rows(directory / f"{name}.facts", facts.get(name, ()))


def read_facts(directory: Path, program: Program) -> dict[str, list[Row]]:
    """The rows of `NAME.facts` for every input relation. Raises `PreskError` E9120 for a missing or malformed file."""
    return {name: read_rows(directory / f"{name}.facts", program.relations[name]) for name in program.inputs}


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    lines = ["\t".join(escape(v) if isinstance(v, str) else str(v) for v in row) if row else "()" for row in rows]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))


def read_rows(path: Path, decl: RelationDecl) -> list[Row]:
    """The rows of one file. Raises `PreskError` E9120."""
    try:
        text = path.read_bytes().decode("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as error:
        raise PreskError([Diagnostic("E9120", f"cannot read `{path}`: {error}", None)]) from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if decl.arity == 0:
        return [()] if lines else []
    return [_row(path, number, line.split("\t"), decl.types) for number, line in enumerate(lines, 1)]


def _row(path: Path, number: int, fields: list[str], types: tuple[BaseType, ...]) -> Row:
    if len(fields) != len(types):
        message = f"`{path}`, line {number}: {len(types)} columns are wanted, but there are {len(fields)}"
        raise PreskError([Diagnostic("E9120", message, None)])
    values: list[Value] = []
    for field, wanted in zip(fields, types, strict=True):
        values.append(unescape(field) if wanted == "symbol" else _number(path, number, field))
    return tuple(values)


def _number(path: Path, line: int, field: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,12}", field) is None:
        raise PreskError([Diagnostic("E9120", f"`{path}`, line {line}: `{field[:40]}` is not a number", None)])
    return int(field)
