"""Random programs, exported, at f64 against their proven values: every kind of expression, in every place, with
torch's own derivatives for `grad`, `vjp` and `jvp`."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.session import Session
from tests.acceptance.gradients import DIMS
from tests.acceptance.programs import random_program

from .test_conformance import _doubles, conforms  # noqa: F401  a fixture

ENTRIES = ("f", "loss", "loss_grad", "pushed", "pulled")
SECOND = ("hvp", "hvp2")


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 312))])
def test_random_program(seed: int, tmp_path: Path) -> None:
    smooth = bool(seed % 2)
    path = tmp_path / "program.psk"
    path.write_text(random_program(seed, 4 + seed % 9, smooth=smooth).text, encoding="utf-8")
    entries = ENTRIES + (SECOND if smooth else ())
    assert {*entries} <= Session(str(path)).exported().context.functions.keys()
    conforms(path, tmp_path, entries, {}, lambda _: (DIMS, {}))
