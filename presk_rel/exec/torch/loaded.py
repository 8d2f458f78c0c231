"""A generated file as Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
    """The functions of a generated file; its constants are computed now."""
    namespace: dict[str, Any] = {"__name__": "presk_generated"}
    exec(compile(source, f"<presk {len(source)}>", "exec"), namespace)
    return Loaded(source, namespace["entry"], namespace["prelude"], namespace["compute"], namespace)
