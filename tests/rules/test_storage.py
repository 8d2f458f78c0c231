"""The cache of programs that have been read: never wrong, never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.rules import dialect
from presk_rel.rules.ast import Program
from presk_rel.rules.dialect import read_program

TEXT = """
.type T <: symbol
.decl p(x:T, y:number) .input p
.decl q(x:number) .output q
// [q.all]
q(y * 2) :- p(x, y), !q2(y), x != cat(x, "é"), y = max z + 1 : { p(_, z), z < 3 } ; q2(y).
.include "b.dl"
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRESK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.dl").write_text(TEXT)
    (tmp_path / "b.dl").write_text(".decl q2(x:number) q2(7).")
    return tmp_path / "a.dl"


def with_spans(program: Program) -> str:
    return repr(program)


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_items", lambda *_: pytest.fail("read again"))


def test_the_stored_program_is_the_same_to_the_last_span(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read_program(path)
    forbid_reading(monkeypatch)
    assert with_spans(read_program(path)) == with_spans(first)


def test_a_change_in_any_file_counts(path: Path) -> None:
    read_program(path)
    (path.parent / "b.dl").write_text(".decl q2(x:number) q2(8).")
    assert read_program(path).facts[0].row == (8,)
    path.write_text(TEXT + "q2(9).")
    assert [f.row for f in read_program(path).facts] == [(8,), (9,)]
    (path.parent / "b.dl").unlink()
    with pytest.raises(PreskError, match="E9103"):
        read_program(path)


DAMAGES = ["", "{", "[]", '{"sources": [], "program": [[0],[0],[99, 1]]}', '{"sources": 1}', "\xff"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_ignored(path: Path, damage: str) -> None:
    first = read_program(path)
    for stored in (path.parent / "cache" / "presk").glob("*.json"):
        stored.write_text(damage, encoding="latin-1")
    assert read_program(path) == first


def test_a_folder_that_cannot_be_is_no_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path.parent / "file").write_text("")
    monkeypatch.setenv("PRESK_CACHE", str(path.parent / "file"))
    assert read_program(path) == read_program(path)


def test_programs_with_errors_are_not_kept(path: Path) -> None:
    path.write_text(".decl p(x:number) p(x) :- p(y).")
    for _ in range(2):
        with pytest.raises(PreskError, match="E9109"):
            read_program(path)
