"""Every derivative that an example program takes, found in the program itself: `grad`, `vjp` and `jvp` of any function,
against central differences at 512 bits, and against torch's own differentiation of the forward pass at f64.

Small sizes stand in for the constants of the language models; derivatives do not depend on them.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from presk_rel.exec import inputs
from presk_rel.exec.torch.run import Dtype, at, compile_entry, to_torch
from presk_rel.exec.values import Leaf, Tensor, Value, leaves, map_leaves
from presk_rel.pipeline import Mode
from presk_rel.session import Request, Session
from tests.acceptance.gradients import CLOSE, STEP, Differentiated, ball, distance, dot, entries, precision

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "gpt.psk": {"V": 5, "D": 4, "H": 2, "L": 2},
    "train_minigpt.psk": {"m.V": 5, "m.D": 4, "m.H": 2, "m.L": 2},
}
"""Constants to run with instead."""
PATHS = [p for p in sorted(EXAMPLES.rglob("*.psk")) if p.parent.name != "diag" and p.name != "minigpt.psk"]
"""All but the model that `train_minigpt.psk` imports."""
FORWARD = {
    "03_attention.psk": """
fn attention(p : (Q, Q, Q)) -> Q =
  let (q, k, v) = p
  attend(q, k, v)
fn pulled(p : (Q, Q, Q), ct : Q) -> (Q, Q, Q) = vjp(attention)(p, ct)
"""
}
"""A derivative for those that take none."""
KINDS = ("grad", "pullback", "pushforward")


@pytest.fixture(params=PATHS, ids=lambda p: p.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path: Path = request.param
    if path.name not in FORWARD:
        return path
    longer = tmp_path / path.name
    longer.write_text(path.read_text("utf-8") + FORWARD[path.name], encoding="utf-8")
    return longer


def session(path: Path, mode: Mode = "inference") -> Session:
    return Session(str(path), SMALL.get(path.name, {}), mode=mode)


def derivatives(s: Session) -> list[tuple[str, str]]:
    """The functions that are differentiated, and how: those whose arguments can be drawn."""
    found = [(name.rpartition(".")[0], name.rpartition(".")[2]) for name in s.differentiated.functions]
    return [(f, kind) for f, kind in found if kind in KINDS and f in s.differentiated.functions]


def prepared(s: Session, entry: str) -> Differentiated:
    """The arguments of `entry`, and `direction%` for the last parameter of the function it is the derivative of."""
    program = s.differentiated
    of = program.functions[entry.rpartition(".")[0]]
    dims = {d: 2 + i % 2 for i, d in enumerate(sorted(program.functions[entry].dims))}
    bound, values = inputs.prepare(program, entry, {}, dims, 5)
    args = {p.name: v for p, v in zip(bound.fn.params, values, strict=True)}
    rng = Random(3)
    args["direction%"] = map_leaves(lambda leaf: _direction(leaf, rng), args[of.params[-1].name])
    return Differentiated(program, args, dims)


def _direction(leaf: Leaf, rng: Random) -> Value:
    if not isinstance(leaf, Tensor):
        return leaf
    data = np.array([rng.uniform(-1, 1) for _ in range(leaf.data.size)]).reshape(leaf.data.shape)
    return Tensor(leaf.axes, data)


def error(d: Differentiated, of: str, kind: str) -> Fraction:
    """The derivative along a direction against the central difference."""
    entry, params = f"{of}.{kind}", [p.name for p in d.program.functions[of].params]
    last, h = params[-1], Fraction(1, 2**STEP)
    others = [p.name for p in d.program.functions[entry].params if p.name not in params]
    along = others[0] if kind == "pushforward" else "direction%"
    with precision():
        high, low = (entries(d.run(of, **{last: d.moved(s, last, along)})) for s in (h, -h))
        slopes = [(x - y) / ball(2 * h) for x, y in zip(high, low, strict=True)]
        found = entries(d.run(entry))
        if kind == "pushforward":
            return max(distance(x, y, 1 + abs(y)) for x, y in zip(found, slopes, strict=True))
        weights = [ball(1)] if kind == "grad" else [ball(x) for x in entries(d.args[others[0]])]
        total, scale = dot(found, [ball(x) for x in entries(d.args[along])])
        return distance(total, dot(slopes, weights)[0], scale)


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_the_derivative_is_the_central_difference(path: Path, mode: Mode) -> None:
    if mode == "training" and "dropout" not in path.read_text("utf-8"):
        return
    s = session(path, mode)
    assert derivatives(s)
    for of, kind in derivatives(s):
        d = prepared(s, f"{of}.{kind}")
        assert error(d, of, kind) < CLOSE, of


def test_the_derivative_is_the_one_torch_finds(path: Path) -> None:
    """torch differentiates the forward pass as it is generated: nothing of `presk_rel.ad` is in it."""
    s = session(path)
    for of, kind in derivatives(s):
        if kind == "pushforward":
            continue
        d = prepared(s, f"{of}.{kind}")
        with precision():
            ours = np.array([float(x) for x in entries(d.run(f"{of}.{kind}"))])
        theirs = in_torch(s, of, d, kind)
        assert np.max(np.abs(ours - theirs)) <= 1e-10 * max(1.0, float(np.max(np.abs(theirs)))), of


def in_torch(s: Session, of: str, d: Differentiated, kind: str) -> Any:
    flat = s.flat(of)
    bound = inputs.bind(flat, of, {}, d.dims)
    compiled = compile_entry(flat, of, bound.env, "f64")
    last, ct = (d.program.functions[name].params[-1].name for name in (of, f"{of}.{kind}"))
    given = [to_torch(torch, compiled, at(d.args[i.parameter], i)) for i in compiled.emitted.inputs]
    moving = [given[k] for k, i in enumerate(compiled.emitted.inputs) if i.parameter == last]
    for tensor in moving:
        tensor.requires_grad_()
    outs = compiled.generated(tuple(given))
    weights = [to_torch(torch, compiled, leaf) for _, leaf in leaves(d.args[ct])] if kind == "pullback" else None
    found = torch.autograd.grad(outs, moving, weights, materialize_grads=True, allow_unused=True)
    return np.concatenate([g.flatten().numpy() for g in found])


def test_kept_residuals_change_no_bit_on_torch(path: Path) -> None:
    kept, computed = (Session(str(path), SMALL.get(path.name, {}), remat=r) for r in ("store", "recompute"))
    dtypes: tuple[Dtype, ...] = ("f64", "f32", "bf16")
    for of, kind in derivatives(kept):
        entry = f"{of}.{kind}"
        if kind == "pushforward" or entry not in computed.differentiated.functions:
            continue
        dims = {d: 2 + i % 2 for i, d in enumerate(sorted(kept.differentiated.functions[entry].dims))}
        for dtype in dtypes:
            one, other = (
                s.run_torch(entry, Request(dims=dims, optimize=False), dtype, "cpu") for s in (kept, computed)
            )
            assert bits(one.value) == bits(other.value), (entry, dtype)


def bits(value: Value) -> list[bytes]:
    return [leaf.data.tobytes() for _, leaf in leaves(value) if isinstance(leaf, Tensor)]
