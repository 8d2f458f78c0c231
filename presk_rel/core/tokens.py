"""The words of PSK-Core text. Line ends are tokens; a comment belongs to the line end that follows it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from presk_rel.core.names import is_name
from presk_rel.diagnostics import Pos

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
      | (?P<mark>->|<=|\.\.\.?|[()\[\]{},:;=.*/+\-∘])
      | (?P<word>[^\s()\[\]{},:;=.*/+\-∘<>"]+)
      | (?P<other>.)""",
    re.VERBOSE,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, ended by a newline and an `end`. What is no token is one of kind `bad`."""
    out: list[Token] = []
    line, start_of_line = 1, 0
    comment = ""
    words: dict[str, tuple[Kind, str]] = {}
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
            kind, word = _word(m.group(), words) if group == "word" else _sign(group, m.group())
            out.append(Token(kind, word, start, end))
    last = Pos(line, len(text) - start_of_line + 1, len(text))
    return [*out, Token("newline", comment[2:].strip(), last, last), Token("end", "", last, last)]


def _word(text: str, known: dict[str, tuple[Kind, str]]) -> tuple[Kind, str]:
    """A name in NFC; each spelling is looked at once."""
    if text not in known:
        name = unicodedata.normalize("NFC", text)
        known[text] = ("name" if is_name(name) else "bad", name)
    return known[text]


def _sign(group: str | None, text: str) -> tuple[Kind, str]:
    match group:
        case "number" | "mark":
            return group, text
        case _:
            return "bad", text
