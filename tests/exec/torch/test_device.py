"""What is generated for CUDA, without a GPU: on torch's device `meta`, where tensors have no memory, the same code runs
for its shapes and devices. Every tensor of it is on the device, nothing asks for a value on the host (`.item()`, a
shape that depends on data): it can be recorded as a CUDA graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import Hyper
from presk_rel.exec.inputs import prepare
from presk_rel.exec.shapes import Env
from presk_rel.exec.torch.bound import bound
from presk_rel.exec.torch.emit import Emitted, emit
from presk_rel.exec.torch.loaded import loaded
from presk_rel.exec.torch.run import at, compile_entry, to_torch
from presk_rel.session import Session

from .as_on_cuda import all_large
from .test_counts import CONSTS, EXAMPLES, FILES, entries

QUICK = {"gpt", "mlp", "train_minigpt", "adamw", "hinge", "deep"}
FORGOTTEN = re.compile(r"\b(alpha|beta)=")
"""Factors of sums that Inductor's patterns forget: `add(x, mm(a, b), alpha=2)` is compiled as x + ab by torch 2.13."""
SYNCHRONIZING = ("_local_scalar_dense", "nonzero", "is_nonzero", "item", "unique", "equal")


class Watch(TorchDispatchMode):
    """What is dispatched: tensors elsewhere than on `meta`, and what waits for the device."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.wrong: list[tuple[str, object]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = func._schema.name.removeprefix("aten::"), kwargs or {}
        self.seen.append(name)
        if name == "embedding_dense_backward" and "out" in given:  # torch forgot the buffer of its meta kernel
            made = func._overloadpacket.default(*args)
            assert made.shape == given["out"].shape
            return given["out"]
        found = func(*args, **given)
        places = {x.device.type for x in tree_leaves((args, given, found)) if isinstance(x, torch.Tensor)}
        if places - {"meta"} or name in SYNCHRONIZING:
            self.wrong.append((name, places))
        return found


def drawn(program: Program, name: str, dims: dict[str, int]) -> tuple[Env, tuple[Any, ...]]:
    """The environment, and arguments on the host."""
    given = {p.name: np.asarray(3) for p in program.functions[name].params if isinstance(p.type, Hyper)}
    found, values = prepare(program, name, given, dims, 0)
    cpu = compile_entry(program, name, found.env, "f32")
    args = dict(zip((p.name for p in found.fn.params), values, strict=True))
    return found.env, tuple(to_torch(torch, cpu, at(args[i.parameter], i)) for i in cpu.emitted.inputs)


def watched(emitted: Emitted, host: tuple[Any, ...], dtype: Any) -> Iterator[Watch]:
    """The generated function as it stands, and its plan: what a CUDA graph records. Draws are made before."""
    code = loaded(emitted.source)
    inputs = tuple(_there(x, dtype) if isinstance(x, torch.Tensor) else x for x in host)
    given, _ = code.prelude(inputs)
    with torch.no_grad():
        with Watch() as plain:
            code.compute(*given)
        yield plain
        if emitted.plan is not None:
            runs: list[Any] = []
            bound(emitted, code.namespace, inputs, wrap=lambda run: runs.append(run) or run)
            with Watch() as planned:
                runs[0](given) if emitted.plan.draws else runs[0]()
            yield planned


def _there(x: Any, dtype: Any) -> Any:
    return x.to("meta", dtype if x.is_floating_point() else x.dtype)


def _marked(path: Path) -> Any:
    return pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else [pytest.mark.slow])


@pytest.mark.parametrize("path", [_marked(p) for p in FILES])
def test_examples_run_on_the_device_alone(path: Path):
    session = Session(str(path), CONSTS.get(path.stem, {}), mode="training")
    ran = 0
    for name, dims in entries(session):
        try:
            program = session.optimized(name, dims).program
            env, host = drawn(program, name, dims)
        except PreskError as error:
            assert error.diagnostics[0].code in ("E7003", "E7004"), error.diagnostics[0]
            continue
        for dtype in ("float32", "bfloat16"):
            emitted = emit(program, name, env, dtype, "meta")
            assert emitted.source.replace("'meta'", "'cuda'") == emit(program, name, env, dtype, "cuda").source
            compiled = emit(program, name, env, dtype, "meta", reader="compiler")
            assert compiled.plan is None
            for which in (emitted, compiled):
                for watch in watched(which, host, getattr(torch, dtype)):
                    assert not watch.wrong, (name, watch.wrong)
                    ran += len(watch.seen)
            assert not FORGOTTEN.search(compiled.source), name
            assert not FORGOTTEN.search(emit(program, name, env, dtype, "cpu", reader="machine").source), name
    assert ran


def test_products_of_rounded_operands_run_on_the_device_too(monkeypatch: pytest.MonkeyPatch):
    """Attention written out, a stack of blocks, and a loss: every product of matrices rounds its operands."""
    all_large(monkeypatch)
    session = Session(str(EXAMPLES / "train_minigpt.psk"), CONSTS["train_minigpt"], mode="training")
    program = session.optimized("loss_grad", {"B": 2, "T": 3}).program
    env, host = drawn(program, "loss_grad", {"B": 2, "T": 3})
    for unroll in (False, True):
        emitted = emit(program, "loss_grad", env, "bfloat16", "meta", unroll=unroll)
        for watch in watched(emitted, host, torch.bfloat16):
            assert not watch.wrong
            assert {"mm", "bmm"} & set(watch.seen)
            assert not {"addmm", "baddbmm"} & set(watch.seen)


def test_a_device_with_a_number_is_named_by_it_throughout():
    session = Session(str(EXAMPLES / "train_minigpt.psk"), CONSTS["train_minigpt"], mode="training")
    program = session.optimized("loss_grad", {"B": 2, "T": 3}).program
    env, _ = drawn(program, "loss_grad", {"B": 2, "T": 3})
    for dtype in ("float32", "bfloat16"):
        first, second = (emit(program, "loss_grad", env, dtype, device) for device in ("cuda", "cuda:1"))
        assert second.source.count("cuda") == 1
        assert second.source.replace("cuda:1", "cuda") == first.source
        assert first.plan is not None and second.plan is not None
        assert second.plan.source == first.plan.source
        assert "cuda" not in second.plan.source


def test_a_tensor_of_the_host_is_seen():
    """The check can fail."""
    with Watch() as watch:
        torch.add(torch.zeros(2, device="meta"), torch.tensor(1.0))
    assert watch.wrong
