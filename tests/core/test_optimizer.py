"""The optimizer block as Core: its text, and AdamW step by step against the formulas of the specification."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from presk_rel.core.lower import lower
from presk_rel.core.printer import print_function, print_program
from presk_rel.core.reader import load
from presk_rel.core.verify import problems
from presk_rel.diagnostics import Diagnostics
from presk_rel.types.tree import OptimizerSpec
from tests.core.evaluate import evaluate, sample
from tests.core.test_inline import same
from tests.core.typed import LINEAR, MLP, D, params, program
from tests.golden import check

TREE = params("MLP", D, D)
PLAIN = OptimizerSpec("adamw", TREE, Fraction(3, 10_000))
FULL = OptimizerSpec(
    "adamw",
    TREE,
    lr=Fraction(1, 10),
    betas=(Fraction(9, 10), Fraction(95, 100)),
    weight_decay=Fraction(1, 100),
    grad_clip=Fraction(1),
    schedule="cosine",
    warmup=2,
)
SPECS = [
    PLAIN,
    FULL,
    replace(FULL, schedule="linear", warmup=3),
    replace(FULL, schedule="linear", warmup=0),
    replace(FULL, schedule="cosine", warmup=0, grad_clip=Fraction(1000), betas=(Fraction(0), Fraction(1, 2))),
]


def lowered(*specs: OptimizerSpec) -> Program:
    typed = replace(program(modules={"Linear": LINEAR, "MLP": MLP}), optimizers=specs)
    out = lower(typed)
    assert problems(out) == []
    assert load(print_program(out), "t.core", Diagnostics()) == out
    return out


@pytest.mark.parametrize("name", ["constant", "linear", "cosine"])
def test_golden(name: str, update_golden: bool) -> None:
    spec = PLAIN if name == "constant" else replace(FULL, schedule=name)  # type: ignore[arg-type]
    out = lowered(spec)
    functions = [out.functions[f"adamw.{part}"] for part in ("init", "lr", "step")]
    text = "\n\n".join(print_function(f, out) for f in functions)
    check(Path(__file__).parent / "golden" / f"adamw_{name}.txt", {"core": text}, update_golden)


def test_blocks_of_one_name_do_not_hide_each_other() -> None:
    out = lowered(PLAIN, FULL)
    assert [f for f in out.functions if f.endswith(".step")] == ["adamw.step", "adamw'.step"]


# ------------------------------------------------------------------------------------- AdamW as the specification says


def rate(spec: OptimizerSpec, t: int, total: int) -> float:
    w, lr = spec.warmup, float(spec.lr)
    if spec.schedule == "constant":
        return lr
    if t <= w:
        return lr * t / w
    if spec.schedule == "linear":
        return lr * (total - t) / (total - w)
    return lr * 0.5 * (1 + math.cos(math.pi * (t - w) / (total - w)))


@dataclass
class AdamW:
    """On flat lists of arrays."""

    spec: OptimizerSpec
    m: list[Any]
    v: list[Any]

    def step(self, θ: list[Any], g: list[Any], t: int, total: int) -> list[Any]:
        s = self.spec
        β1, β2 = map(float, s.betas)
        if s.grad_clip is not None:
            norm = math.sqrt(sum(float(np.sum(x**2)) for x in g))
            g = [x * min(1.0, float(s.grad_clip) / (norm + 1e-6)) for x in g]
        self.m = [β1 * m + (1 - β1) * x for m, x in zip(self.m, g, strict=True)]
        self.v = [β2 * v + (1 - β2) * x**2 for v, x in zip(self.v, g, strict=True)]
        out: list[Any] = []
        for p, m, v in zip(θ, self.m, self.v, strict=True):
            change = m / (1 - β1**t) / (np.sqrt(v / (1 - β2**t)) + float(s.eps)) + float(s.weight_decay) * p
            out.append(p - rate(s, t, total) * change)
        return out


def flat(tree: Any) -> list[Any]:
    return [leaf for v in tree.values() for leaf in flat(v)] if isinstance(tree, dict) else [tree]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.schedule}{s.warmup}")
@pytest.mark.parametrize("inlined", [False, True])
def test_steps(spec: OptimizerSpec, inlined: bool) -> None:
    core, dims, total = lowered(spec), {"D": 2}, 5
    rng = np.random.default_rng(1)
    θ = sample(core, TREE, dims, rng)
    state = evaluate(core, "adamw.init", (θ,), dims)
    own = AdamW(spec, flat(state[0]), flat(state[1]))
    expected = flat(θ)
    step = inline_entry(core, "adamw.step") if inlined else core
    assert problems(step) == []
    for t in range(1, total + 1):
        g = sample(core, TREE, dims, rng)
        θ, state = evaluate(step, "adamw.step", (θ, state, g, t, total), dims)
        expected = own.step(expected, flat(g), t, total)
        assert all(np.allclose(x, y, rtol=1e-12, atol=1e-14) for x, y in zip(flat(θ), expected, strict=True))


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.schedule}{s.warmup}")
def test_rates(spec: OptimizerSpec) -> None:
    core = lowered(spec)
    for t in range(1, 11):
        assert math.isclose(evaluate(core, "adamw.lr", (t, 10), {}), rate(spec, t, 10), rel_tol=1e-12, abs_tol=1e-17)


def test_a_run_no_longer_than_its_warmup_has_rates() -> None:
    core = lowered(replace(FULL, schedule="linear", warmup=4))
    assert [float(evaluate(core, "adamw.lr", (t, 4), {})) for t in (1, 2, 3, 4)] == pytest.approx(
        [0.025, 0.05, 0.075, 0]
    )


def test_init_is_zero() -> None:
    core = lowered(FULL)
    θ = sample(core, TREE, {"D": 2}, np.random.default_rng(0))
    state = evaluate(core, "adamw.init", (θ,), {"D": 2})
    assert same(state, evaluate(inline_entry(core, "adamw.init"), "adamw.init", (θ,), {"D": 2}))
    assert not any(np.any(x) for half in state for x in flat(half))
