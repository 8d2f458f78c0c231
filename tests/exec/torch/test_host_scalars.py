"""Scalars made of hyperparameters alone are computed by the host and are no kernels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from presk_rel import load
from presk_rel.core.prims import PRIMS
from presk_rel.exec.torch import support
from presk_rel.exec.torch.host_scalars import SCALARS
from presk_rel.exec.torch.ops import ROWS

EXAMPLES = Path(__file__).parents[3] / "examples"
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e300, -1e300, 1e-310, 800.0, math.inf, -math.inf, math.nan)
TORCH: dict[str, Any] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "neg": torch.neg,
    "max": torch.maximum,
    "min": torch.minimum,
    "relu": torch.relu,
    "abs": torch.abs,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
}


def test_every_one_is_a_primitive_that_torch_computes_too():
    assert set(TORCH) | {"pow"} == SCALARS == set(support._SCALARS)  # pyright: ignore[reportPrivateUsage]
    assert set(PRIMS) & set(ROWS) >= SCALARS


@pytest.mark.parametrize("op", sorted(TORCH))
def test_the_host_gives_what_torch_gives(op: str):
    for x in EDGES:
        for given in [(x,)] if PRIMS[op].arity == 1 else [(x, y) for y in EDGES]:
            expected = TORCH[op](*(torch.tensor(v, dtype=torch.float64) for v in given)).item()
            np.testing.assert_allclose(support.scalar(op, *given), expected, rtol=1e-15, err_msg=f"{op} {given}")


@pytest.mark.parametrize("exponent", [-3, -1, 0, 2, 5])
def test_powers_too(exponent: int):
    for x in EDGES:
        expected = torch.pow(torch.tensor(x, dtype=torch.float64), exponent).item()
        np.testing.assert_allclose(support.scalar("pow", x, exponent), expected, rtol=1e-14)


SCHEDULE = """fn rate(t : nat, total : nat) -> ℝ[] =
  let done = (t : ℝ) / (total : ℝ)
  max(0.1, cos(done * pi) + exp(-done))

fn scaled(t : nat, total : nat, x : ℝ[n: N]) -> ℝ[n: N] = rate(t, total) * x
"""


def test_a_schedule_is_no_kernel(tmp_path: Path):
    path = tmp_path / "schedule.psk"
    path.write_text(SCHEDULE.replace("pi", "3.14159"))
    program = load(path)
    handle = program.compile("scaled", dims={"N": 3}, dtype="f64")
    assert handle.kernels == 2, "the number goes to the device, and the product"
    x = torch.ones(3, dtype=torch.float64)
    for t in (0, 5, 10):
        done = t / 10
        expected = max(0.1, math.cos(done * 3.14159) + math.exp(-done))
        found = handle(t=t, total=10, x=x)
        assert torch.allclose(found, x * expected, rtol=1e-14)


def test_the_step_of_adamw_has_no_kernel_for_its_schedule():
    consts = {"m.V": 11, "m.D": 8, "m.H": 2, "m.L": 2}
    source = load(EXAMPLES / "train_minigpt.psk", consts=consts).compile("adamw.step", dims={"T": 4}).source
    assert "torch.cos" not in source and "support.scalar('cos'" in source
