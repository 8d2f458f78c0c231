"""Fusion of an optimized program: its entry and the bodies of its folds, each partitioned into kernels.

    kernel k2{B D}(x : ℝ[B, D], w : ℝ[D, 4*D], b : ℝ[4*D]) -> (ℝ[B, 4*D], ℝ[B, 4*D]) { … }

A kernel is a function that one launch can compute (`space`). What is left beside the calls of kernels are views, which
cost nothing, numbers of the host, folds, and the operations that are a launch of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from presk_rel.core.ir import Fold, Function, Prim, Program, operands
from presk_rel.core.names import Fresh
from presk_rel.core.prims import PRIMS
from presk_rel.core.verify import verify
from presk_rel.egraph.budget import Budget, Limits
from presk_rel.egraph.cost import CostModel, Work
from presk_rel.egraph.fusion.graph import Graph, graph_of
from presk_rel.egraph.fusion.partition import Partition, partition
from presk_rel.egraph.fusion.write import write
from presk_rel.egraph.optimize import Report
from presk_rel.elab.ty import Hyper, Key, TupleOf, Type

LIMIT = 5.0
"""Seconds of the solver's deterministic clock per function."""


@dataclass(frozen=True, slots=True)
class Fused:
    """The program with its kernels; the launches, arithmetic and traffic of one run of the entry, folds as often as
    they count (`cost.NOMINAL` where a dimension is unbound); `gap` is the largest of any function's partition; `cut`:
    some kernels were not grown to their end."""

    program: Program
    work: Work
    gap: float
    cut: bool = False


def fuse(
    flat: Program, entry: str, dims: Mapping[str, int] | None = None, limit: float = LIMIT, seconds: float | None = None
) -> Fused:
    """Partition `entry` and the bodies of its folds. `dims` weigh costs: the result is right at any dimensions. `limit`
    is in the solver's deterministic time; `seconds` are a limit of the user."""
    budget = Budget.of(Limits(seconds=seconds))
    model = CostModel(flat.modules, dict(dims or {}), flat.functions)
    names = Fresh(flat.functions)
    functions = dict(flat.functions)
    work: dict[str, Work] = {}
    gap, count, cut = 0.0, 0, False
    for name in _reached(flat, entry):
        graph = graph_of(flat.functions[name], model)
        found = partition(graph, limit, budget.seconds_left)
        written = write(graph, found.kernels, names, count)
        count = written.count
        functions[name] = written.function
        functions |= {k.name: k for k in written.kernels}
        work[name] = _work(graph, found, written.function, work)
        gap, cut = max(gap, found.gap), cut or found.cut
    program = replace(flat, functions=functions)
    verify(program, "fusion")
    return Fused(program, work[entry], gap, cut)


def with_kernels(report: Report, fused: Fused, seconds: float) -> Report:
    """A report whose figures after optimization are those of the program with kernels: its launches, what these compute
    (values computed anew as often as they are) and move. `gap` becomes the larger one."""
    work = fused.work
    after = replace(report.after, kernels=work.kernels, flops=work.flops, bytes=work.bytes)
    phases = (*report.phases, ("fuse", seconds))
    cuts = (*report.cuts, "fuse") if fused.cut else report.cuts
    return replace(report, after=after, phases=phases, gap=max(report.gap, fused.gap), cuts=cuts)


def _reached(flat: Program, entry: str) -> list[str]:
    """The entry and the bodies of folds under it, bodies first."""
    order: list[str] = []
    stack = [(entry, False)]
    while stack:
        name, done = stack.pop()
        if name in order:
            continue
        if done:
            order.append(name)
            continue
        stack.append((name, True))
        stack += [(b.op.body, False) for b in flat.functions[name].bindings if isinstance(b.op, Fold)]
    return order


def _work(graph: Graph, found: Partition, written: Function, bodies: Mapping[str, Work]) -> Work:
    """Of one run: kernels, folds, and what is a launch of its own."""
    launched = [k for k in found.kernels if k.units]
    total = Work(len(launched), sum(k.flops for k in launched), sum(k.bytes for k in launched))
    types, model = graph.types, graph.model
    for b in written.bindings:
        if isinstance(b.op, Fold):
            total += bodies[b.op.body].times(model.length(b.op.count))
        elif (
            isinstance(b.op, Prim) and b.name in graph.number and b.name not in graph.lying and not _free(b.op, b.type)
        ):
            total += model.work(b.op.op, b.op.attrs, tuple(types[v] for v in operands(b.op)), b.type)
    return total


def _free(op: Prim, ty: Type) -> bool:
    """A view, or the host's: keys and hyperparameters."""
    return PRIMS[op.op].view or _of_the_host(ty)


def _of_the_host(ty: Type) -> bool:
    match ty:
        case Hyper() | Key():
            return True
        case TupleOf(items):
            return all(map(_of_the_host, items))
        case _:
            return False
