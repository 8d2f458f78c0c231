"""grammar.lark → LALR(1) table, by lark; the one file that imports it, and only when no fresh cache is there.

Not for parsing: driver.py runs the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from lark import Lark
from lark.lexer import Lexer

STARTS: Final = ("file", "lone_expr", "lone_type", "lone_module")


class _NoLexer(Lexer):
    """Our tokens come from lexer.py; lark is only asked for the table."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        raise NotImplementedError


def compile_grammar(grammar: str) -> dict[str, Any]:
    """Table as JSON-able data. Terminals are named by their text (`let`, `|>`), declared ones by their name."""
    parser = cast(Any, Lark(grammar, parser="lalr", lexer=_NoLexer, start=list(STARTS), maybe_placeholders=True))
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
    symbols = iter(enumerate(cast(list[Any], rule.expansion)))
    children: list[tuple[int, bool] | None] = []
    for is_absent in absent:
        if is_absent:
            children.append(None)
            continue
        index, symbol = next(symbols)
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            children.append((index, not symbol.is_term and symbol.name.startswith("__")))
    return children
