"""Compiles the `compute` of generated files ahead of time: `python -m presk_rel.exec.torch.inductor_build`, a process
of its own (`inductor_process`), so that what the compiler prints, keeps and changes stays there.

Its input is a JSON job on each line: the generated `source`, the `given` tensors as shapes and names of dtypes (lists
where the host hands over one for each iteration), the same of its `results`, `device`, `threads`, the `out` file, and a
`scratch` folder for all that is made on the way; its output a line for each job done. It ends when a job fails, and
when its input does: in the middle of a job that is because nobody waits any more.

What is compiled takes the tensors, and those that it writes the results to: a slice of a stack is moved there while it
is in the cache, and what is computed entry by entry is written there to begin with. Constants of the source that are
one number everywhere are traced too, so that the compiler sees their values and not only their memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, cast

Spec = Any
"""`[[2, 4], "float32"]`, or `{"each": [specs]}`."""

_LAUNCH = re.compile(
    r"^\s+(?:cpp_fused_\w+|call_triton_\w+|launchKernel)\(|\baoti_torch_(?:cpu|cuda)_\w+\(", re.MULTILINE
)


def spec(value: Any) -> Spec:
    """The shape and dtype of a tensor, or those of each of a stack's."""
    if isinstance(value, tuple | list):
        return {"each": [spec(v) for v in cast("list[Any]", value)]}
    return [list(value.shape), str(value.dtype).removeprefix("torch.")]


def flat(given: Any) -> Iterator[Any]:
    """The tensors of nested tuples and lists, in order."""
    for x in given:
        if isinstance(x, tuple | list):
            yield from flat(x)
        else:
            yield x


def nested(specs: list[Spec], tensors: Iterator[Any]) -> list[Any]:
    """Tensors in the form of the specs."""
    found: list[Any] = []
    for s in specs:
        each = isinstance(s, dict)
        found.append(nested(cast("dict[str, list[Spec]]", s)["each"], tensors) if each else next(tensors))
    return found


def examples(specs: list[Spec], device: str) -> list[Any]:
    """Zeros of the specs, flat: what a compiler traces with."""
    torch: Any = import_module("torch")
    found: list[Any] = []
    for s in specs:
        if isinstance(s, dict):
            found += examples(cast("dict[str, list[Spec]]", s)["each"], device)
        else:
            found.append(torch.zeros(s[0], dtype=getattr(torch, s[1]), device=device))
    return found


def build(job: dict[str, Any]) -> None:
    """Compile a job. Whatever the compiler raises is raised."""
    torch: Any = import_module("torch")
    torch.set_num_threads(job["threads"])
    traced = exported(job["source"], job["given"], job["device"], job["results"])
    _compile(traced, job["out"], job["scratch"])


def exported(source: str, given: list[Spec], device: str, results: list[Spec] | None = None) -> Any:
    """`compute` of a file as torch's own program (`torch.export.ExportedProgram`) of flat tensors: those given, and
    where `results` are, those that it writes them to; else it returns them, stacks whole."""
    from presk_rel.exec.torch.loaded import loaded

    torch: Any = import_module("torch")
    tables = _tables(loaded(source).namespace)

    class Pure(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            for name, table in tables.items():
                self.register_buffer(name, table)

        def forward(self, *tensors: Any) -> Any:
            code = loaded(source)
            code.namespace.update({name: getattr(self, name) for name in tables})
            rest = iter(tensors)
            found = code.compute(*nested(given, rest))
            if results is None:
                return tuple(torch.stack(x) if isinstance(x, tuple) else x for x in found)
            for place, value in zip(rest, flat(found), strict=True):
                place.copy_(value)
            return ()

    kind = device.split(":")[0]
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(kind, enabled=False):
        return torch.export.export(Pure(), tuple(examples([*given, *(results or [])], device)), strict=False)


def _compile(program: Any, out: str, scratch: str) -> None:
    """Only what belongs to the compiler and not to a program (precompiled headers) is left where Inductor keeps such
    things, below the folder for temporary files as it was when this process began."""
    inductor: Any = import_module("torch._inductor")
    config: Any = import_module("torch._inductor.config")
    import_module("torch._inductor.codecache")  # which settles where headers are
    import_module("torch._inductor.runtime.cache_dir_utils").cache_dir()
    tempfile.tempdir = os.environ["TMPDIR"] = scratch
    options: dict[str, Any] = {"aot_inductor.output_path": str(Path(scratch) / "code")}
    if shutil.which("openssl") is None:  # it tells headers apart by their hash
        options["aot_inductor.precompile_headers"] = False
    with import_module("torch").no_grad(), config.patch(options):
        inductor.aoti_compile_and_package(program, package_path=out)


def _tables(namespace: dict[str, Any]) -> dict[str, Any]:
    """The real constants of a file that are more than one number (what masks add): memory, not computed anew at every
    entry. (Truths are: read from memory they make a loop twice as slow.)"""
    torch: Any = import_module("torch")
    tensors = {n: x for n, x in namespace.items() if isinstance(x, torch.Tensor) and x.is_floating_point()}
    return {n: x for n, x in tensors.items() if x.numel() > 1 and not bool((x == x.reshape(-1)[0]).all())}


def launches(package: str) -> int:
    """The kernels that one run of a package launches, counted in the source of its wrapper."""
    with zipfile.ZipFile(package) as archive:
        names = [n for n in archive.namelist() if n.endswith(".wrapper.cpp")]
        texts = [archive.read(n).decode(errors="replace") for n in names]
    return sum(len(_LAUNCH.findall(text.partition("::run_impl(")[2])) for text in texts)


def serve() -> None:
    """Do the jobs of the standard input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what compilers print
    busy: list[str] = []
    jobs: SimpleQueue[str] = SimpleQueue()
    Thread(target=_listen, args=(jobs, busy), daemon=True).start()
    while line := jobs.get():
        build(json.loads(line))
        busy.clear()
        print("done", file=answers, flush=True)


def _listen(jobs: SimpleQueue[str], busy: list[str]) -> None:
    """Hand jobs over; at the end of the input remove what is half done, and end the compilers of this group."""
    for line in sys.stdin:
        busy[:] = [json.loads(line)["scratch"]]
        jobs.put(line)
    if busy:
        shutil.rmtree(busy[0], ignore_errors=True)
        os.killpg(0, signal.SIGTERM)
    jobs.put("")


if __name__ == "__main__":
    serve()
