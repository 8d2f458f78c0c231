"""Gradients, and a step of the optimizer, against PyTorch: one table.

    python benchmarks/gradients.py                        all rows, one thread, f32 (about ten minutes)
    python benchmarks/gradients.py --rows mlp4,tiny       some of them
    python benchmarks/gradients.py --quick                the smallest, few samples: a check that everything runs
    python benchmarks/gradients.py --against eager,compile,jax

Sides of a row run in one process, their slices in turn: `eager` is the exported file with `.backward()`, `compile` is
torch.compile(fullgraph=True) of the exported gradient, `emit` and `inductor` are presk's tiers. A cell is the
median and its 95 % interval; × is how many times faster than that side the tier is. Before it is timed, each side's
gradient is compared with presk's in f64. `--clock cpu` counts the process's CPU time, for machines that do other work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
PINNED = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
"""One thread; and freed memory is kept, or each large gradient is paid for with page faults, by every side."""


@dataclass(frozen=True, slots=True)
class Row:
    """A gradient to time: `runs` samples of each side."""

    file: str
    entry: str
    dims: dict[str, int]
    consts: dict[str, int]
    runs: int
    unroll: bool = False


def gpt(v: int, d: int, h: int, layers: int, t: int, b: int, runs: int) -> Row:
    consts = {"m.V": v, "m.D": d, "m.H": h, "m.L": layers}
    return Row("train_minigpt.psk", "loss_grad", {"T": t, "B": b}, consts, runs, unroll=True)


ROWS = {
    "mlp4": Row("mlp.psk", "mse_grad", {"D": 4, "B": 2}, {}, 61),
    "mlp64": Row("mlp.psk", "mse_grad", {"D": 64, "B": 2}, {}, 61),
    "tiny": gpt(64, 32, 2, 2, 16, 2, 41),
    "small": gpt(256, 128, 4, 4, 64, 4, 101),
    "medium": gpt(1024, 256, 8, 6, 128, 8, 11),
}
QUICK = ("mlp4",)
TIERS = ("emit", "inductor")


# ------------------------------------------------------------------------------------------------------- gradients


def program_of(row: Row) -> Any:
    import presk_rel

    program = presk_rel.load(EXAMPLES / row.file, row.consts)
    program.session.unroll_stack = row.unroll
    return program


def bound(program: Any, row: Row, tier: str, dtype: str, device: str) -> Any:
    """A handle with its inputs where it reads them, run once."""
    handle = program.compile(row.entry, row.dims, dtype=dtype, tier=tier, device=device)
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    handle()
    return handle


def gradient(name: str, row: Row, against: list[str], clock: Callable[[], float], device: str) -> dict[str, Any]:
    from presk_rel.api.bench import BASELINES, interleaved, interval

    program = program_of(row)
    exact = bound(program, row, "emit", "f64", device)
    handles = {tier: bound(program, row, tier, "f32", device) for tier in TIERS}
    sides: dict[str, Callable[[], Any]] = {a: BASELINES[a](program, handles["emit"]) for a in against}
    sides |= handles
    torch: Any = import_module("torch")
    scale = float(torch.cat([x.abs().reshape(-1) for x in exact.flats]).max())
    errors = {n: distance(torch, exact, run()) / scale for n, run in sides.items()}
    samples = interleaved(sides, row.runs, handles["emit"].compiled.device, clock)
    return {
        "row": name,
        "medians": {n: sorted(s)[len(s) // 2] for n, s in samples.items()},
        "intervals": {n: interval(s) for n, s in samples.items()},
        "errors": errors,
        "kernels": {n: h.status.kernels for n, h in handles.items()},
        "tiers": {n: h.status.tier for n, h in handles.items()},
        "samples": samples,
    }


def distance(torch: Any, exact: Any, found: Any) -> float:
    """The largest difference of the sorted entries of two gradients: the exported file names and splits the leaves
    otherwise (blocks of a stack are modules), and entries that agree have orders that do."""
    a, b = (torch.cat([x.reshape(-1) for x in leaves(torch, tree)]).sort().values for tree in (exact.result, found))
    return float((a - b).abs().max())


def leaves(torch: Any, tree: Any) -> list[Any]:
    """The tensors of a tree, in its order, as doubles on the CPU."""
    if isinstance(tree, dict | tuple | list):
        parts = tree.values() if isinstance(tree, dict) else tree
        return [x for part in parts for x in leaves(torch, part)]
    return [torch.as_tensor(tree.detach() if hasattr(tree, "detach") else tree).double().cpu()]


# ------------------------------------------------------------------------------------------------------- optimizer


def optimizer(row: Row, clock: Callable[[], float], device: str) -> dict[str, Any]:
    """Clip and AdamW, from the program's `adamw.step` in both tiers, against torch's own on the same parameters."""
    from presk_rel.api.bench import interleaved, interval

    torch: Any = import_module("torch")
    program = program_of(row)
    grad = bound(program, row, "emit", "f32", device)
    for flat in grad.flats:  # a new MiniGPT's head is 0 and so are most gradients: roots of 0 and denormals are slow
        flat.normal_(std=0.01)
    parameters = [torch.nn.Parameter(x.float().to(device)) for x in leaves(torch, grad.params["θ"])]
    grads = [x.float().to(device) for x in leaves(torch, grad.result)]
    theirs = torch.optim.AdamW(parameters, lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)

    def torch_step() -> None:
        for p, g in zip(parameters, grads, strict=True):
            p.grad = g
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        theirs.step()

    sides = {"foreach": torch_step, **{tier: stepping(torch, program, row, grad, tier) for tier in TIERS}}
    samples = interleaved(sides, row.runs, grad.compiled.device, clock)
    medians = {n: sorted(s)[len(s) // 2] for n, s in samples.items()}
    return {"medians": medians, "intervals": {n: interval(s) for n, s in samples.items()}}


def stepping(torch: Any, program: Any, row: Row, grad: Any, tier: str) -> Callable[[], None]:
    """A training step's update: the number of the step is new each time, parameters and moments advance in place."""
    step = program.compile("adamw.step", {"T": row.dims["T"]}, dtype="f32", tier=tier, device=grad.device)
    θ = copied(torch, grad.params["θ"], torch.clone)
    moments = tuple(copied(torch, θ, torch.zeros_like) for _ in range(2))
    step.bind(θ=θ, g=grad.result, s=moments, t=1, total=10**6)
    count = iter(range(1, sys.maxsize))

    def run() -> None:
        step.bind(t=next(count)).advance()

    return run


def copied(torch: Any, tree: Any, f: Callable[[Any], Any]) -> Any:
    return {k: copied(torch, v, f) for k, v in tree.items()} if isinstance(tree, dict) else f(tree)


# ----------------------------------------------------------------------------------------------------------- table


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.1 else f"{seconds * 1e3:,.0f} ms"


def line(found: dict[str, Any]) -> list[str]:
    """A row of the table: each side, and the ratios of both tiers."""
    medians, intervals = found["medians"], found["intervals"]
    cells = [f"| {found['row']} "]
    for name, median in medians.items():
        low, high = intervals[name]
        cells.append(f"| {micro(median)} ({micro(low)} … {micro(high)}) ")
    others = [n for n in medians if n not in TIERS]
    for tier in TIERS:
        cells.append(f"| {', '.join(f'{medians[o] / medians[tier]:.2f}×' for o in others)} ")
    return ["".join(cells) + f"| {max(found['errors'].values()):.0e} |"]


def machine() -> dict[str, str]:
    torch: Any = import_module("torch")
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x.split(":")[1].strip() for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0] if names else model
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"
    return {
        "cpu": f"{model}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}",
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "load average": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--against", default="eager,compile")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, help="write all samples here")
    options = parser.parse_args()
    if any(os.environ.get(k) != v for k, v in PINNED.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **PINNED})
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    names = QUICK if options.quick else tuple(options.rows.split(","))
    against = options.against.split(",")
    print("; ".join(f"{k} {v}" for k, v in machine().items()) + f"; clock {options.clock}")
    sides = " | ".join([*against, *TIERS])
    print(f"| row | {sides} | emit is | inductor is | error |\n|{'---|' * (len(against) + 6)}")
    results: list[dict[str, Any]] = []
    for name in names:
        row = ROWS[name]
        row = Row(row.file, row.entry, row.dims, row.consts, 3, row.unroll) if options.quick else row
        results.append(gradient(name, row, against, clock, "cpu"))
        print("\n".join(line(results[-1])), flush=True)
        if row.file == "train_minigpt.psk":
            results.append({"row": f"{name}, step", **optimizer(row, clock, "cpu")})
            found = results[-1]["medians"]
            tiers = (f"{t} {micro(found[t])}: {found['foreach'] / found[t]:.2f}×" for t in TIERS)
            print(f"  {name}: clip + AdamW: foreach {micro(found['foreach'])}, {', '.join(tiers)}", flush=True)
    print(f"load average at the end: {machine()['load average']}")
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": machine(), "rows": results}, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
