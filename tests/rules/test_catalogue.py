"""The catalogue's examples of the rule language: the failing one gives exactly its code, the fixed one runs."""

from __future__ import annotations

import pytest

import presk_rel.rules.embedded.solve as embedded_solve
from presk_rel.diagnostics import PreskError
from presk_rel.diagnostics.catalogue.page import CodePage
from presk_rel.diagnostics.catalogue.rules import PAGES
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.engine import solve

RULE_PROGRAMS = [page for page in PAGES if ".decl" in page.fixed and page.fixed.startswith(".")]


def test_the_examples_are_those_of_the_language_and_of_division() -> None:
    assert [page.code for page in RULE_PROGRAMS] == [f"E91{n:02}" for n in range(1, 16) if n != 4] + ["E9126", "E9130"]


@pytest.mark.parametrize("page", RULE_PROGRAMS, ids=lambda page: page.code)
def test_examples(page: CodePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_solve, "ROW_LIMIT", 1_000)
    with pytest.raises(PreskError) as caught:
        solve(parse_program(page.failing), {}, "embedded")
    assert {d.code for d in caught.value.diagnostics} == {page.code}
    solve(parse_program(page.fixed), {}, "embedded")


def test_a_rule_that_adds_a_row_each_round_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before it has added ten million rows."""
    monkeypatch.setattr(embedded_solve, "ROUND_LIMIT", 1_000)
    program = parse_program(".decl p(x:number)\np(0).\np(x + 1) :- p(x).", "endless.dl")
    with pytest.raises(PreskError) as caught:
        solve(program, {}, "embedded")
    assert [d.code for d in caught.value.diagnostics] == ["E9126"]
    assert "rounds" in caught.value.diagnostics[0].message
