"""What is generated for CUDA, run on a CPU: its file with the name of another device, and the products that torch has
on CUDA only (operands in bf16, result in f32), as one computes them there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import torch

from presk_rel.exec.torch import run
from presk_rel.exec.torch.emit import Emitted, emit
from presk_rel.exec.torch.precision import Large, Types

generator: Any = import_module("presk_rel.exec.torch.emit")


def written_for_cuda(*args: Any, **options: Any) -> Emitted:
    """As `emit`, for CUDA; the file's tensors lie on the CPU."""
    program, entry, env, dtype, _ = args
    made = emit(program, entry, env, dtype, "cuda", **options)
    assert "device('cuda')" in made.source
    return replace(made, source=made.source.replace("device('cuda')", "device('cpu')"))


@contextmanager
def products() -> Iterator[None]:
    """Products of bf16 matrices with results in f32, on the CPU."""

    def given(x: Any, y: Any, out_dtype: Any) -> tuple[Any, Any]:
        assert (x.dtype, y.dtype, out_dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
        return x.float(), y.float()

    def mm(x: Any, y: Any, out_dtype: Any) -> Any:
        return torch.mm(*given(x, y, out_dtype))

    def bmm(x: Any, y: Any, out_dtype: Any) -> Any:
        return torch.bmm(*given(x, y, out_dtype))

    def written(product: Any) -> Any:
        def into(x: Any, y: Any, out_dtype: Any, out: Any) -> Any:
            assert out.dtype == torch.float32
            return out.copy_(product(x, y, out_dtype))

        return into

    made = {"mm.dtype": mm, "bmm.dtype": bmm, "mm.dtype_out": written(mm), "bmm.dtype_out": written(bmm)}
    library = torch.library.Library("aten", "IMPL", "CPU")
    for name, function in made.items():
        library.impl(name, function)
    try:
        yield
    finally:
        library._destroy()


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Whatever a program is compiled for in this test, it is compiled for CUDA."""
    monkeypatch.setattr(run, "emit", written_for_cuda)
    with products():
        yield monkeypatch


def all_large(monkeypatch: pytest.MonkeyPatch, attention: str = "") -> None:
    """In bf16, operands of every product of matrices are rounded; attention has these calls."""

    def types(dtype: str, _: str) -> Types:
        if dtype != "bfloat16":
            return Types(dtype, dtype, None, attention)
        return Types(dtype, "float32", Large(0, 0), attention)

    monkeypatch.setattr(generator, "types_of", types)
