"""Times a compiled entry against PyTorch's own ways to run the same program, in one process, interleaved.

The baselines are hand-free: the file that `presk export` prints, at the same inputs.

    eager     its functions as they are; where the program says `grad`, `.backward()` on modules that own the parameters
              (what a PyTorch user writes; `torch.func.grad` is twice as slow)
    compile   torch.compile(fullgraph=True) of the exported function, with `torch.func.grad`

A sample is the mean time of a slice of calls; slices of all sides alternate. The interval is the distribution-free one
of a median: order statistics that hold it with at least 95 %.
"""

from __future__ import annotations

import gc
import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from presk_rel.api.baselines import compiled, eager, jitted
from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.exec.torch.dispatch import dispatched, generated

if TYPE_CHECKING:
    from presk_rel.api.handle import Handle
    from presk_rel.api.program import Program

BASELINES = {"eager": eager, "compile": compiled, "jax": jitted}
SLICE = 2e-3
"""Seconds a slice of calls takes at least."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Seconds per call: every sample, the medians, their 95 % intervals; `ratios` are baseline over presk. `kernels`
    are counted at run time (None where torch does not say)."""

    samples: dict[str, list[float]]
    medians: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    ratios: dict[str, float]
    kernels: dict[str, int | None]
    environment: dict[str, Any]


def bench(program: Program, handle: Handle, against: tuple[str, ...] = ("eager",), runs: int = 31) -> Bench:
    """Time a handle; its parameters are those that it draws."""
    unknown = [a for a in against if a not in BASELINES]
    if unknown:
        text = f"there is no baseline `{unknown[0]}` here; there are {', '.join(BASELINES)}"
        raise PreskError([Diagnostic("E7105", text, None)], exit_status=3)
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    handle()
    sides: dict[str, Callable[[], Any]] = {"presk": handle}
    kernels: dict[str, int | None] = {"presk": _launched(handle)}
    for name in against:
        sides[name], kernels[name] = _baseline(name, program, handle)
    samples = interleaved(sides, runs, handle.compiled.device)
    medians = {n: sorted(s)[len(s) // 2] for n, s in samples.items()}
    return Bench(
        samples,
        medians,
        {n: interval(s) for n, s in samples.items()},
        {n: medians[n] / medians["presk"] for n in against},
        kernels,
        environment(handle),
    )


def _baseline(name: str, program: Program, handle: Handle) -> tuple[Callable[[], Any], int | None]:
    """A side to compare with, which has run once, and the kernels it ran. E7106 where the library refuses the exported
    program: at lengths of 0 some of its initializers and kernels do."""
    try:
        run = BASELINES[name](program, handle)
        kernels = _kernels(name, run)
    except PreskError:
        raise
    except Exception as error:  # whatever torch, its compilers or jax raise
        why = next(iter(str(error).splitlines()), "")
        said = "".join(c for c in f"{type(error).__name__}: {why}" if c.isprintable())[:200]
        help = "leave it out of --against; `presk export` prints the program that it runs"
        raise PreskError(
            [Diagnostic("E7106", f"the baseline `{name}` fails on these inputs: {said}", None, help=help)],
            exit_status=3,
        ) from error
    return run, kernels


def _kernels(name: str, run: Callable[[], Any]) -> int | None:
    """The kernels of the first run, as dispatched; of what a compiler makes in it, as its code calls them."""
    if name == "eager":
        return len(dispatched(run))
    if name == "compile":
        return generated(run)
    run()
    return None


def _launched(handle: Handle) -> int | None:
    """The kernels of a bound call."""
    return len(dispatched(handle.launch)) if handle.status.tier == "emit" else handle.status.kernels


def interleaved(
    sides: Mapping[str, Callable[[], Any]], runs: int, device: Any, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds per call of each side, `runs` samples of each, in turn."""
    calls = {n: _calibrated(run, device, clock) for n, run in sides.items()}
    samples: dict[str, list[float]] = {n: [] for n in sides}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(runs):
            for name, run in sides.items():
                samples[name].append(_timed(run, calls[name], device, clock))
    finally:
        if collecting:
            gc.enable()
    return samples


def _timed(run: Callable[[], Any], calls: int, device: Any, clock: Callable[[], float]) -> float:
    _finish(device)
    start = clock()
    for _ in range(calls):
        run()
    _finish(device)
    return (clock() - start) / calls


def _calibrated(run: Callable[[], Any], device: Any, clock: Callable[[], float]) -> int:
    """How many calls a slice has, after a warm-up."""
    for _ in range(3):
        run()
    return max(1, math.ceil(SLICE / max(_timed(run, 3, device, clock), 1e-9)))


def _finish(device: Any) -> None:
    if device.type == "cuda":
        import_module("torch").cuda.synchronize(device)


def interval(samples: list[float]) -> tuple[float, float]:
    """The narrowest symmetric pair of order statistics that holds the median with 95 %; of few samples, all of them."""
    ordered, n = sorted(samples), len(samples)
    inside, k = 0.0, 0
    while k < n / 2:
        tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        if 1 - 2 * tail < 0.95:
            break
        inside, k = 1 - 2 * tail, k + 1
    low = max(k - 1, 0) if inside else 0
    return ordered[low], ordered[n - 1 - low]


def environment(handle: Handle) -> dict[str, Any]:
    torch: Any = import_module("torch")
    cuda = handle.compiled.device.type == "cuda"
    return {
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": int(torch.get_num_threads()),
        "device": str(torch.cuda.get_device_name(handle.compiled.device)) if cuda else "cpu",
        "dtype": handle.dtype,
        "tier": handle.status.tier,
    }
