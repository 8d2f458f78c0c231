"""The proof of every function of every example is accepted, stacks folded and unrolled."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDERS = (".", "field", "reference", "tour", "tutorial")
SMALL = {"train_minigpt": {"m.V": 8, "m.D": 4, "m.H": 2, "m.L": 2}, "minigpt": {"V": 8, "D": 4, "H": 2, "L": 2}}
SAMPLE = ("autoencoder", "gru", "schedule_linear", "deep", "two_experts")


def has_stack(path: Path) -> bool:
    return "stack{" in path.read_text(encoding="utf-8") or path.stem == "train_minigpt"


CASES = [
    (path, unroll)
    for folder in FOLDERS
    for path in sorted((EXAMPLES / folder).glob("*.psk"))
    for unroll in (False, True)
    if has_stack(path) or not unroll
]


def case(path: Path, unroll: bool):
    marks = () if path.stem in SAMPLE else pytest.mark.slow
    return pytest.param(path, unroll, id=f"{path.stem}{'-unrolled' * unroll}", marks=marks)


@pytest.mark.parametrize(("path", "unroll"), [case(*c) for c in CASES])
def test_every_function_is_verified(path: Path, unroll: bool):
    session = Session(str(path), SMALL.get(path.stem, {}), unroll_stack=unroll)
    assert session.core.functions
    for name in session.core.functions:
        assert session.verified(name, {}).reasons == (), name
