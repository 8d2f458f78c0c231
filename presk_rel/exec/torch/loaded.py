"""A generated file as Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from presk_rel.exec.torch.numerics import undisturbed


@dataclass(frozen=True, slots=True)
class Loaded:
    """The functions of a generated file (`exec.torch.parts`): `entry(inputs, run)` is `run` (by default `compute`) of
    the tensors that `prelude(inputs)` makes of keys and hyperparameters. `namespace` is the file's: code
    that is written from it (`plan`, `api.halves`) finds its constants there."""

    source: str
    entry: Callable[..., tuple[Any, ...]]
    prelude: Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], tuple[Any, ...]]]
    compute: Callable[..., tuple[Any, ...]]
    namespace: dict[str, Any]


def loaded(source: str) -> Loaded:
    """The functions of a generated file; its constants are computed now. `entry` does the same inside `torch.autocast`
    as outside."""
    namespace: dict[str, Any] = {"__name__": "presk_generated"}
    exec(compile(source, f"<presk {len(source)}>", "exec"), namespace)
    entry = undisturbed(namespace["entry"], namespace["device"].type, bf16=in_bf16(source))
    return Loaded(source, entry, namespace["prelude"], namespace["compute"], namespace)


def in_bf16(source: str) -> bool:
    """Whether a file may have products in bf16."""
    return "torch.bfloat16" in source
