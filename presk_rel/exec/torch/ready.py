"""Bound calls in every tier: a plan of torch calls, machine code, and either as a CUDA graph.

Whatever runs, the results of bound calls are the same tensors, parts of the same flat ones: a handle that changes to
machine code (`auto`) writes on where it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

from presk_rel.elab.ty import Idx, Mask
from presk_rel.exec.torch.bound import Bound, bound, parted
from presk_rel.exec.torch.cuda_graph import Graph
from presk_rel.exec.torch.inductor import Run, Written
from presk_rel.exec.torch.nodes import operands_of
from presk_rel.exec.torch.parts import on_host
from presk_rel.exec.torch.run import Compiled


def ready(compiled: Compiled, inputs: Sequence[Any], before: Bound | None = None) -> Bound:
    """The entry bound to its inputs, which must be in row-major order; it needs a plan. `before` is how it was bound,
    of which the results are kept."""
    runner, wrap = compiled.runner, partial(Graph, device=compiled.device) if compiled.device.type == "cuda" else None
    if runner is not None and runner.due():
        held = before.inputs if before is not None else list(inputs)
        given, _ = runner.code.file.prelude(tuple(held))
        run = runner.machine(given)
        if run is not None:
            return _by_machine(compiled, runner.code.file.entry, run, held, given, before)
    return before or bound(compiled.emitted, compiled.parts.namespace, inputs, wrap)


def _by_machine(
    compiled: Compiled, entry: Run, run: Run, held: list[Any], given: tuple[Any, ...], before: Bound | None
) -> Bound:
    torch: Any = import_module("torch")
    operands = list(operands_of(compiled.emitted.result))
    if before is None:
        results, flats = _results(torch, compiled)
    else:
        kept = before.run()
        results, flats = [x for x, o in zip(kept, operands, strict=True) if not on_host(o)], before.flats
    prepared = tuple(results)
    into = run.into(prepared) if isinstance(run, Written) else _copied(torch, run, results)

    def write(*given: Any) -> tuple[Any, ...]:
        into(*given)
        return prepared

    launched: Run = Graph(write, compiled.device) if compiled.device.type == "cuda" else write
    on_device = not any(on_host(i.operand) for i in compiled.emitted.inputs)

    def by(run: Run) -> tuple[Any, ...]:
        return run(*given) if on_device else entry(held, run)

    guard = torch.inference_mode

    def guarded() -> tuple[Any, ...]:
        with guard():
            return by(launched)

    return Bound(held, not any(map(on_host, operands)), guarded, partial(by, write), flats, prepared)


def _copied(torch: Any, run: Run, results: list[Any]) -> Run:
    """A run whose results are moved to where they are read."""
    copy = torch._foreach_copy_

    def into(*given: Any) -> None:
        if results:
            copy(results, run(*given))

    return into


def _results(torch: Any, compiled: Compiled) -> tuple[list[Any], tuple[Any, ...]]:
    """Memory for the results of `compute`, and the flat tensors that they are parts of."""
    plan = compiled.emitted.plan
    assert plan is not None
    shapes = [o for o in operands_of(compiled.emitted.result) if not on_host(o)]
    like = [torch.empty(o.sizes, dtype=_dtype(torch, compiled, o), device="meta") for o in shapes]
    results: list[Any] = list(like)
    flats: list[Any] = []
    for group in plan.groups:
        members = [like[i] for i in group]
        dtype = members[0].dtype if members else compiled.dtype
        flats.append(torch.zeros(sum(prod(x.shape) for x in members), dtype=dtype, device=compiled.device))
        for i, view in zip(group, parted(flats[-1], members), strict=True):
            results[i] = view
    return results, tuple(flats)


def _dtype(torch: Any, compiled: Compiled, operand: Any) -> Any:
    match operand.type:
        case Idx():
            return torch.int64
        case Mask():
            return torch.bool
        case _:
            return compiled.dtype
