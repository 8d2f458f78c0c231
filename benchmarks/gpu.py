"""Gradients on a GPU against PyTorch: build, check against f64 on the CPU, time, one table.

    python benchmarks/gpu.py                              on cuda, in less than six minutes
    python benchmarks/gpu.py --device cpu --quick         everything but the CUDA graphs, on the smallest programs

Sides: the exported file with `.backward()` (eager), torch.compile of the exported gradient in its modes `default` and
`reduce-overhead`, and presk's tiers emit and inductor, whose bound calls are CUDA graphs. Nothing is started once the
time is up (`--seconds`); what was left out is listed. Errors are relative to the largest entry of the f64 gradient.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from gradients import Row, bound, distance, leaves, micro, program_of

from presk_rel.api.baselines import compiled, eager
from presk_rel.api.bench import interleaved, interval
from presk_rel.diagnostics import PreskError
from presk_rel.exec.torch.run import place_of


def gpt(v: int, d: int, h: int, layers: int, t: int, b: int, runs: int, *, unroll: bool = True) -> Row:
    consts = {"m.V": v, "m.D": d, "m.H": h, "m.L": layers}
    return Row("train_minigpt.psk", "loss_grad", {"T": t, "B": b}, consts, runs, unroll)


ROWS = {
    "MLP D=4 B=2": Row("mlp.psk", "mse_grad", {"D": 4, "B": 2}, {}, 31),
    "tiny GPT": gpt(64, 32, 2, 2, 16, 2, 31),
    "small GPT": gpt(256, 128, 4, 4, 64, 4, 21),
    "GPT 768×12, T=512 B=8": gpt(8192, 768, 12, 12, 512, 8, 11, unroll=False),
}
QUICK = {
    "MLP D=4 B=2": Row("mlp.psk", "mse_grad", {"D": 4, "B": 2}, {}, 3),
    "GPT 8×2, T=4 B=2": gpt(16, 8, 2, 2, 4, 2, 3),
}
MODES = ("default", "reduce-overhead")
TIERS = ("emit", "inductor")


def sides_of(row: Row, dtype: str, device: str) -> dict[str, Callable[[], Callable[[], Any]]]:
    """How to build each side; presk's first, since the others take their inputs from a handle."""
    program = program_of(row)
    plain = bound(program, row, "emit", dtype, device)

    def mode(name: str) -> Callable[[], Any]:
        import_module("torch").compiler.reset()
        return compiled(program, plain, None if name == "default" else name)

    return {
        "emit": lambda: plain,
        "inductor": lambda: bound(program, row, "inductor", dtype, device),
        "eager": lambda: eager(program, plain),
        **{f"compile {name}": partial(mode, name) for name in MODES},
    }


def measured(row: Row, dtype: str, device: str, deadline: float) -> dict[str, Any]:
    """The medians of the sides that could be built in time, their errors, and what was left out."""
    torch: Any = import_module("torch")
    exact = bound(program_of(row), row, "emit", "f64", "cpu")
    scale = max(float(x.abs().max()) for x in leaves(torch, exact.result))
    sides: dict[str, Callable[[], Any]] = {}
    errors: dict[str, float] = {}
    left: list[str] = []
    for name, make in sides_of(row, dtype, device).items():
        if time.perf_counter() > deadline and name not in TIERS:
            left.append(f"{name} (no time)")
            continue
        try:
            run = make()
            errors[name] = distance(torch, exact, run()) / scale
        except Exception as error:  # a side that does not build must not lose the others' figures
            left.append(f"{name} ({type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''})")
            continue
        sides[name] = run
    samples = interleaved(sides, row.runs, torch.device(device))
    medians = {n: sorted(s)[len(s) // 2] for n, s in samples.items()}
    return {
        "medians": medians,
        "intervals": {n: interval(s) for n, s in samples.items()},
        "errors": errors,
        "left": left,
    }


def shown(name: str, dtype: str, found: dict[str, Any]) -> str:
    names = ("eager", *(f"compile {m}" for m in MODES), *TIERS)
    cells: list[str] = []
    for side in names:
        if side not in found["medians"]:
            cells.append("–")
            continue
        low, high = found["intervals"][side]
        cells.append(f"{micro(found['medians'][side])} ({micro(low)} … {micro(high)})")
    others = {n: m for n, m in found["medians"].items() if n not in TIERS}
    best = min((m for n, m in found["medians"].items() if n in TIERS), default=float("nan"))
    ratios = ", ".join(f"{m / best:.2f}× {n}" for n, m in others.items())
    worst = max((found["errors"][n] for n in TIERS if n in found["errors"]), default=float("nan"))
    return f"| {name} {dtype} | {' | '.join(cells)} | {ratios} | {worst:.0e} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16", "f64"])
    parser.add_argument("--seconds", type=float, default=330, help="no side is built after this")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    torch: Any = import_module("torch")
    on_cuda = options.device.startswith("cuda")
    if not on_cuda:
        torch.set_num_threads(1)  # as everywhere else on a CPU; two threads wait for each other on small tensors
    rows = QUICK if options.quick else ROWS
    left: list[str] = []
    try:
        place_of(torch, options.device)
        for k, (name, row) in enumerate(rows.items()):
            share = start + options.seconds * (k + 1) / len(rows)
            found = measured(row, options.dtype, options.device, share)
            if not k:
                card = torch.cuda.get_device_name(options.device) if on_cuda else "cpu"
                print(f"{card}; torch {torch.__version__}; {os.cpu_count()} CPUs; {options.device}")
                heads = ("program", "eager", *(f"compile {m}" for m in MODES), *TIERS, "the faster tier is", "error")
                print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
            print(shown(name, options.dtype, found), flush=True)
            left += [f"{name}: {x}" for x in found["left"]]
    except PreskError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    print("\n".join(["", *(f"left out: {x}" for x in left), f"{time.perf_counter() - start:.0f} s"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
