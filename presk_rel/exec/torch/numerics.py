"""What switches of torch, which hold for a whole process or block, may not change in presk's runs.

`torch.autocast` would run single calls of a program in another type than it was compiled for. On CUDA, torch lets
products in bf16 add partial sums in bf16 (`allow_bf16_reduced_precision_reduction`); presk's are added in f32. How
f32 products are computed (TF32) is the user's word and stays; the command line, where no user has said a word and the
environment may have (`TORCH_ALLOW_TF32_CUBLAS_OVERRIDE`), computes them in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def undisturbed(run: Callable[..., T], device: str, *, bf16: bool) -> Callable[..., T]:
    """The function, in whatever block it is called; `bf16` says that it has products in that type."""
    torch: Any = import_module("torch")
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        return run
    enabled, sums = torch.is_autocast_enabled, bf16 and kind == "cuda"

    @wraps(run)
    def inside(*args: Any, **named: Any) -> T:
        if not (sums or enabled(kind)):
            return run(*args, **named)
        with torch.autocast(kind, enabled=False), sums_in_f32(torch) if sums else nullcontext():
            return run(*args, **named)

    return inside


@contextmanager
def sums_in_f32(torch: Any) -> Generator[None]:
    """Products in bf16 with sums in f32."""
    matmul = torch.backends.cuda.matmul
    was = matmul.allow_bf16_reduced_precision_reduction
    split = getattr(matmul, "allow_bf16_reduced_precision_reduction_split_k", True)  # set to True along with the other
    matmul.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        matmul.allow_bf16_reduced_precision_reduction = was if split else (was, split)


@contextmanager
def full_f32() -> Generator[None]:
    """Products in f32 without TF32."""
    torch: Any = import_module("torch")
    was = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(was)
