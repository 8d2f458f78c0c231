"""A run over fixed buffers as one CUDA graph: its kernels are recorded once and launched together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from presk_rel.exec.torch.inductor_build import flat, nested, spec
from presk_rel.exec.torch.numerics import undisturbed

WARM_UPS = 3
"""Runs before recording, on a stream of their own: libraries allocate and choose kernels then."""


@dataclass(slots=True)
class Graph:
    """`run(*given)`, recorded at its first call. What `run` reads and writes besides stays where it is; tensors that
    are `given` anew are copied into buffers of the graph. `device` is where it runs, whichever is torch's current one
    then; `cuda` is `torch.cuda`."""

    run: Callable[..., Any]
    device: Any = None
    cuda: Any = None
    buffers: list[Any] = field(default_factory=list[Any])
    result: Any = None
    replay: Callable[[], None] | None = None

    def __call__(self, *given: Any) -> Any:
        if self.replay is None:
            self.record(given)
        for buffer, x in zip(self.buffers, flat(given), strict=True):
            if buffer is not x:
                buffer.copy_(x, non_blocking=True)
        assert self.replay is not None
        self.replay()
        return self.result

    def record(self, given: tuple[Any, ...]) -> None:
        """A graph keeps what was chosen when it was recorded: the numbers are those of `exec.torch.numerics`."""
        undisturbed(self._record, "cuda", bf16=True)(given)

    def _record(self, given: tuple[Any, ...]) -> None:
        cuda = self.cuda or import_module("torch").cuda
        with cuda.device(self.device):
            self._on_device(cuda, given)

    def _on_device(self, cuda: Any, given: tuple[Any, ...]) -> None:
        """Streams, and what is recorded, are of the current device. Other threads (a loader that pins memory) may call
        CUDA meanwhile."""
        self.buffers = list(flat(given))
        arguments = nested([spec(x) for x in given], iter(self.buffers))
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(WARM_UPS):
                self.run(*arguments)
        cuda.current_stream().wait_stream(side)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph, capture_error_mode="thread_local"):
            self.result = self.run(*arguments)
        self.replay = graph.replay
