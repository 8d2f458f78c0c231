"""The pages of elaboration and typing: each failing program gives its code and nothing else, each fixed one nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from presk_rel.diagnostics.catalogue import CATALOGUE, elaboration, typing
from presk_rel.diagnostics.catalogue.page import CodePage
from tests.types.programs import check

PAGES = [*elaboration.PAGES, *typing.PAGES]
FOLDERS = [Path(__file__).parents[2] / "presk_rel" / name for name in ("elab", "types")]


@pytest.mark.parametrize("page", [p for p in PAGES if not p.situation], ids=lambda p: p.code)
def test_a_page_shows_its_code(page: CodePage) -> None:
    failing = check(page.failing)
    assert set(failing.codes) == {page.code}, failing.said()
    assert {d.severity for d in failing.diagnostics} == {page.severity}
    assert not check(page.fixed).diagnostics, check(page.fixed).said()


def test_every_error_of_elaboration_and_typing_has_a_page() -> None:
    said = {
        c
        for folder in FOLDERS
        for f in folder.rglob("*.py")
        for c in re.findall(r'"(E\d{4}|W0\d{3})"', f.read_text("utf-8"))
    }
    assert said <= set(CATALOGUE), sorted(said - set(CATALOGUE))
    assert {p.code for p in PAGES} <= said, sorted({p.code for p in PAGES} - said)
