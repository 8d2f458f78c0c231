"""The pages of E6001 and E6002 in the catalogue: the failing program gives exactly that code, the fixed one none."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.diagnostics.catalogue import CATALOGUE
from presk_rel.session import Session

CODES = ("E6001", "E6002")


def session(text: str, folder: Path) -> Session:
    path = folder / ("page.core" if "fn main(x : ℝ[]) -> ℝ[] {" in text else "page.psk")
    path.write_text(text)
    return Session(str(path))


@pytest.mark.parametrize("code", CODES)
def test_the_failing_program_gives_the_code_at_a_place_in_it(code: str, tmp_path: Path):
    with pytest.raises(PreskError) as refused:
        _ = session(CATALOGUE[code].failing, tmp_path).differentiated
    (said,) = refused.value.diagnostics
    assert said.code == code
    assert said.span is not None and said.span.file.startswith(str(tmp_path))


@pytest.mark.parametrize("code", CODES)
def test_the_fixed_program_is_differentiated(code: str, tmp_path: Path):
    done = session(CATALOGUE[code].fixed, tmp_path).differentiated
    assert any(name.endswith(".grad") for name in done.functions)
