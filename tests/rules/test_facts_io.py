"""Files of rows: one scheme of escapes, and it loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presk_rel.diagnostics import PreskError
from presk_rel.rules.ast import Row
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.facts_io import escape, read_facts, read_rows, unescape, write_facts, write_rows

PROGRAM = parse_program(".decl r(x:symbol, n:number, y:symbol) .input r .decl none() .input none .decl d(x:symbol)")
any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_unescape_inverts_escape(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not set(escape(text)) & set("\t\n\r")


@given(any_text, any_text)
def test_escape_commutes_with_concatenation(a: str, b: str) -> None:
    assert escape(a + b) == escape(a) + escape(b)


@given(rows=st.lists(st.tuples(any_text, st.integers(-(2**31), 2**31 - 1), any_text)))
def test_rows_make_the_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    path = tmp_path_factory.mktemp("rows") / "r.facts"
    write_rows(path, rows)
    assert read_rows(path, PROGRAM.relations["r"]) == rows


def test_a_file_looks_as_souffle_wants_it(tmp_path: Path) -> None:
    write_facts(tmp_path, PROGRAM, {"r": [("é", -1, "a\tb\\n")], "none": [()]})
    assert (tmp_path / "r.facts").read_text(encoding="utf-8") == "é\t-1\ta\\tb\\\\n\n"
    assert (tmp_path / "none.facts").read_text() == "()\n"
    assert not (tmp_path / "d.facts").exists()


def test_empty_inputs_have_files_too(tmp_path: Path) -> None:
    write_facts(tmp_path, PROGRAM, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["none.facts", "r.facts"]
    assert read_facts(tmp_path, PROGRAM) == {"r": [], "none": []}


@pytest.mark.parametrize("text", ["a\t1\n", "a\t1\tb\tc\n", "a\tone\tb\n", "a\t1.0\tb\n", "\n"])
def test_a_malformed_line_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.facts").write_text("x\t1\ty\n" + text)
    with pytest.raises(PreskError, match=r"E9120.*line 2"):
        read_rows(tmp_path / "r.facts", PROGRAM.relations["r"])


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PreskError, match="E9120"):
        read_facts(tmp_path, PROGRAM)
