"""A generated function bound to its inputs: buffers and views exist, a run is kernels only (`exec.torch.plan`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from presk_rel.exec.torch.emit import Emitted
from presk_rel.exec.torch.nodes import operands_of
from presk_rel.exec.torch.parts import on_host

Entry = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Bound:
    """`run()` computes from what is in the inputs' memory now, and returns the results in the entry's order. They are
    the same tensors every time; `flats` are those whose parts they are, in the order of `Plan.groups`. `launch` is the
    run as a dispatch mode sees it: without `inference_mode`, which hides from it what torch launches, and kernel by
    kernel, where `run` replays a graph."""

    inputs: list[Any]
    """Keys and hyperparameters are read from here by every run; tensors were when it was bound."""
    same: bool
    """Whether all results are tensors."""
    run: Callable[[], tuple[Any, ...]]
    launch: Callable[[], tuple[Any, ...]]
    flats: tuple[Any, ...]
    results: tuple[Any, ...]
    """The results of `compute`, before and after a run."""


def bound(
    emitted: Emitted,
    namespace: dict[str, Any],
    inputs: Sequence[Any],
    wrap: Callable[[Entry], Entry] | None = None,
    into: Mapping[int, Any] | None = None,
) -> Bound:
    """Buffers for one set of inputs of the generated file whose names `namespace` has. Tensors must be in row-major
    order; they are read where they lie, but for the leaves of a tree that the plan needs next to each other and that
    are not: these are copied once. `wrap` makes a run of the plan's (a CUDA graph). `into` is flat memory for groups of
    results (`Plan.over`)."""
    torch: Any = import_module("torch")
    plan = emitted.plan
    assert plan is not None
    if "bound" not in namespace:
        exec(compile(plan.source, f"<presk plan {len(plan.source)}>", "exec"), namespace)
    with torch.no_grad():
        held, flats = _staged(torch, list(inputs), plan.arenas if plan.staged else ())
        run, results, made = namespace["bound"](held, flats, into or {})
    same = not any(map(on_host, operands_of(emitted.result)))

    def by(run: Callable[..., Any]) -> Callable[[], tuple[Any, ...]]:
        """The entry with this for its `compute`."""

        def through(*given: Any) -> tuple[Any, ...]:
            run(given) if plan.draws else run()
            return results

        def plain() -> tuple[Any, ...]:
            run()
            return results

        return plain if same and not plan.draws else lambda: namespace["entry"](held, through)

    started = by(wrap(run) if wrap else run)
    guard = torch.inference_mode

    def guarded() -> tuple[Any, ...]:
        with guard():
            return started()

    return Bound(held, same, guarded, by(run), made, results)


def _staged(torch: Any, inputs: list[Any], arenas: Sequence[tuple[int, ...]]) -> tuple[list[Any], tuple[Any, ...]]:
    """The inputs, those of an arena as parts of one flat tensor."""
    flats: list[Any] = []
    for members in arenas:
        leaves = [inputs[i] for i in members]
        flat = lying(torch, leaves)
        if flat is None:
            flat = torch.cat([x.reshape(-1) for x in leaves])
            for i, view in zip(members, parted(flat, leaves), strict=True):
                inputs[i] = view
        flats.append(flat)
    return inputs, tuple(flats)


def lying(torch: Any, leaves: Sequence[Any]) -> Any:
    """The flat tensor that these are the parts of, in order and without gaps; None where there is none."""
    if not leaves:
        return None
    at, width = leaves[0].data_ptr(), leaves[0].element_size()
    for x in leaves:
        if x.data_ptr() != at or not x.is_contiguous() or x.dtype != leaves[0].dtype:
            return None
        at += x.numel() * width
    first, total = leaves[0].detach(), sum(x.numel() for x in leaves)
    room = first.untyped_storage().nbytes() // width - first.storage_offset()
    return torch.as_strided(first, (total,), (1,), first.storage_offset()) if total <= room else None


def parted(flat: Any, leaves: Sequence[Any]) -> list[Any]:
    """Views of a flat tensor in the shapes of these."""
    views: list[Any] = []
    start = 0
    for x in leaves:
        views.append(flat[start : start + x.numel()].view(x.shape))
        start += x.numel()
    return views
