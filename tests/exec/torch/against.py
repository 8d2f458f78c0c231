"""An entry on torch against its proven value, on the same arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from presk_rel.core.verify import verify
from presk_rel.exec.conform import Distance, distance
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.inputs import prepare
from presk_rel.exec.torch.run import Dtype, compile_entry, run_torch
from presk_rel.exec.values import Value


@dataclass(frozen=True)
class Ran:
    value: Value
    source: str
    kernels: int


def on_torch(
    found: Program, entry: str, dims: Mapping[str, int], given: Mapping[str, Any], dtype: Dtype = "f64", **options: bool
) -> Ran:
    flat = inline_entry(found, entry)
    verify(flat, "inline")
    bound, values = prepare(flat, entry, given, dims, 0)
    compiled = compile_entry(flat, entry, bound.env, dtype, **options)
    names = [p.name for p in bound.fn.params]
    value = run_torch(compiled, dict(zip(names, values, strict=True)))
    return Ran(value, compiled.emitted.source, compiled.emitted.kernels)


def against_exact(
    found: Program,
    entry: str,
    dims: Mapping[str, int] | None = None,
    given: Mapping[str, Any] | None = None,
    kernel: Any = "balls",
    **options: Any,
) -> Distance:
    """How far torch is from the exact executor."""
    nodes = {name: np.asarray(v) for name, v in (given or {}).items()}
    exact = run_exact(found, entry, nodes, dims or {}, options=Options(bits=96, kernel=kernel))
    return distance(exact.value, on_torch(found, entry, dims or {}, nodes, **options).value)


def agrees(found: Program, entry: str, dims: Any = None, given: Any = None, **options: Any) -> None:
    far = against_exact(found, entry, dims, given, **options)
    assert far.relative < 1e-12, (entry, float(far.relative), far.where)
    assert far.differing == 0
