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
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

STARTS = ("file", "lone_expr", "lone_type", "lone_module")
END = "$END"
_FORMAT = 1

Child: TypeAlias = tuple[int, bool] | None
"""Which symbol of a production is a child (and whether it is a list to splice); None for an absent optional part."""


@dataclass(frozen=True, slots=True)
class Production:
    """`origin` → `size` symbols; `build` names the function of build.py, or is "" where the only child is passed on.

    >>> # const: "const" name [":" type] "=" expr   with the type absent
    >>> # Production("const", 4, "const", ((1, False), None, (3, False)))
    """

    origin: str
    size: int
    build: str
    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
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
    grammar = files("presk_rel.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    digest = hashlib.sha256(f"{_FORMAT} {version('lark')} {grammar}".encode()).hexdigest()
    path = _cache_folder() / f"grammar-{digest[:16]}.json"
    cached = _read(path, digest)
    if cached is not None:
        return cached
    data = compile_grammar(grammar)
    _write(path, digest, data)
    return _decode(data)


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        return


def _decode(data: dict[str, Any]) -> Table:
    productions = [
        Production(origin, size, build, tuple(None if c is None else (c[0], c[1]) for c in children))
        for origin, size, build, children in data["productions"]
    ]
    return Table(data["actions"], data["gotos"], productions, data["starts"], data["ends"])


# ------------------------------------------------------------------------------------------- compilation by lark


def compile_grammar(grammar: str) -> dict[str, Any]:
    """Table as JSON-able data. Terminals are named by their text (`let`, `|>`), declared ones by their name."""
    from lark import Lark
    from lark.lexer import Lexer

    class NoLexer(Lexer):
        """Our tokens come from lexer.py; lark is only asked for the table."""

        def __init__(self, lexer_conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            raise NotImplementedError

    parser: Any = Lark(grammar, parser="lalr", lexer=NoLexer, start=list(STARTS), maybe_placeholders=True)
    spelling = {t.name: t.pattern.value for t in parser.terminals}
    return _encode(parser.parser.parser._parse_table, lambda name: spelling.get(name, name))


def _encode(lark_table: Any, spell: Callable[[str], str]) -> dict[str, Any]:
    """Renumbers states from the starts, so that the same grammar always gives the same data."""
    order = _reachable(lark_table)
    number = {state: i for i, state in enumerate(order)}
    productions: dict[Any, int] = {}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in order:
        row: dict[str, int] = {}
        goto: dict[str, int] = {}
        for symbol, (action, argument) in sorted(lark_table.states[state].items()):
            if action.name == "Reduce":
                row[spell(symbol)] = ~productions.setdefault(argument, len(productions))
            elif symbol.islower():
                goto[symbol] = number[argument]
            else:
                row[spell(symbol)] = number[argument]
        actions.append(row)
        gotos.append(goto)
    return {
        "actions": actions,
        "gotos": gotos,
        "productions": [_production(rule) for rule in productions],
        "starts": {s: number[lark_table.start_states[s]] for s in STARTS},
        "ends": {s: number[lark_table.end_states[s]] for s in STARTS},
    }


def _reachable(lark_table: Any) -> list[Any]:
    order: list[Any] = [lark_table.start_states[s] for s in STARTS]
    seen = set(order)
    for state in order:
        for _, (action, argument) in sorted(lark_table.states[state].items()):
            if action.name == "Shift" and argument not in seen:
                seen.add(argument)
                order.append(argument)
    return order


def _production(rule: Any) -> list[Any]:
    children = _children(rule)
    origin = str(rule.origin.name)
    passes_on = rule.options.expand1 and rule.alias is None and len(children) == 1
    build = "" if passes_on else str(rule.alias or ("list" if origin.startswith("__") else origin))
    return [origin, len(rule.expansion), build, children]


def _children(rule: Any) -> list[tuple[int, bool] | None]:
    """Positions of the kept symbols, with None where lark would put a placeholder (`maybe_placeholders`)."""
    absent: list[bool] = list(rule.options.empty_indices) or [False] * len(rule.expansion)
    symbols = iter(enumerate(rule.expansion))
    children: list[tuple[int, bool] | None] = []
    for is_absent in absent:
        if is_absent:
            children.append(None)
            continue
        index, symbol = next(symbols)
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            children.append((index, not symbol.is_term and symbol.name.startswith("__")))
    return children
