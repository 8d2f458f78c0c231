"""How many kernels a gradient takes, as torch dispatches them, views excluded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

import presk_rel
from presk_rel.exec.torch.dispatch import dispatched

EXAMPLES = Path(__file__).parents[2] / "examples"
TINY = {"m.V": 64, "m.D": 32, "m.H": 2, "m.L": 2}


@pytest.mark.parametrize(
    ("file", "entry", "consts", "dims", "mode", "most"),
    [
        ("mlp.psk", "mse_grad", {}, {"B": 2, "D": 4}, "inference", 10),
        ("train_minigpt.psk", "loss_grad", TINY, {"B": 2, "T": 16}, "inference", 96),
        pytest.param("gpt.psk", "loss_grad", {}, {"B": 2, "T": 16}, "training", 260, marks=pytest.mark.slow),
    ],
)
def test_a_gradient_takes_at_most(
    file: str,
    entry: str,
    consts: dict[str, int],
    dims: dict[str, int],
    mode: Literal["inference", "training"],
    most: int,
) -> None:
    program = presk_rel.load(str(EXAMPLES / file), consts=consts)
    handle = program.compile(entry, dims, mode=mode, unroll=True, tier="emit")
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    handle()
    seen = dispatched(handle.launch)
    assert len(seen) == handle.kernels <= most, seen
