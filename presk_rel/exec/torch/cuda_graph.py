"""A function of tensors as one CUDA graph: its kernels are recorded once and launched together.

Tensors are copied into the graph's own buffers; one that is such a buffer already (`Graph.buffers`) is not, so a caller
that writes its batch there saves the copy. Results lie in buffers that the next call overwrites, as those of
`torch.compile(mode="reduce-overhead")` do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from presk_rel.exec.torch.inductor_build import flat, nested, spec

WARM_UPS = 3
"""Runs before recording, on a stream of their own: libraries allocate and choose kernels then."""


@dataclass(slots=True)
class Graph:
    """A recorded function: `buffers` are its inputs, flat, `result` its outputs."""

    buffers: list[Any]
    result: Any
    replay: Callable[[], None]

    def __call__(self, *given: Any) -> Any:
        for buffer, x in zip(self.buffers, flat(given), strict=True):
            if buffer is not x:
                buffer.copy_(x, non_blocking=True)
        self.replay()
        return self.result


def graphed(run: Callable[..., Any], given: tuple[Any, ...], cuda: Any = None) -> Graph:
    """Record `run` on tensors like `given`, which are on one CUDA device. `cuda` is `torch.cuda`."""
    cuda = cuda or import_module("torch").cuda
    buffers = [x.clone() for x in flat(given)]
    arguments = nested([spec(x) for x in given], iter(buffers))
    device = buffers[0].device if buffers else None
    with cuda.device(device):
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(WARM_UPS):
                run(*arguments)
        cuda.current_stream().wait_stream(side)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            result = run(*arguments)
    return Graph(buffers, result, graph.replay)
