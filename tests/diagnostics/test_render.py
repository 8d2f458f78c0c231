"""Diagnostics as pictures and as JSON (docs/cli.md)."""

from __future__ import annotations

import json

import pytest

from presk_rel.diagnostics import Diagnostic, Label, Pos, Span
from presk_rel.diagnostics.render import render, to_json

SOURCE = """\
fn pick(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[] =
  -- the class of the largest logit
  mean(real(argmax(logits)))
fn bad(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[batch: 4, vocab: 8] =
  grad(λ l. pick(l))(logits)
"""


def span_of(text: str, source: str = SOURCE, file: str = "a.psk") -> Span:
    offset = source.index(text)
    return Span(file, pos_at(source, offset), pos_at(source, offset + len(text)))


def pos_at(source: str, offset: int) -> Pos:
    before = source[:offset]
    return Pos(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1, offset)


GRAD = span_of("grad(λ l. pick(l))(logits)")
E3001 = Diagnostic(
    "E3001",
    "cannot differentiate through `argmax`: the function is discontinuous (Disc) in `l`",
    GRAD,
    labels=(
        Label(span_of("argmax"), "`argmax` makes the result discontinuous in `l`"),
        Label(GRAD, "`grad` here, with respect to `l`"),
    ),
    help="use `softmax` for a smooth surrogate, or an explicit straight-through relaxation",
)


def test_the_picture_of_the_specification() -> None:
    assert (
        render([E3001], {"a.psk": SOURCE})
        == """\
[E3001] Error: cannot differentiate through `argmax`: the function is discontinuous (Disc) in `l`
   ,-[ a.psk:5:3 ]
 3 |   mean(real(argmax(logits)))
   |             `----- `argmax` makes the result discontinuous in `l`
 5 |   grad(λ l. pick(l))(logits)
   |   `------------------------- `grad` here, with respect to `l`
   | Help: use `softmax` for a smooth surrogate, or an explicit straight-through relaxation
"""
    )


def test_a_counterexample_and_a_place_no_label_speaks_of() -> None:
    diagnostic = Diagnostic("E1004", "fails", span_of("batch: 4"), "warning", counterexample=(("D", 1), ("T", 2)))
    assert (
        render([diagnostic], {"a.psk": SOURCE})
        == """\
[E1004] Warning: fails
   ,-[ a.psk:1:20 ]
 1 | fn pick(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[] =
   |                    ^^^^^^^^
   | Counterexample: D = 1, T = 2
"""
    )


def test_labels_in_other_files_and_two_on_one_line() -> None:
    other = "const D = 1\n"
    diagnostic = Diagnostic(
        "E1002", "twice", span_of("pick"),
        labels=(Label(span_of("D", other, "b.psk"), "here too"), Label(span_of("fn"), "a function")),
    )  # fmt: skip
    assert (
        render([diagnostic], {"a.psk": SOURCE, "b.psk": other})
        == """\
[E1002] Error: twice
   ,-[ a.psk:1:4 ]
 1 | fn pick(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[] =
   | `- a function
   |    ^^^^
   ,-[ b.psk:1:7 ]
 1 | const D = 1
   |       ` here too
"""
    )


def test_what_has_no_place_or_no_source_has_no_picture() -> None:
    assert render([Diagnostic("E0010", "cannot read", None, help="look")], {}) == (
        "[E0010] Error: cannot read\n   | Help: look\n"
    )
    assert render([Diagnostic("E0002", "wrong", GRAD)], {}) == "[E0002] Error: wrong\n   ,-[ a.psk:5:3 ]\n"


def test_several_are_parted_by_a_blank_line() -> None:
    nowhere = Diagnostic("E0010", "cannot read", None)
    assert render([nowhere, nowhere], {}) == "[E0010] Error: cannot read\n\n[E0010] Error: cannot read\n"
    assert render([], {}) == ""


def test_a_span_of_several_lines_is_marked_to_the_end_of_its_first() -> None:
    start, end = pos_at(SOURCE, SOURCE.index("-> ℝ[] =")), pos_at(SOURCE, len(SOURCE))
    picture = render([Diagnostic("E2003", "wrong", Span("a.psk", start, end))], {"a.psk": SOURCE})
    assert picture.splitlines()[-1] == "   |" + " " * 41 + "^" * 8


@pytest.mark.parametrize(
    ("line", "marked", "column"),
    [("x̂ + y", "y", 5), ("名前 + y", "y", 8), ("\t\ty", "y", 9), ("é\u0301y", "y", 2), ("a\x1b[31my", "y", 7)],
)
def test_carets_stand_under_their_text_on_a_terminal(line: str, marked: str, column: int) -> None:
    picture = render([Diagnostic("E0002", "wrong", span_of(marked, line))], {"a.psk": line}).splitlines()
    assert picture[-1].index("^") == len(" 1 | ") + column - 1
    assert "\x1b" not in "".join(picture) and "\t" not in "".join(picture)


def test_a_very_long_line_is_cut_around_the_mark() -> None:
    line = "x" * 500_000 + "HERE" + "y" * 500_000
    picture = render([Diagnostic("E0002", "wrong", span_of("HERE", line))], {"a.psk": line}).splitlines()
    assert len(picture[2]) < 200 and picture[2].startswith(" 1 | …x") and picture[2].endswith("y…")
    assert picture[2][picture[3].index("^") :].startswith("HERE")


def test_colour_only_where_it_is_asked_for() -> None:
    coloured = render([E3001], {"a.psk": SOURCE}, color=True)
    assert "\x1b[" in coloured and "\x1b[" not in render([E3001], {"a.psk": SOURCE})


def test_json() -> None:
    document = to_json(E3001)
    assert document["code"] == "E3001" and document["severity"] == "error" and document["file"] == "a.psk"
    start = {"line": 5, "column": 3, "offset": SOURCE.index("grad")}
    assert document["span"]["start"] == start and document["labels"][1]["span"]["start"] == start
    assert document["counterexample"] is None
    assert json.loads(json.dumps(document)) == document


def test_json_of_a_counterexample_and_of_no_place() -> None:
    assert to_json(Diagnostic("E1004", "fails", None, counterexample=(("T", 1),))) == {
        "code": "E1004",
        "severity": "error",
        "message": "fails",
        "file": None,
        "span": None,
        "labels": [],
        "help": None,
        "counterexample": {"T": 1},
    }
