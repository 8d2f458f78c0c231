"""The pages of the codes that the reader of Core text emits show what they say."""

from __future__ import annotations

import pytest

from presk_rel.core.reader import load
from presk_rel.diagnostics import Diagnostic, Diagnostics
from presk_rel.diagnostics.catalogue import CATALOGUE
from tests.diagnostics.test_catalogue import check_page


def of_core(text: str) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    load(text, "page.core", diagnostics)
    return diagnostics.items


@pytest.mark.parametrize("code", [c for c in CATALOGUE if c.startswith("E010")])
def test_programs_of_core_text(code: str) -> None:
    check_page(CATALOGUE[code], of_core)
