"""Fifty steps of `adamw.step` against `torch.optim.AdamW`, `clip_grad_norm_` and `LambdaLR`, at f64 and over balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from presk_rel.exec import inputs
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.untyped import flint_context
from presk_rel.exec.torch.run import compile_entry, run_torch
from presk_rel.exec.values import HyperValue, Tensor, TreeValue, TupleValue, Value, leaves
from presk_rel.session import Session

STEPS, WARMUP, LR = 50, 7, 3e-2
SOURCE = """\
dim B

module Layer {{
  param w : ℝ[3, 2]  init = normal(std = 0.5)
  param b : ℝ[2]     init = zeros
}}
module Net {{
  use layers : stack{{2}}(Layer)
  param s    : ℝ[]  init = ones
}}

fn loss(θ : params Net, x : ℝ[batch: B, model: 3]) -> ℝ[] = mean(x) * θ.s

optimizer adamw {{
  lr           : f64 = 3e-2
  betas        : (f64, f64) = (0.9, 0.95)
  weight_decay : f64 = 0.1
{clip}  schedule     : {schedule}
}}

training run {{
  model     = Net
  objective = loss
  optimizer = adamw
  data      = stream "x.psk.d" |> batch(B = 2)
}}
"""


def factor(schedule: str, t: int) -> float:
    """What the learning rate is multiplied by at step t = 1, 2, …"""
    if schedule == "constant":
        return 1.0
    if t <= WARMUP:
        return t / WARMUP
    rest = (t - WARMUP) / (STEPS - WARMUP)
    return 1 - rest if schedule == "linear" else 0.5 * (1 + math.cos(math.pi * rest))


def gradients() -> list[list[Any]]:
    """Of every leaf and step; some larger than the norm they are clipped to, some smaller."""
    rng = np.random.default_rng(3)
    return [[rng.normal(size=shape) * 3 ** math.sin(t) / 3 for shape in ((2, 3, 2), (2, 2), ())] for t in range(STEPS)]


def in_torch(start: list[Any], schedule: str, clip: float | None) -> list[Any]:
    params = [torch.nn.Parameter(torch.tensor(p, dtype=torch.float64)) for p in start]
    optimizer = torch.optim.AdamW(params, lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: factor(schedule, k + 1))
    for gradient in gradients():
        for p, g in zip(params, gradient, strict=True):
            p.grad = torch.tensor(g, dtype=torch.float64)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(params, clip)
        optimizer.step()
        rates.step()
    return [p.detach().numpy() for p in params]


def tree(values: list[Any]) -> Value:
    w, b, s = (Tensor(tuple((None, n) for n in np.shape(v)), np.asarray(v)) for v in values)
    return TreeValue({"layers": TreeValue({"w": w, "b": b}), "s": s})


Step = Callable[[dict[str, Value]], Value]


def walk(session: Session, step: Step, ready: Callable[[Value], Value]) -> tuple[list[Any], list[Any]]:
    """The parameters at the start and after all steps, as arrays of floats."""
    bound, (θ,) = inputs.prepare(session.differentiated, "adamw.init", {}, {}, 0)
    start, moments = arrays(θ), tree([np.zeros(v.shape) for v in arrays(θ)])
    assert [p.name for p in bound.fn.params] == ["θ"]
    θ, s = ready(θ), ready(TupleValue((moments, moments)))
    for t, gradient in enumerate(gradients(), start=1):
        numbers = {"t": HyperValue("nat", Fraction(t)), "total": HyperValue("nat", Fraction(STEPS))}
        result = step({"θ": θ, "s": s, "g": ready(tree(gradient)), **numbers})
        assert isinstance(result, TupleValue)
        θ, s = result.items
    return start, arrays(θ)


def arrays(value: Value) -> list[Any]:
    return [np.array(leaf.data, dtype=float) for _, leaf in leaves(value) if isinstance(leaf, Tensor)]


def over_balls(session: Session) -> tuple[list[Any], list[Any]]:
    kernel = Balls()
    interpreter = Interpreter(session.differentiated, kernel)
    names = [p.name for p in session.entry("adamw.step").params]
    with flint_context.workprec(256):
        return walk(
            session,
            lambda args: interpreter.run("adamw.step", tuple(args[n] for n in names), {}),
            lambda v: inject(kernel, (v,))[0],
        )


def on_torch(session: Session, optimize: bool) -> tuple[list[Any], list[Any]]:
    flat = session.optimized("adamw.step").program if optimize else session.flat("adamw.step")
    bound = inputs.bind(flat, "adamw.step", {"t": Fraction(1), "total": Fraction(STEPS)}, {})
    compiled = compile_entry(flat, "adamw.step", bound.env, "f64")
    return walk(session, lambda args: run_torch(compiled, args), lambda v: v)


WAYS: dict[str, Callable[[Session], tuple[list[Any], list[Any]]]] = {
    "exact": over_balls,
    "torch": lambda session: on_torch(session, False),
    "optimized": lambda session: on_torch(session, True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_fifty_steps_are_those_of_torch(schedule: str, clip: float | None, way: str, tmp_path: Path) -> None:
    path = tmp_path / "train.psk"
    call = "constant()" if schedule == "constant" else f"{schedule}(warmup = {WARMUP})"
    field = "" if clip is None else f"  grad_clip    : f64 = {clip}\n"
    path.write_text(SOURCE.format(schedule=call, clip=field), encoding="utf-8")
    start, ours = WAYS[way](Session(str(path)))
    theirs = in_torch(start, schedule, clip)
    assert max(float(np.max(np.abs(a - b))) for a, b in zip(ours, theirs, strict=True)) < 1e-10
    assert min(float(np.max(np.abs(a - b))) for a, b in zip(start, theirs, strict=True)) > 1e-2
