"""Every code that presk emits has a page, and every page a code that is emitted."""

from __future__ import annotations

import re
from pathlib import Path

import presk_rel
from presk_rel.diagnostics.catalogue import CATALOGUE

SOURCE = Path(presk_rel.__file__).parent


def test_codes_and_pages_are_the_same() -> None:
    files = [p for p in SOURCE.rglob("*.py") if "catalogue" not in p.parts]
    emitted = {code for p in files for code in re.findall(r'"([EW]\d{4})"', p.read_text(encoding="utf-8"))}
    assert emitted == set(CATALOGUE)
