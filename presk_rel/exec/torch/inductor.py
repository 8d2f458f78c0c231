"""Tier `inductor`: the pure `compute` of a generated file as machine code.

    on the CPU   compiled ahead of time by Inductor (`torch.export` and `aoti_compile_and_package`, in a process of its
                 own), kept in the cache on disk, called without Dynamo's guards; where that fails, `torch.compile`
    on CUDA      `torch.compile`; bound calls are CUDA graphs (`exec.torch.cuda_graph`) in every tier

Where there is no compiler the code runs as it is, tier `emit`, and says why. Shapes are static, so nothing is checked
at a call; tensors are made contiguous, since machine code knows only the strides that it was compiled for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from presk_rel.exec.torch import inductor_cache
from presk_rel.exec.torch.inductor_build import examples, flat, launches, nested, spec

Tier = Literal["auto", "emit", "inductor"]
"""What a user asks for: `auto` is `emit` where a program runs once, `inductor` where it runs often."""

AUTO_LAUNCHES = 2_500_000
"""`auto` compiles a handle at the call by which its kernels would have cost as much as compiling: 20 s at 8 µs each."""

Run = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Status:
    """How a program runs: `emit`, `inductor` (ahead of time) or `compile` (`torch.compile`); why it is not what was
    asked for; the kernels of a run, where they are known."""

    tier: str
    reason: str | None = None
    kernels: int | None = None


@dataclass(slots=True)
class Runner:
    """Machine code for a `compute`, made after `after` runs, with the shapes that it gets then. Called, it runs that,
    or the code as it is where there is none."""

    source: str
    compute: Run
    device: str
    kernels: int
    after: int = 0
    runs: int = 0
    status: Status = field(init=False)
    settled: bool = False
    _run: Run | None = None

    def __post_init__(self) -> None:
        self.status = Status("emit", None, self.kernels)

    def due(self) -> bool:
        """Count a run; whether machine code is to do it."""
        if self.settled:
            return self._run is not None
        self.runs += 1
        return self.runs > self.after

    def machine(self, given: tuple[Any, ...]) -> Run | None:
        """The machine code, made at first; None where there is none."""
        if not self.settled:
            run, self.status = compiled(self.source, self.compute, given, self.device, self.kernels)
            self._run = run if self.status.tier != "emit" else None
            self.settled = True
        return self._run

    def __call__(self, *given: Any) -> Any:
        return (self.machine(given) or self.compute)(*given)


def auto_after(kernels: int) -> int:
    """The calls of a handle before `auto` compiles it."""
    return -(-AUTO_LAUNCHES // max(kernels, 1))


def compiled(source: str, compute: Run, given: tuple[Any, ...], device: str, kernels: int) -> tuple[Run, Status]:
    """The fastest function that computes `compute` on tensors like `given`."""
    if not kernels:
        return compute, Status("emit", None, 0)
    if device != "cpu":
        return just_in_time(compute, [spec(x) for x in given], device, kernels)
    missing = no_compiler()
    if missing is not None:
        return compute, Status("emit", missing, kernels)
    specs = [spec(x) for x in given]
    try:
        entry = _entry(source, specs, device)
        return loaded(entry.path, specs, len(given)), Status("inductor", None, entry.about["kernels"])
    except BuildError as error:
        run, status = just_in_time(compute, specs, device, kernels)
        return run, Status(status.tier, f"{error}; {status.reason}" if status.reason else str(error), status.kernels)


def no_compiler() -> str | None:
    """Why C++ cannot be compiled here; None where it can."""
    named = os.environ.get("CXX")
    if named:
        return None if shutil.which(named.split()[0]) else f"the compiler CXX={named[:100]} is not there"
    if any(shutil.which(name) for name in ("g++", "clang++", "c++")):
        return None
    return "there is no C++ compiler here (g++, clang++ or $CXX)"


# -------------------------------------------------------------------------------------------------- ahead of time


class BuildError(Exception):
    """The compiler failed; its last words."""


def _entry(source: str, specs: list[Any], device: str) -> inductor_cache.Entry:
    """The artifact from the cache, or built."""
    name = inductor_cache.key(_identity(source, specs, device))
    found = inductor_cache.find(name)
    if found is not None:
        return found
    torch: Any = import_module("torch")
    with tempfile.TemporaryDirectory(prefix="presk-build-") as scratch:
        out = str(Path(scratch) / "compute.pt2")
        job = {"source": source, "given": specs, "device": device, "threads": torch.get_num_threads(), "out": out}
        _build(job)
        return inductor_cache.store(name, Path(out), {"kernels": launches(out), "device": device})


def _identity(source: str, specs: list[Any], device: str) -> dict[str, Any]:
    """All that the machine code depends on; dtype and shapes are in the source."""
    torch: Any = import_module("torch")
    here = Path(__file__).parent
    return {
        "format": 1,
        "source": source,
        "given": specs,
        "device": device,
        "torch": str(torch.__version__),
        "python": sys.version,
        "threads": torch.get_num_threads(),
        "capability": str(torch.backends.cpu.get_cpu_capability()),
        "cxx": os.environ.get("CXX", ""),
        "called": [(here / n).read_text(encoding="utf-8") for n in ("support.py", "inductor_build.py")],
    }


def _build(job: dict[str, Any]) -> None:
    """Run a job in a process of its own, which imports what this one does and nothing from the current folder."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-P", "-m", "presk_rel.exec.torch.inductor_build"]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, env=environment, check=False)
    if done.returncode or not Path(job["out"]).exists():
        lines = [x.strip() for x in done.stderr.splitlines() if x.strip()]
        raise BuildError(f"the compiler failed: {_clean(lines[-1] if lines else f'status {done.returncode}')}")


def _clean(text: str) -> str:
    return "".join(c for c in text if c.isprintable())[:200]


def loaded(path: Path, specs: list[Any], count: int) -> Run:
    """The function of an artifact: a list of tensors in, a list out, no checks."""
    inductor: Any = import_module("torch._inductor")
    try:
        boxed = inductor.aoti_load_package(str(path)).loader.boxed_run
    except Exception as error:
        raise BuildError(f"the compiled file does not load: {_clean(str(error))}") from error

    def run(*given: Any) -> Any:
        return boxed([x if x.is_contiguous() else x.contiguous() for x in given])

    def run_nested(*given: Any) -> Any:
        return boxed([x.contiguous() for x in flat(given)])

    return run_nested if any(isinstance(s, dict) for s in specs) else run


# ---------------------------------------------------------------------------------------------------- just in time


def just_in_time(compute: Run, specs: list[Any], device: str, kernels: int) -> tuple[Run, Status]:
    """`torch.compile`, tried on zeros; the code as it is where that fails too."""
    torch: Any = import_module("torch")
    run = torch.compile(compute, fullgraph=True, dynamic=False)
    try:
        with torch.inference_mode():
            run(*nested(specs, iter(examples(specs, device))))
    except Exception as error:  # whatever Dynamo, Inductor or a C compiler raises
        return compute, Status("emit", f"torch.compile failed: {_clean(str(error).partition(chr(10))[0])}", kernels)
    return run, Status("compile")
