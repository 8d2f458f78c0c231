"""No text, however wrong, gives anything but a tree and diagnostics in its own terms."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.diagnostics import Diagnostic, Span
from presk_rel.diagnostics.render import render, to_json
from presk_rel.syntax.dump import ast_to_json, ast_to_text, tokens_to_json, tokens_to_text
from presk_rel.syntax.parser import parse, parse_expr, parse_module_expr, parse_type, tokens
from presk_rel.syntax.printer import print_file
from presk_rel.syntax.token import CONTEXTUAL, RESERVED

EXAMPLES = [p.read_text(encoding="utf-8") for p in sorted((Path(__file__).parents[2] / "examples").rglob("*.psk"))]
SIGNS = [
    "(", ")", "[", "]", "{", "}", ",", ":", "=", ".", "..", "...", "->", "+", "-", "*", "/", "%", "^", "·", "@",
    "><", "<<", "\\", "\\lambda", "|>", "|", "==", "<=", "<", "x",
    "ŷ", "1", "2.5", "5ms", '"s"', '"', "--", "$", ";", "\u0302", "\0",
    "\ud800", "\u2028", "\ufeff", "\r", "\t", "\n", "\n", "\n  ", "\nfn f(x) =", "\nmodule M {", "\ntraining run {",
]  # fmt: skip
pieces = st.sampled_from(sorted(RESERVED | CONTEXTUAL) + SIGNS * 2)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """An example with a few stretches cut out, doubled or replaced."""
    text = draw(st.sampled_from(EXAMPLES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 1, 2, 10, 100])))
        text = text[:start] + draw(st.one_of(st.just(""), pieces, st.just(text[start:end] * 2))) + text[end:]
    return text


def check(text: str) -> None:
    result = parse(text, "t.psk")
    for diagnostic in result.diagnostics:
        assert diagnostic.span is not None
        for span in (diagnostic.span, *(label.span for label in diagnostic.labels)):
            check_span(span, text)
    starts = [_start(d) for d in result.diagnostics]
    assert starts == sorted(starts)
    assert bool(result.diagnostics) == bool(render(result.diagnostics, {"t.psk": text}))
    assert all(to_json(d)["file"] == "t.psk" for d in result.diagnostics)
    again = parse(print_file(result.file), "t.psk")
    assert (again.diagnostics, again.file) == ([], result.file)
    assert ast_to_text(result.file) and ast_to_json(result.file)
    found = tokens(text, "t.psk").tokens
    assert tokens_to_text(found) and tokens_to_json(found, "t.psk")


def _start(diagnostic: Diagnostic) -> int:
    assert diagnostic.span is not None
    return diagnostic.span.start.offset


def check_span(span: Span, text: str) -> None:
    assert 0 <= span.start.offset <= span.end.offset <= len(text)
    for pos in (span.start, span.end):
        before = text[: pos.offset]
        assert (pos.line, pos.column) == (before.count("\n") + 1, pos.offset - (before.rfind("\n") + 1) + 1)


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text(text: str) -> None:
    check(text)


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    check(data.decode("utf-8", errors="surrogateescape"))


@given(st.lists(pieces, max_size=40))
@settings(max_examples=300)
def test_any_tokens(parts: list[str]) -> None:
    check(" ".join(parts))
    for read in (parse_expr, parse_type, parse_module_expr):
        read("".join(parts))


@given(mutated())
def test_mutated_programs(text: str) -> None:
    check(text)
