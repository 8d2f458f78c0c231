"""Gradients on a GPU against PyTorch: build, check against f64 on the CPU, time, one table.

    python benchmarks/gpu.py                              on cuda, in less than six minutes
    python benchmarks/gpu.py --rows small                 one program: what an earlier run had no time for
    python benchmarks/gpu.py --device cpu --quick         everything but the CUDA graphs, on the smallest programs

Sides: the exported file with `.backward()` (eager), torch.compile of the exported gradient in its modes `default` and
`reduce-overhead`, presk's tiers emit and inductor, whose bound calls are CUDA graphs, and `calls`: tier emit with
attention as torch's calls (PRESK_CUDA_ATTENTION=calls), where the program has such attention. Errors are relative to
the largest entry of the f64 gradient; a side of presk's that is beyond the type's bound is listed as such, and is not
the fastest one. Products in f32 are f32's: TF32 is off for all sides.

Nothing is lost: a side is timed alone as soon as it is built (on the error stream), a program's row is printed when its
sides have been timed in turn, and a side or a program that fails leaves the others. A side is not begun when its
program's share of `--seconds` is over; at `--stop` the script ends wherever it is, with a row of what it has of the
program under way (marked `*`: sides timed alone).
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from gradients import Row, bound, leaves, micro, program_of

from presk_rel.api.baselines import compiled, eager
from presk_rel.api.bench import interleaved, interval
from presk_rel.diagnostics import PreskError
from presk_rel.exec.conform import BOUNDS
from presk_rel.exec.torch.attention import SWITCH
from presk_rel.exec.torch.run import place_of


def gpt(v: int, d: int, h: int, layers: int, t: int, b: int, runs: int) -> Row:
    consts = {"m.V": v, "m.D": d, "m.H": h, "m.L": layers}
    return Row("train_minigpt.psk", "loss_grad", {"T": t, "B": b}, consts, runs, unroll=True)


ROWS = {
    "mlp": ("MLP D=4 B=2", Row("mlp.psk", "mse_grad", {"D": 4, "B": 2}, {}, 31), 1),
    "tiny": ("tiny GPT", gpt(64, 32, 2, 2, 16, 2, 31), 2),
    "small": ("small GPT", gpt(256, 128, 4, 4, 64, 4, 21), 3),
    "large": ("GPT 768×12, T=1024 B=4", gpt(8192, 768, 12, 12, 1024, 4, 11), 6),
}
"""Title, program, and the part of the time that it may take."""
QUICK = {
    "mlp": ("MLP D=4 B=2", Row("mlp.psk", "mse_grad", {"D": 4, "B": 2}, {}, 3), 1),
    "tiny": ("GPT 8×2, T=4 B=2", gpt(16, 8, 2, 2, 4, 2, 3), 2),
}
MODES = ("default", "reduce-overhead")
OWN = ("emit", "calls", "inductor")
"""The sides of presk."""
ALONE = 3
"""Samples of a side before the others are there."""


@dataclass(slots=True)
class Found:
    """What is known of a program: samples and errors by side, and what was left out."""

    title: str
    samples: dict[str, list[float]] = field(default_factory=dict[str, "list[float]"])
    errors: dict[str, float] = field(default_factory=dict[str, float])
    left: list[str] = field(default_factory=list[str])
    alone: bool = True


@contextmanager
def calls_of_attention() -> Generator[None]:
    was = os.environ.get(SWITCH)
    os.environ[SWITCH] = "calls"
    try:
        yield
    finally:
        os.environ.pop(SWITCH)
        os.environ.update({SWITCH: was} if was is not None else {})


def with_calls(program: Any, row: Row, plain: Any, dtype: str, device: str) -> Any:
    """The program with attention as calls; None where that is the program there is."""
    with calls_of_attention():
        found = program.compile(row.entry, row.dims, dtype=dtype, tier="emit", device=device)
        return None if found.source == plain.source else bound(program, row, "emit", dtype, device)


def sides_of(row: Row, dtype: str, device: str) -> dict[str, Callable[[], Callable[[], Any] | None]]:
    """How to build each side, None for one that is another's equal; presk's first, since the others take their inputs
    from a handle."""
    program = program_of(row)
    plain = bound(program, row, "emit", dtype, device)
    modes = {f"compile {m}": partial(compiled, program, plain, None if m == "default" else m) for m in MODES}
    return {
        "emit": lambda: plain,
        "calls": lambda: with_calls(program, row, plain, dtype, device),
        "eager": lambda: eager(program, plain),
        "inductor": lambda: bound(program, row, "inductor", dtype, device),
        **modes,
    }


def ordered(torch: Any, tree: Any, device: str) -> Any:
    """The entries of a gradient in order of size, on the device, which sorts the 98 million of a large one at once: the
    exported file names and splits the leaves otherwise, and entries that agree have orders that do."""
    return torch.cat([x.reshape(-1).to(device) for x in leaves(torch, tree)]).sort().values


def measure(row: Row, found: Found, dtype: str, device: str, deadline: float) -> None:
    """Build and time the sides of a program, in `found`."""
    torch: Any = import_module("torch")
    exact = ordered(torch, bound(program_of(row), row, "emit", "f64", "cpu").result, device)
    scale = float(exact.abs().max())
    sides: dict[str, Callable[[], Any]] = {}
    for name, make in sides_of(row, dtype, device).items():
        if time.perf_counter() > deadline and name not in OWN:
            found.left.append(f"{name} (no time)")
            continue
        start = time.perf_counter()
        try:
            run = make()
            if run is None:
                continue
            found.errors[name] = float((exact - ordered(torch, run(), device)).abs().max()) / scale
            found.samples |= interleaved({name: run}, ALONE, torch.device(device))
        except Exception as error:  # a side that does not build must not lose the others' figures
            found.left.append(f"{name} ({said(error)})")
            continue
        sides[name] = run
        if name in OWN and found.errors[name] > BOUNDS[dtype]:
            found.left.append(f"{name} as a right one (error {found.errors[name]:.1e})")
        told = (
            f"{micro(median(found, name))}, error {found.errors[name]:.0e}, after {time.perf_counter() - start:.0f} s"
        )
        print(f"{found.title} {dtype} {name}: {told}", file=sys.stderr, flush=True)
    found.samples = interleaved(sides, row.runs, torch.device(device))
    found.alone = False


def said(error: Exception) -> str:
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first[:100]}"


def median(found: Found, side: str) -> float:
    samples = sorted(found.samples[side])
    return samples[len(samples) // 2]


def shown(found: Found, dtype: str) -> str:
    names = ("eager", *(f"compile {m}" for m in MODES), *OWN)
    cells: list[str] = []
    for side in names:
        if side not in found.samples:
            cells.append("–")
            continue
        low, high = interval(found.samples[side])
        cells.append(f"{micro(median(found, side))} ({micro(low)} … {micro(high)})")
    others = {n: median(found, n) for n in found.samples if n not in OWN}
    right = [n for n in OWN if n in found.samples and found.errors[n] <= BOUNDS[dtype]]
    best = min((median(found, n) for n in right), default=float("nan"))
    ratios = ", ".join(f"{m / best:.2f}× {n}" for n, m in others.items())
    worst = max((found.errors[n] for n in OWN if n in found.errors), default=float("nan"))
    title = f"{found.title} {dtype}{' *' if found.alone else ''}"
    return f"| {title} | {' | '.join(cells)} | {ratios} | {worst:.0e} |"


@dataclass(slots=True)
class Report:
    """Prints the table row by row; `stop`, from a thread, prints what is left and ends the process."""

    dtype: str
    start: float
    left: list[str] = field(default_factory=list[str])
    open: Found | None = None
    lock: Any = field(default_factory=threading.Lock)

    def head(self, card: str, device: str, torch: Any) -> None:
        print(f"{card}; torch {torch.__version__}; {os.cpu_count()} CPUs; {device}")
        heads = ("program", "eager", *(f"compile {m}" for m in MODES), *OWN, "the fastest of presk's is", "error")
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)

    def close(self) -> None:
        """The row of the program under way."""
        with self.lock:
            if self.open is not None:
                print(shown(self.open, self.dtype), flush=True)
                self.left += [f"{self.open.title}: {x}" for x in self.open.left]
            self.open = None

    def end(self) -> None:
        print("\n".join(["", *(f"left out: {x}" for x in self.left), f"{time.perf_counter() - self.start:.0f} s"]))
        sys.stdout.flush()

    def stop(self) -> None:
        if self.open is not None:
            self.open.left.append("stopped: no time")
        self.close()
        self.end()
        os._exit(1)


def program(report: Report, chosen: tuple[str, Row, int], device: str, deadline: float) -> None:
    """One row, whatever happens."""
    torch: Any = import_module("torch")
    title, row, _ = chosen
    report.open = found = Found(title)
    try:
        measure(row, found, report.dtype, device, deadline)
    except Exception as error:  # a program that does not run must not lose the others' rows
        found.left.append(said(error))
    report.close()
    torch.compiler.reset()
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16", "f64"])
    parser.add_argument("--seconds", type=float, default=300, help="no side is begun after this")
    parser.add_argument("--stop", type=float, default=350, help="the script ends")
    parser.add_argument("--rows", help=f"of {','.join(ROWS)}")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    torch: Any = import_module("torch")
    on_cuda = options.device.startswith("cuda")
    torch.set_float32_matmul_precision("highest")  # containers may ask for TF32 by an environment variable
    if not on_cuda:
        torch.set_num_threads(1)  # as everywhere else on a CPU; two threads wait for each other on small tensors
    rows = QUICK if options.quick else ROWS
    names = options.rows.split(",") if options.rows else list(rows)
    if not set(names) <= set(rows):
        parser.error(f"--rows takes some of {','.join(rows)}")
    try:
        place_of(torch, options.device)
    except PreskError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    report = Report(options.dtype, start)
    report.head(torch.cuda.get_device_name(options.device) if on_cuda else "cpu", options.device, torch)
    watch = threading.Timer(options.stop, report.stop)
    watch.daemon = True
    watch.start()
    total, share = sum(rows[n][2] for n in names), 0
    for name in names:
        share += rows[name][2]
        program(report, rows[name], options.device, start + options.seconds * share / total)
    watch.cancel()
    report.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
