"""Tier `inductor`: the pure `compute` of a generated file as machine code.

    on the CPU   compiled ahead of time by Inductor (`torch.export` and `aoti_compile_and_package`, in a process of its
                 own), kept in the cache on disk, called without Dynamo's guards; where that fails, `torch.compile`
    on CUDA      `torch.compile`; bound calls are CUDA graphs (`exec.torch.cuda_graph`) in every tier

Where there is no compiler the code runs as it is, tier `emit`, and says why. Shapes are static, so nothing is checked
at a call; tensors are made contiguous, since machine code knows only the strides that it was compiled for.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

from presk_rel.exec.torch import inductor_cache, inductor_process
from presk_rel.exec.torch.inductor_build import examples, exported, flat, launches, spec
from presk_rel.exec.torch.inductor_process import BuildError, cleaned
from presk_rel.exec.torch.loaded import Loaded
from presk_rel.exec.torch.numerics import undisturbed

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


@dataclass(frozen=True, slots=True)
class Result:
    """A result of `compute`: sizes, dtype, and of how many slices it is the stack that are returned as a tuple; 0 for a
    tensor."""

    sizes: list[int]
    dtype: str
    slices: int = 0

    @property
    def spec(self) -> Any:
        if not self.slices:
            return [self.sizes, self.dtype]
        return {"each": [[self.sizes[1:], self.dtype]] * self.slices}


@dataclass(frozen=True, slots=True)
class Code:
    """What is compiled: a generated file, and the results of its `compute`, if it was written for a compiler."""

    file: Loaded
    results: tuple[Result, ...] = ()

    def compute(self, *given: Any) -> tuple[Any, ...]:
        """The file's `compute`, stacks whole."""
        torch: Any = import_module("torch")
        return tuple(torch.stack(x) if isinstance(x, tuple) else x for x in self.file.compute(*given))


@dataclass(frozen=True, slots=True)
class Written:
    """Machine code that writes its results to where it is told."""

    boxed: Callable[[list[Any]], Any]
    results: tuple[Result, ...]

    def into(self, places: Sequence[Any]) -> Run:
        """The run that writes these tensors, one for each result."""
        parts = [y for x, r in zip(places, self.results, strict=True) for y in (x.unbind() if r.slices else (x,))]
        boxed = self.boxed

        def run(*given: Any) -> None:
            boxed([*(x if x.is_contiguous() else x.contiguous() for x in flat(given)), *parts])

        return run

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        torch: Any = import_module("torch")
        places = tuple(torch.empty(r.sizes, dtype=getattr(torch, r.dtype)) for r in self.results)
        self.into(places)(*given)
        return places


@dataclass(slots=True)
class Runner:
    """Machine code for the `compute` of a file, made after `after` runs, with the shapes that it gets then. Called, it
    runs that, or the code as it is where there is none."""

    write: Callable[[], Code]
    """Writes the file that is compiled, when it is."""
    device: str
    kernels: int
    after: int = 0
    runs: int = 0
    status: Status = field(init=False)
    settled: bool = False
    _run: Run | None = None
    _code: Code | None = None

    def __post_init__(self) -> None:
        self.status = Status("emit", None, self.kernels)

    @property
    def code(self) -> Code:
        """What is compiled: its file's `prelude` makes what its `compute`, and the machine code of that, take."""
        if self._code is None:
            self._code = self.write()
        return self._code

    def due(self) -> bool:
        """Count a run; whether machine code is to do it."""
        if self.settled:
            return self._run is not None
        self.runs += 1
        return self.runs > self.after

    def machine(self, given: tuple[Any, ...]) -> Run | None:
        """The machine code, made at first; None where there is none."""
        if not self.settled:
            run, self.status = compiled(self.code, given, self.device, self.kernels)
            self._run = run if self.status.tier != "emit" else None
            self.settled = True
        return self._run

    def __call__(self, *given: Any) -> Any:
        return (self.machine(given) or self.code.compute)(*given)


def auto_after(kernels: int) -> int:
    """The calls of a handle before `auto` compiles it."""
    return -(-AUTO_LAUNCHES // max(kernels, 1))


def compiled(code: Code, given: tuple[Any, ...], device: str, kernels: int) -> tuple[Run, Status]:
    """The fastest function that computes `compute` on tensors like `given`."""
    if not kernels:
        return code.compute, Status("emit", None, 0)
    if device != "cpu":
        return just_in_time(code, [spec(x) for x in given], device, kernels)
    missing = no_compiler()
    if missing is not None:
        return code.compute, Status("emit", missing, kernels)
    specs = [spec(x) for x in given]
    try:
        entry = _entry(code, specs, device)
        return Written(opened(entry.path), code.results), Status("inductor", None, entry.about["kernels"])
    except BuildError as error:
        run, status = just_in_time(code, specs, device, kernels)
        return run, Status(status.tier, f"{error}; {status.reason}" if status.reason else str(error), status.kernels)


def compiler() -> str | None:
    """The C++ compiler: $CXX (Inductor takes a name or a path, and no arguments), or the first that is there of those
    that have a name of their own."""
    named = os.environ.get("CXX", "").strip()
    if named:
        return named if shutil.which(named) else None
    return next((name for name in ("g++", "clang++", "c++") if shutil.which(name)), None)


def no_compiler() -> str | None:
    """Why C++ cannot be compiled here; None where it can."""
    if compiler() is not None:
        return None
    named = os.environ.get("CXX", "").strip()
    if named:
        words = " (a path, without arguments)" if shutil.which(named.split()[0]) else ""
        return f"the compiler CXX={cleaned(named)[:100]} is not there{words}"
    return "there is no C++ compiler here (g++, clang++ or $CXX)"


# -------------------------------------------------------------------------------------------------- ahead of time


def _entry(code: Code, specs: list[Any], device: str) -> inductor_cache.Entry:
    """The artifact from the cache, or built."""
    job = {
        "source": code.file.source,
        "given": specs,
        "results": [r.spec for r in code.results],
        "device": device,
    }
    cxx = compiler() or ""
    name = inductor_cache.key(_identity(job, cxx))
    found = inductor_cache.find(name)
    if found is not None:
        return found
    torch: Any = import_module("torch")
    try:
        with tempfile.TemporaryDirectory(prefix="presk-build-", ignore_cleanup_errors=True) as scratch:
            out = Path(scratch) / "compute.pt2"
            inductor_process.build(
                {**job, "threads": torch.get_num_threads(), "out": str(out), "scratch": scratch}, cxx
            )
            return inductor_cache.store(name, out, {"kernels": launches(str(out)), "device": device})
    except OSError as error:
        raise BuildError(f"machine code cannot be kept: {cleaned(str(error))}") from error


def _identity(job: dict[str, Any], cxx: str) -> dict[str, Any]:
    """All that the machine code depends on; dtype and shapes are in the source."""
    torch: Any = import_module("torch")
    here = Path(__file__).parent
    return {
        "format": 3,
        **job,
        "torch": str(torch.__version__),
        "python": sys.version,
        "threads": torch.get_num_threads(),
        "capability": str(torch.backends.cpu.get_cpu_capability()),
        "cxx": cxx,
        "called": [(here / n).read_text(encoding="utf-8") for n in ("support.py", "inductor_build.py")],
    }


def opened(path: Path) -> Callable[[list[Any]], Any]:
    """The function of an artifact: takes a list of tensors, and checks nothing."""
    inductor: Any = import_module("torch._inductor")
    try:
        with _by_the_compiler():
            return inductor.aoti_load_package(str(path)).loader.boxed_run
    except Exception as error:
        raise BuildError(f"the compiled file does not load: {cleaned(str(error))}") from error


def _by_the_compiler() -> AbstractContextManager[None]:
    """Inductor of this process looks for no other compiler."""
    cxx, config = compiler(), cast("Any", import_module("torch._inductor.config"))
    return nullcontext() if cxx is None else config.patch({"cpp.cxx": (None, cxx)})


# ---------------------------------------------------------------------------------------------------- just in time


def just_in_time(code: Code, specs: list[Any], device: str, kernels: int) -> tuple[Run, Status]:
    """`torch.compile`, tried on zeros; the code as it is where that fails too. Dynamo gets what `torch.export` traced:
    it reads no function that is in no module."""
    torch: Any = import_module("torch")
    try:
        module = exported(code.file.source, specs, device).module()
        called = undisturbed(torch.compile(module, fullgraph=True, dynamic=False), device, bf16=True)

        def run(*given: Any) -> tuple[Any, ...]:
            return called(*flat(given))

        with torch.inference_mode(), _by_the_compiler():
            run(*examples(specs, device))
    except Exception as error:  # whatever the tracer, Dynamo, Inductor or a C compiler raises
        said = cleaned(str(error).partition(chr(10))[0])
        return code.compute, Status("emit", f"torch.compile failed: {said}", kernels)
    return run, Status("compile")
