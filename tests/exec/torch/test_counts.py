"""The kernels of generated code: as many as announced before it runs, and a row for every call that it may have."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

import presk_rel.exec.torch
from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import Hyper
from presk_rel.exec.inputs import prepare
from presk_rel.exec.torch.bound import bound
from presk_rel.exec.torch.calls import CALLS, DRAWS, FREE, VIEWS
from presk_rel.exec.torch.dispatch import dispatched
from presk_rel.exec.torch.emit import taken
from presk_rel.exec.torch.layouts import Array, expanded, fresh, pointwise, viewed
from presk_rel.exec.torch.precision import types_of
from presk_rel.exec.torch.run import DTYPES, Dtype, at, compile_entry, to_torch
from presk_rel.exec.torch.trace import counted
from presk_rel.session import Session
from tests.ad.random_programs import DIMS, random_program

from .test_random_programs import with_gradient

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}
CONSTS = {"gpt": SMALL, "minigpt": SMALL, "train_minigpt": {f"m.{k}": n for k, n in SMALL.items()}}
SLOW = {"autoencoder", "minigpt", "mlp_mixer", "residual_tower"}
FILES = sorted(p for folder in ("", "field", "tour") for p in (EXAMPLES / folder).glob("*.psk"))


def counts(program: Program, entry: str, dims: dict[str, int], dtype: Dtype, *, unroll: bool) -> tuple[int, list[str]]:
    """The kernels announced for the plan, and those dispatched; those of the file as it stands agree as well."""
    given = {p.name: np.asarray(3) for p in program.functions[entry].params if isinstance(p.type, Hyper)}
    drawn, values = prepare(program, entry, given, dims, 0)
    compiled = compile_entry(program, entry, drawn.env, dtype, unroll=unroll)
    args = dict(zip((p.name for p in drawn.fn.params), values, strict=True))
    inputs = tuple(to_torch(torch, compiled, at(args[i.parameter], i)) for i in compiled.emitted.inputs)
    assert compiled.emitted.plan is not None
    read = [taken(i.operand, DTYPES[dtype]) for i in compiled.emitted.inputs]
    inner = types_of(DTYPES[dtype], "cpu").inner
    assert counted(compiled.emitted.source, inner, read) == len(dispatched(lambda: compiled.generated(inputs)))
    ready = bound(compiled.emitted, compiled.parts.namespace, inputs)
    seen = dispatched(ready.launch)
    same(compiled.generated(inputs), ready.run(), {"f32": 1e-4, "f64": 1e-11, "bf16": 1e-2}[dtype])
    return compiled.emitted.kernels, seen


def same(expected: tuple[Any, ...], found: tuple[Any, ...], far: float) -> None:
    for a, b in zip(expected, found, strict=True):
        if isinstance(a, torch.Tensor):
            assert a.dtype == b.dtype
            assert torch.allclose(a.double(), b.double(), rtol=far, atol=far, equal_nan=True)


def entries(session: Session) -> Iterator[tuple[str, dict[str, int]]]:
    for name, function in session.core.functions.items():
        if ".lambda" not in name:
            yield name, dict.fromkeys(function.dims, 2)


def _marked(path: Path) -> Any:
    return pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])


@pytest.mark.parametrize("path", [_marked(p) for p in FILES])
def test_examples(path: Path):
    session = Session(str(path), CONSTS.get(path.stem, {}), mode="training")
    for k, (name, dims) in enumerate(entries(session)):
        try:
            found = [counts(session.flat(name), name, dims, d, unroll=u) for d, u in _ways(k)]
        except PreskError as error:
            assert error.diagnostics[0].code in ("E7003", "E7004"), error.diagnostics[0]
            continue
        for announced, seen in found:
            assert announced == len(seen), (name, seen)


def _ways(k: int) -> list[tuple[Dtype, bool]]:
    return [("f32", bool(k % 2)), ("f64", not k % 2), ("bf16", bool(k % 4 < 2))]


@pytest.mark.parametrize("entry", ["loss", "loss_grad"])
def test_optimized(entry: str):
    session = Session(str(EXAMPLES / "train_minigpt.psk"), CONSTS["train_minigpt"])
    program = session.optimized(entry, {"B": 2, "T": 3}).program
    for unroll in (False, True):
        for dtype in ("f32", "f64", "bf16"):
            announced, seen = counts(program, entry, {"B": 2, "T": 3}, dtype, unroll=unroll)
            assert announced == len(seen)


@pytest.mark.parametrize("chunk", range(4))
def test_random_programs(chunk: int):
    ran = 0
    for seed in range(1000 + chunk * 16, 1016 + chunk * 16):
        found = with_gradient(random_program(Random(seed)))
        for entry in ("loss", "loss.gradient"):
            if entry not in found.functions:
                continue
            flat = inline_entry(found, entry)
            try:
                announced, seen = counts(flat, entry, DIMS, "f32" if seed % 4 < 2 else "f64", unroll=bool(seed % 2))
            except PreskError as error:
                assert error.diagnostics[0].code in ("E7003", "E7004"), error.diagnostics[0]
                continue
            assert announced == len(seen), (seed, entry, seen)
            ran += 1
    assert ran > 16


# ---------------------------------------------------------------------------------------------------------------- rows


def test_every_call_that_can_be_written_has_a_row():
    folder = Path(presk_rel.exec.torch.__file__).parent
    written: set[str] = set()
    for path in [*folder.glob("rows_*.py"), *(folder / n for n in ("fuse.py", "ops.py", "emit.py", "contract.py"))]:
        written |= set(re.findall(r"""["'( ](torch(?:\.[A-Za-z_]\w*)+)\(""", path.read_text(encoding="utf-8")))
    known = {*CALLS, *FREE, *DRAWS, *(f"torch.{n}" for n in VIEWS), "torch.device"}
    assert written - known == set()
    assert len(written) > 40


def strided(x: Any) -> Array:
    return Array(tuple(x.shape), x.stride(), "float32", "x", "x")


def equal(strides: tuple[int, ...], found: Any) -> bool:
    """Strides along axes of length one are nothing."""
    return all(a == b for a, b, n in zip(strides, found.stride(), found.shape, strict=True) if n != 1)


def random_tensor(rng: Random, sizes: tuple[int, ...]) -> Any:
    order = list(range(len(sizes)))
    rng.shuffle(order)
    x = torch.empty([sizes[i] for i in order])
    return x.permute([order.index(i) for i in range(len(sizes))])


@pytest.mark.parametrize("seed", range(60))
def test_layouts_are_torchs(seed: int):
    rng = Random(seed)
    sizes = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 4)))
    x, y = random_tensor(rng, sizes), random_tensor(rng, sizes)
    z = random_tensor(rng, sizes[rng.randint(0, len(sizes)) :])
    for args in ((x, y), (x, z), (x.expand((2, *sizes)), y)):
        found = torch.add(*args)
        assert equal(pointwise([strided(a) for a in args], "float32").strides, found)
    assert expanded(strided(z), (5, *sizes)).sizes == (5, *sizes)
    for target in ((-1,), (sizes[0], -1), (*sizes[:-2], -1)):
        full = tuple(x.reshape(target).shape)
        try:
            expected = x.view(full).stride()
        except RuntimeError:
            expected = None
        got = viewed(sizes, x.stride(), full)
        assert (got is None) == (expected is None)
        assert got is None or all(a == b for a, b, n in zip(got, expected or (), full) if n != 1)
    assert fresh(sizes, "float32").contiguous
