"""Every program of `examples/field` tells its story, checks clean, and runs: optimized too, with the same digits."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.exec.exact.run import Options
from presk_rel.exec.render import to_json
from presk_rel.session import Request, Session
from tests.acceptance.examples import EXAMPLES, Example

FIELD = Path(__file__).parents[2] / "examples" / "field"
FILES = sorted(FIELD.glob("*.psk"))
DEFERRED = {"W0002"}
"""There is no data file in the repository."""


def result(example: Example, *, optimize: bool) -> object:
    session = Session(str(FIELD / f"{example.file}.psk"))
    request = Request(example.args, example.dims, 0, optimize)
    return to_json(session.run_exact(example.entry, request, Options(bits=48)).value)


def test_every_program_is_run() -> None:
    assert {e.file for e in EXAMPLES} == {f.stem for f in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_program_begins_with_its_story_and_checks_clean(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith(f"-- {file.name}: ")
    assert {d.code for d in Session(str(file)).check()} <= DEFERRED


def _marked(example: Example) -> object:
    return pytest.param(example, id=str(example), marks=pytest.mark.slow if example.slow else ())


@pytest.mark.parametrize("example", [_marked(e) for e in EXAMPLES])
def test_optimization_changes_no_proven_digit(example: Example) -> None:
    assert result(example, optimize=True) == result(example, optimize=False)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.slow], ids=str)
def test_a_program_runs(example: Example) -> None:
    assert result(example, optimize=False)
