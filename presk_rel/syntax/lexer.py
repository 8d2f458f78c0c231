"""Text → tokens, with a `_NEWLINE` for each run of line breaks (spec: "Lexical structure"). Not for layout: layout.py.

A line break is U+000A. U+000D is white space, so that a file with CRLF keeps its offsets.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from presk_rel.diagnostics import Diagnostic, Diagnostics, Pos, Span
from presk_rel.syntax.token import (
    DECIMAL,
    END,
    ERROR,
    NAME,
    NAT,
    NEWLINE,
    QUANTITY,
    STRING,
    SYNONYMS,
    WORD_KINDS,
    Token,
)

# `[^\x00-\x7f]` is compiled a hundred times faster than `[\x80-\U0010FFFF]`.
_TOKEN = re.compile(
    r"""[ \t\r]*+(?:
        (?P<ascii>[A-Za-z_][0-9A-Za-z_]*+(?![^\x00-\x7f]))
      | (?P<symbol>(?!--)(?:\|>|\.\.\.|\.\.|->|==|<=|>=|[][(){},:=.+\-*/%^|·⊗∘]|<(?!<)|>(?!<)))
      | (?P<newline>\n)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<synonym><<|><|[@\u0387]|\\lambda(?![0-9A-Za-z_]|[^\x00-\x7f])|\\)
      | (?P<word>[A-Za-z_]|[^\x00-\x7f])
      | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
      | (?P<skip>--[^\n]*|\Z)
      | (?P<other>.))
    """,
    re.VERBOSE,
)
_UNIT = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)?")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
MAX_NAME: Final = 1000
"""The time of normalization grows with the square of a name's length."""

_FIRST = frozenset(' \t\r\n0123456789()[]{},:=.<>+-*/%^|·\u0387@⊗∘\\"')
_MIDDLE_DOTS = "\u00b7\u0387"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_LOOK_ALIKES = {
    ";": "a declaration ends at the end of its line; no `;` is needed",
    "#": "a comment starts with `--`",
    "'": 'strings are written with `"`',
    "“": 'strings are written with `"`',
    "”": 'strings are written with `"`',
    "×": "write `*`",
    "⋅": "write `·` (U+00B7) or `@`",
    "∙": "write `·` (U+00B7) or `@`",
    "−": "write `-`",
    "–": "write `-`",
    "÷": "write `/`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "→": "write `->`",
    "…": "write `...`",
    "!": "there is no negation; the comparisons are `==`, `<=`, `>=`, `<` and `>`",
}


def continues(character: str) -> bool:
    """XID_Continue, but for `·` and what is canonically equivalent to it: they are never part of an identifier."""
    return ("a" + character).isidentifier() and character not in _MIDDLE_DOTS


def _starts_nothing(character: str) -> bool:
    """Whether no token starts with the character."""
    return not (character.isidentifier() or character in _FIRST)


@lru_cache(maxsize=4096)
def _nfc(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


class _Lexer:
    """One scan of one text. Every lexical error leaves an ERROR token, which stops the declaration it stands in."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.tokens: list[Token] = []
        self.diagnostics = Diagnostics()
        self.line = 1
        self.line_start = 0

    def run(self) -> None:
        text, match = self.text, _TOKEN.match
        at, size = int(text.startswith("\ufeff")), len(text)
        while at < size:
            found = match(text, at)
            assert found is not None and found.lastgroup is not None
            kind = found.lastgroup
            start, end = found.span(kind)
            if kind == "symbol":
                symbol = found.group(kind)
                at = self.add(symbol, symbol, start, end)
            elif kind == "ascii":
                word = found.group(kind)
                reserved = WORD_KINDS.get(word)
                if end - start > MAX_NAME:
                    at = self.too_long(start, end)
                else:
                    at = self.add(reserved or NAME, reserved or word, start, end)
            else:
                at = end if kind == "skip" else self.rare(kind, start, end)
        self.add(END, "", size, size)

    def rare(self, kind: str, at: int, end: int) -> int:
        if kind == "newline":
            if self.tokens and self.tokens[-1].kind != NEWLINE:
                self.add(NEWLINE, "\n", at, end)
            self.line += 1
            self.line_start = end
            return end
        if kind == "synonym":
            symbol = SYNONYMS[self.text[at:end]]
            return self.add(symbol, symbol, at, end)
        if kind == "word":
            return self.word(at)
        if kind == "number":
            return self.number(at, end)
        return self.string(at, end) if kind == "string" else self.other(at)

    def pos(self, offset: int) -> Pos:
        return Pos(self.line, offset - self.line_start + 1, offset)

    def add(self, kind: str, text: str, start: int, end: int) -> int:
        line, base = self.line, self.line_start - 1
        self.tokens.append(Token(kind, text, Pos(line, start - base, start), Pos(line, end - base, end)))
        return end

    def error(self, code: str, message: str, start: int, end: int, help: str | None = None) -> int:
        self.diagnostics.error(code, message, Span(self.file, self.pos(start), self.pos(end)), help=help)
        self.add(ERROR, "", start, end)
        return end

    def word(self, at: int) -> int:
        if not self.text[at].isidentifier():
            return self.other(at)
        end = self.word_end(at + 1)
        if end - at > MAX_NAME:
            return self.too_long(at, end)
        text = _nfc(self.text[at:end])
        reserved = WORD_KINDS.get(text)
        return self.add(reserved or NAME, reserved or text, at, end)

    def too_long(self, at: int, end: int) -> int:
        return self.error("E0011", f"a name has at most {MAX_NAME} characters, this one has {end - at}", at, end)

    def word_end(self, at: int) -> int:
        text, size = self.text, len(self.text)
        while at < size and continues(text[at]):
            at += 1
        return at

    def number(self, start: int, end: int) -> int:
        text = self.text
        unit = _UNIT.match(text, end)
        stop = unit.end() if unit else end
        wrong = self.word_end(stop)
        if wrong > stop:
            help = "a unit is letters, or letters `/` letters: `5ms`, `204GB/s`; a product is written with `*`"
            return self.error("E0007", f"malformed number `{text[start:wrong][:40]}`", start, wrong, help)
        if unit:
            # number and unit travel in one text, separated by a space: neither can contain one
            self.add(QUANTITY, f"{text[start:end]} {_nfc(unit.group())}", start, stop)
            return stop
        number = text[start:end]
        self.add(NAT if number.isdigit() else DECIMAL, number, start, end)
        return end

    def string(self, start: int, end: int) -> int:
        value = self.text[start + 1 : end - 1]
        lone = _LONE_SURROGATE.search(value)
        if lone:
            at = start + 1 + lone.start()
            message = f"unexpected character `{visible(lone.group())}` in a string: half of a surrogate pair"
            self.error("E0001", message, at, at + 1)
            return end
        if "\\" not in value:
            self.add(STRING, value, start, end)
            return end
        bad = [m for m in _ESCAPE.finditer(value) if m.group(1) not in _ESCAPES]
        for m in bad:
            span = Span(self.file, self.pos(start + 1 + m.start()), self.pos(start + 1 + m.end()))
            message = f"unknown escape `{visible(m.group())}` in a string"
            self.diagnostics.error("E0006", message, span, help='the escapes are `\\"`, `\\\\`, `\\n` and `\\t`')
        text = _ESCAPE.sub(lambda m: _ESCAPES.get(m.group(1), ""), value)
        self.add(ERROR if bad else STRING, text, start, end)
        return end

    def other(self, at: int) -> int:
        character = self.text[at]
        if character == '"':
            stop = self.text.find("\n", at)
            self.error(
                "E0003", "this string is never closed", at, at + 1, 'a string ends with `"` on the line it starts'
            )
            return len(self.text) if stop < 0 else stop
        end = at + 1
        while end < len(self.text) and _starts_nothing(self.text[end]):
            end += 1
        message = f"unexpected character `{visible(character)}`"
        return self.error("E0001", message, at, end, _LOOK_ALIKES.get(character))


def visible(text: str) -> str:
    """Control, format, unassigned and surrogate characters, and lone combining marks, by their code point."""
    return "".join(f"U+{ord(c):04X}" if unicodedata.category(c)[0] in "CZM" and c != " " else c for c in text)


def lex(text: str, file: str) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens of `text`, the last one END, and the lexical errors."""
    lexer = _Lexer(text, file)
    lexer.run()
    return lexer.tokens, lexer.diagnostics.items
