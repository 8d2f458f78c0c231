"""Every code has a page, and every page's two programs show what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import copyfile

import pytest

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.diagnostics.catalogue import CATALOGUE, CodePage
from presk_rel.session import Session
from presk_rel.syntax.parser import parse

Check = Callable[[str], list[Diagnostic]]


def check_page(page: CodePage, check: Check) -> None:
    """`check` gives the diagnostics of a whole program; the failing one has this code and, but for it, no error."""
    assert [d.code for d in check(page.failing) if d.severity == "error" or d.code == page.code] == [page.code]
    assert [d.code for d in check(page.fixed) if d.severity == "error" or d.code == page.code] == []


def of_syntax(text: str) -> list[Diagnostic]:
    return parse(text, "page.psk").diagnostics


def of_pipeline(text: str, path: Path) -> list[Diagnostic]:
    """What `presk check` says, and after it the differentiation that `presk run` begins with. `mlp.psk` and
    `models/mlp.psk` can be imported."""
    (path.parent / "models").mkdir(exist_ok=True)
    for other in ("mlp.psk", "models/mlp.psk"):
        copyfile(Path(__file__).parents[2] / "examples" / "mlp.psk", path.parent / other)
    path.write_text(text, encoding="utf-8")
    session = Session(str(path), engine="embedded")
    found = session.check()
    if not any(d.severity == "error" for d in found):
        with suppress(PreskError):
            session.differentiated  # noqa: B018
    return session.diagnostics.items


@pytest.mark.parametrize("code", [c for c, page in CATALOGUE.items() if not page.situation])
def test_every_page_shows_its_code(code: str, tmp_path: Path) -> None:
    path = tmp_path / ("page.core" if code.startswith("E010") or code == "E6001" else "page.psk")
    check_page(CATALOGUE[code], lambda text: of_pipeline(text, path))


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
