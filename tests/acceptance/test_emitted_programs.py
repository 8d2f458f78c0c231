"""Generated code of random programs against their proven gradients: at f64 to 1e-12 and at f32 to 2e-6 of the largest
entry, on the same inputs, which f32 holds too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from presk_rel.core.expand import expanded
from presk_rel.core.ir import Program
from presk_rel.exec import inputs
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.untyped import flint_context
from presk_rel.exec.torch.run import Dtype, compile_entry, run_torch
from presk_rel.exec.values import Leaf, Tensor, Value, map_leaves
from presk_rel.session import Session
from tests.acceptance.gradients import DIMS, as_torch, entries, parts
from tests.acceptance.programs import SourceProgram, random_program

BOUNDS: dict[Dtype, float] = {"f64": 1e-12, "f32": 2e-6}
ENTRY = "loss_grad"
COUNT, OPTIMIZED = 320, 40


def seeds(count: int, always: int) -> Iterator[Any]:
    yield from range(always)
    yield from (pytest.param(s, marks=pytest.mark.slow) for s in range(always, count))


def single(leaf: Leaf) -> Value:
    """The nearest single-precision numbers."""
    if not isinstance(leaf, Tensor):
        return leaf
    return Tensor(leaf.axes, np.asarray(leaf.data, dtype=np.float32).astype(np.float64))


def far(program: Program, seed: int, source: SourceProgram) -> dict[str, float]:
    """The distance of each dtype from the proven gradient over what is allowed. Rounding alone may lose more of an
    ill-conditioned gradient: then eight times what torch loses of the independent reading of the program is allowed."""
    bound, drawn = inputs.prepare(program, ENTRY, {}, DIMS, seed)
    values = tuple(map_leaves(single, v) for v in drawn)
    args = {p.name: v for p, v in zip(bound.fn.params, values, strict=True)}
    with flint_context.workprec(256):
        kernel = Balls()
        proven = Interpreter(expanded(program), kernel).run(ENTRY, inject(kernel, values), bound.env.dims)
        exact = np.array([float(x) for x in entries(proven)])
    size = float(np.max(np.abs(exact))) or 1.0
    found: dict[str, float] = {}
    for dtype, allowed in BOUNDS.items():
        compiled = compile_entry(program, ENTRY, bound.env, dtype)
        ours = np.array(entries(run_torch(compiled, args)), dtype=float)
        apart = float(np.max(np.abs(ours - exact))) / size
        if apart > allowed:
            theirs = float(np.max(np.abs(np.array(in_torch(source, args, compiled.dtype)) - exact))) / size
            allowed = max(allowed, 8 * theirs)
        found[dtype] = apart / allowed
    return found


def in_torch(source: SourceProgram, args: dict[str, Value], dtype: torch.dtype) -> list[float]:
    w, x, ids = (as_torch(args[n]) for n in ("w", "x", "ids"))
    torch.set_default_dtype(dtype)
    try:
        return parts(torch.func.grad(lambda w: source.loss(w, x.to(dtype), ids))(cast_tree(w, dtype)))
    finally:
        torch.set_default_dtype(torch.float32)


def cast_tree(value: Any, dtype: torch.dtype) -> Any:
    match value:
        case dict():
            return {k: cast_tree(v, dtype) for k, v in value.items()}
        case tuple():
            return tuple(cast_tree(v, dtype) for v in value)
        case _:
            return value.to(dtype)


def made(seed: int, folder: Path, *, size: int) -> tuple[Session, SourceProgram]:
    source = random_program(seed, size, smooth=bool(seed % 2))
    path = folder / "program.psk"
    path.write_text(source.text, encoding="utf-8")
    return Session(str(path)), source


@pytest.mark.parametrize("seed", [*seeds(COUNT, 16)])
def test_a_program_as_written(seed: int, tmp_path: Path) -> None:
    session, source = made(seed, tmp_path, size=4 + seed % 9)
    found = far(session.flat(ENTRY), seed, source)
    assert max(found.values()) <= 1, found


@pytest.mark.parametrize("seed", [*seeds(OPTIMIZED, 2)])
def test_an_optimized_program(seed: int, tmp_path: Path) -> None:
    session, source = made(seed, tmp_path, size=3 + seed % 3)
    found = far(session.optimized(ENTRY, DIMS).program, seed, source)
    assert max(found.values()) <= 1, found
