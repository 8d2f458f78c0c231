"""Compiles the `compute` of a generated file ahead of time: `python -m presk_rel.exec.torch.inductor_build`, a process
of its own, so that what the compiler prints, keeps and changes stays there.

Its input is a JSON job: the generated `source`, the `given` tensors as shapes and names of dtypes (lists where the
host hands over one for each iteration), `device`, `threads`, and the `out` file. Constants of the source are traced
too, so that the compiler sees their values and not only their memory.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
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
    from presk_rel.exec.torch.run import loaded

    torch: Any = import_module("torch")
    inductor: Any = import_module("torch._inductor")
    torch.set_num_threads(job["threads"])

    class Pure(torch.nn.Module):
        def forward(self, *tensors: Any) -> Any:
            return loaded(job["source"]).compute(*nested(job["given"], iter(tensors)))

    with torch.no_grad():
        program = torch.export.export(Pure(), tuple(examples(job["given"], job["device"])), strict=False)
        inductor.aoti_compile_and_package(program, package_path=job["out"])


def launches(package: str) -> int:
    """The kernels that one run of a package launches, counted in the source of its wrapper."""
    with zipfile.ZipFile(package) as archive:
        names = [n for n in archive.namelist() if n.endswith(".wrapper.cpp")]
        texts = [archive.read(n).decode(errors="replace") for n in names]
    return sum(len(_LAUNCH.findall(text.partition("::run_impl(")[2])) for text in texts)


if __name__ == "__main__":
    build(json.load(sys.stdin))
