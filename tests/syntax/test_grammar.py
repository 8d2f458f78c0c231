"""The grammar file, the table made of it, and the cache."""

from __future__ import annotations

import logging
from importlib.resources import files
from pathlib import Path

import lark
import pytest

from presk_rel.syntax import build, lalr
from presk_rel.syntax.lark_table import compile_grammar
from presk_rel.syntax.parser import parse_expr
from presk_rel.syntax.token import CONTEXTUAL, END, NAME, NEWLINE, RESERVED, SYNONYMS, TYPED, words

GRAMMAR = files("presk_rel.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")


def test_the_only_conflicts_are_how_far_a_lambda_reaches(caplog: pytest.LogCaptureFixture) -> None:
    """Taken out the two rules for `λ`, no conflict is left; they give only shift/reduce ones, which are shifted."""
    level = lark.logger.level
    try:
        lark.logger.setLevel(logging.DEBUG)
        with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
            compile_grammar("\n".join(line for line in GRAMMAR.splitlines() if '"λ"' not in line))
        assert [r.message for r in caplog.records if "conflict" in r.message] == []
    finally:
        lark.logger.setLevel(level)


def test_the_same_grammar_gives_the_same_table() -> None:
    assert compile_grammar(GRAMMAR) == compile_grammar(GRAMMAR)


def test_every_production_has_a_builder_and_every_builder_a_production() -> None:
    used = {p.build for p in lalr.table().productions} - {"", "list"}
    assert used == set(build.BUILDERS)
    assert used >= build.NESTS


def test_every_terminal_is_a_token_of_the_lexer() -> None:
    terminals = {kind for row in lalr.table().actions for kind in row}
    signs = words("( ) [ ] { } , : = . .. ... -> |> | ⊗ ∘ == <= >= < > + - * / % · ^")
    classes = {NAME, "NAT", "DECIMAL", "QUANTITY", "STRING", NEWLINE, TYPED, END}
    assert terminals == signs | classes | RESERVED | CONTEXTUAL
    assert set(SYNONYMS.values()) <= terminals


def test_the_cache_is_written_once_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRESK_CACHE", str(tmp_path))
    first = lalr.table.__wrapped__()
    [file] = (tmp_path / "presk").iterdir()
    monkeypatch.setattr(lalr, "_compile", lambda _grammar: pytest.fail("compiled again"))
    assert lalr.table.__wrapped__() == first
    assert [file] == list((tmp_path / "presk").iterdir())


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\xff\xfe", "cut", "changed"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | str) -> None:
    monkeypatch.setenv("PRESK_CACHE", str(tmp_path))
    first = lalr.table.__wrapped__()
    [file] = (tmp_path / "presk").iterdir()
    whole = file.read_bytes()
    damaged = damage if isinstance(damage, bytes) else whole[:-9] if damage == "cut" else whole.replace(b"let", b"lit")
    file.write_bytes(damaged)
    assert lalr.table.__wrapped__() == first
    assert file.read_bytes() == whole


def test_no_cache_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("PRESK_CACHE", str(blocked))
    assert lalr.table.__wrapped__() == lalr.table()


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "PRESK_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    assert lalr.table.__wrapped__() == lalr.table()
    assert parse_expr("1").diagnostics == []
