"""The words of PSK-Core text. Line ends are tokens; a comment belongs to the line end that follows it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from presk_rel.core.names import is_name
from presk_rel.diagnostics import Pos, Span

Kind = Literal["name", "number", "mark", "newline", "end", "bad"]


@dataclass(frozen=True, slots=True)
class Token:
    """`text` of a name is NFC; of a newline, the comment before it (without `--`)."""

    kind: Kind
    text: str
    start: Pos
    end: Pos


_TOKEN = re.compile(
    r"""(?P<space>[^\S\n]+)
      | (?P<newline>(?:--[^\n]*)?\n)
      | (?P<comment>--[^\n]*)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w%']))
      | (?P<mark>->|<=|\.\.\.|[()\[\]{},:;=.*/+\-∘])
      | (?P<word>[^\s()\[\]{},:;=.*/+\-∘<>"]+)
      | (?P<other>.)""",
    re.VERBOSE,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, ended by a newline and an `end`. What is no token is one of kind `bad`."""
    out: list[Token] = []
    line, start_of_line = 1, 0
    comment = ""
    for m in _TOKEN.finditer(text):
        group = m.lastgroup
        if group == "space":
            continue
        if group == "comment":
            comment = m.group()
            continue
        start = Pos(line, m.start() - start_of_line + 1, m.start())
        end = Pos(line, m.end() - start_of_line + 1, m.end())
        if group == "newline":
            note = m.group()[2:].strip() if m.group() != "\n" else ""
            out.append(Token("newline", note, start, end))
            line, start_of_line = line + 1, m.end()
        else:
            out.append(_token(group, m.group(), start, end))
    last = Pos(line, len(text) - start_of_line + 1, len(text))
    return [*out, Token("newline", comment[2:].strip(), last, last), Token("end", "", last, last)]


def _token(group: str | None, text: str, start: Pos, end: Pos) -> Token:
    match group:
        case "number":
            return Token("number", text, start, end)
        case "mark":
            return Token("mark", text, start, end)
        case "word":
            name = unicodedata.normalize("NFC", text)
            return Token("name" if is_name(name) else "bad", name, start, end)
        case _:
            return Token("bad", text, start, end)


def span_of(file: str, first: Token, last: Token) -> Span:
    return Span(file, first.start, last.end)
