"""Diagnostics as text with carets, and as JSON (docs/cli.md). Not for deciding what to say: passes do that.

The picture:

    [E3001] Error: cannot differentiate through `argmax`
       ,-[ a.psk:6:3 ]
     4 |   mean(real(argmax(logits)))
       |             `----- `argmax` makes the result discontinuous in `l`
     6 |   grad(λ l. pick(l))(logits)
       |   `------------------------- `grad` here, with respect to `l`
       | Help: use `softmax` for a smooth surrogate

The diagnostic's own place is marked `^^^^` where no label speaks of it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from presk_rel.diagnostics.diagnostic import Diagnostic
from presk_rel.diagnostics.record import record
from presk_rel.diagnostics.span import Pos, Span

_TAB: Final = "    "
_WIDEST: Final = 160
_MARGIN: Final = 40
_RED, _YELLOW, _BLUE, _BOLD, _RESET = "\x1b[31;1m", "\x1b[33;1m", "\x1b[34m", "\x1b[1m", "\x1b[0m"


@record
class _Mark:
    """A stretch of one line to underline; `message` may be empty."""

    span: Span
    message: str


def render(diagnostics: Sequence[Diagnostic], sources: Mapping[str, str], color: bool = False) -> str:
    """All of them, a blank line between two. `sources` maps a file to its text; without it there is no picture."""
    lines = {file: text.split("\n") for file, text in sources.items() if any(_mentions(d, file) for d in diagnostics)}
    return "\n".join(_render_one(d, lines, _paint if color else _plain) for d in diagnostics)


def _mentions(diagnostic: Diagnostic, file: str) -> bool:
    spans = [label.span for label in diagnostic.labels]
    return any(s.file == file for s in ([*spans, diagnostic.span] if diagnostic.span else spans))


def _plain(text: str, _style: str) -> str:
    return text


def _paint(text: str, style: str) -> str:
    return f"{style}{text}{_RESET}"


def _render_one(diagnostic: Diagnostic, lines: Mapping[str, list[str]], paint: Any) -> str:
    is_error = diagnostic.severity == "error"
    head = paint(f"[{diagnostic.code}] {'Error' if is_error else 'Warning'}", _RED if is_error else _YELLOW)
    result = [f"{head}: {paint(escaped(diagnostic.message), _BOLD)}"]
    marks = _marks(diagnostic)
    width = max([len(str(m.span.start.line)) for m in marks], default=1)
    gutter = paint(" " * (width + 2) + "|", _BLUE)
    for file, group in groupby(marks, key=lambda m: m.span.file):
        result += _section(diagnostic, file, list(group), lines.get(file), width, paint)
    if diagnostic.counterexample:
        values = ", ".join(f"{name} = {value}" for name, value in diagnostic.counterexample)
        result.append(f"{gutter} Counterexample: {values}")
    if diagnostic.help:
        help = shown(diagnostic.help).replace("\n", f"\n{gutter}       ")
        result.append(f"{gutter} Help: {help}")
    return "\n".join(result) + "\n"


def _marks(diagnostic: Diagnostic) -> list[_Mark]:
    """The diagnostic's own file first; in it by position. A label at the diagnostic's span is the text of its mark."""
    marks = [_Mark(label.span, label.message) for label in diagnostic.labels]
    primary = diagnostic.span
    if primary is not None and all(mark.span != primary for mark in marks):
        marks.append(_Mark(primary, ""))
    main = primary.file if primary else ""
    return sorted(marks, key=lambda m: (m.span.file != main, m.span))


def _section(
    diagnostic: Diagnostic, file: str, marks: list[_Mark], lines: list[str] | None, width: int, paint: Any
) -> list[str]:
    at = diagnostic.span if diagnostic.span and diagnostic.span.file == file else marks[0].span
    place = f"{escaped(file)}:{at.start.line}:{at.start.column}"
    result = [paint(" " * (width + 2) + ",-[", _BLUE) + f" {place} " + paint("]", _BLUE)]
    for number, group in groupby(marks, key=lambda m: m.span.start.line):
        if lines is None or number > len(lines):
            continue
        on_line = list(group)
        line, shift = _window(lines[number - 1].rstrip("\r"), on_line)
        result.append(paint(f"{number:>{width + 1}} |", _BLUE) + f" {shown(line)}".rstrip())
        for mark in on_line:
            result.append(paint(" " * (width + 2) + "|", _BLUE) + " " + _underline(line, mark, shift, paint))
    return result


def _window(line: str, marks: list[_Mark]) -> tuple[str, int]:
    """The part of a very long line around its first mark, and how many characters were cut on the left."""
    if len(line) <= _WIDEST:
        return line, 0
    first = min(mark.span.start.column for mark in marks) - 1
    cut = max(0, first - _MARGIN)
    left, right = "…" if cut else "", "…" if cut + _WIDEST < len(line) else ""
    return left + line[cut + len(left) : cut + _WIDEST - len(right)] + right, cut


def _underline(line: str, mark: _Mark, shift: int, paint: Any) -> str:
    start = max(0, mark.span.start.column - 1 - shift)
    end = mark.span.end.column - 1 - shift if mark.span.end.line == mark.span.start.line else len(line)
    before = _columns(line[:start]) + max(0, start - len(line))
    width = max(1, _columns(line[start : min(end, len(line))]))
    text = f" {shown(mark.message)}" if mark.message else ""
    return " " * before + paint("`" + "-" * (width - 1) if text else "^" * width, _RED) + text


def shown(text: str) -> str:
    """Fit for a terminal: tabs as spaces; control, format and surrogate characters as a replacement sign."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_TAB if c == "\t" else c if c == "\n" or not _is_unprintable(c) else "\ufffd" for c in text)


def escaped(text: str) -> str:
    """On one line, and fit for a terminal: control, format and surrogate characters as in a Python string, `\\n`. For
    messages and names of files: two that differ are never shown alike."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if _is_unprintable(c) else c for c in text)


def _is_unprintable(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _columns(text: str) -> int:
    """How many terminal columns `text` takes: combining marks none, wide characters two."""
    if text.isascii() and "\t" not in text:
        return len(text)
    return sum(_width(c) for c in text)


def _width(character: str) -> int:
    if character == "\t":
        return len(_TAB)
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# ------------------------------------------------------------------------------------------------------------ JSON


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as docs/cli.md says. Without a place, `file` and `span` are null."""
    span, counterexample = diagnostic.span, diagnostic.counterexample
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": span.file if span else None,
        "span": span_to_json(span) if span else None,
        "labels": [{"span": span_to_json(label.span), "message": label.message} for label in diagnostic.labels],
        "help": diagnostic.help,
        "counterexample": dict(counterexample) if counterexample is not None else None,
    }


def span_to_json(span: Span) -> dict[str, Any]:
    return {"start": _pos_to_json(span.start), "end": _pos_to_json(span.end)}


def _pos_to_json(pos: Pos) -> dict[str, int]:
    return {"line": pos.line, "column": pos.column, "offset": pos.offset}
