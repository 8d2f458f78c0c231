"""Extraction and the partition into kernels are as good as proven optimal, for the gradients of all examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = [p for folder in (".", "field", "reference", "tour") for p in sorted((EXAMPLES / folder).glob("*.psk"))]
SMALL = {"train_minigpt": {"m.V": 64, "m.D": 32, "m.H": 2, "m.L": 2}, "minigpt": {"V": 64, "D": 32, "H": 2, "L": 2}}
SAMPLE = ("mlp", "physics_informed", "huber", "flow", "hessian_vector")
MOST = 0.01


def case(path: Path):
    return pytest.param(path, id=path.stem, marks=() if path.stem in SAMPLE else pytest.mark.slow)


@pytest.mark.parametrize("path", [case(p) for p in FILES])
def test_the_gap_is_small(path: Path):
    session = Session(str(path), SMALL.get(path.stem, {}))
    names = [n for n in session.core.functions if n.endswith("grad") or n in ("loss", "along")]
    for name in names:
        for dims in ({}, dict.fromkeys(session.core.functions[name].dims, 64)):
            assert session.optimized(name, dims).report.gap <= MOST
            assert session.fused(name, dims).gap <= MOST


@pytest.mark.parametrize("dims", [{}, {"B": 8, "T": 1024}], ids=["any-size", "B=8-T=1024"])
def test_the_gradient_of_the_model_at_full_size_is_extracted_to_the_end(dims: dict[str, int]):
    session = Session(str(EXAMPLES / "train_minigpt.psk"))
    report = session.optimized("loss_grad", dims).report
    assert (report.gap, report.cuts) == (0.0, ())
