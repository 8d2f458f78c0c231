"""Every code has a page, and every page's two programs show what it says."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from presk_rel.diagnostics import Diagnostic
from presk_rel.diagnostics.catalogue import CATALOGUE, CodePage
from presk_rel.syntax.parser import parse

Check = Callable[[str], list[Diagnostic]]


def check_page(page: CodePage, check: Check) -> None:
    """`check` gives the diagnostics of a whole program; the failing one has this code and, but for it, no error."""
    assert [d.code for d in check(page.failing) if d.severity == "error" or d.code == page.code] == [page.code]
    assert [d.code for d in check(page.fixed) if d.severity == "error" or d.code == page.code] == []


def of_syntax(text: str) -> list[Diagnostic]:
    return parse(text, "page.psk").diagnostics


@pytest.mark.parametrize("code", [c for c, page in CATALOGUE.items() if c.startswith("E00") and not page.situation])
def test_programs_of_syntax_codes(code: str) -> None:
    check_page(CATALOGUE[code], of_syntax)


@pytest.mark.parametrize("code", CATALOGUE)
def test_pages_are_whole(code: str) -> None:
    page = CATALOGUE[code]
    assert page.code == code and re.fullmatch(r"[EW]\d{4}", code)
    assert page.severity == ("warning" if code.startswith("W") else "error")
    assert page.title and not page.title.endswith(".")
    assert page.meaning.strip().endswith((".", "`"))
    assert page.failing.strip() and page.fixed.strip() and page.failing != page.fixed


def test_codes_are_in_order() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)
