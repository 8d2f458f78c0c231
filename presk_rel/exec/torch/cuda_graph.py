"""A run over fixed buffers as one CUDA graph: its kernels are recorded once and launched together.

What a graph refers to has to stay. Buffers are fixed; what a run allocates comes from the graph's own pool; and so does
the workspace of cuBLAS, which belongs to a stream and would otherwise be one that warming up, or another graph, made:
freed, it would be somebody else's memory that replays write to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from threading import Lock
from typing import Any

from presk_rel.exec.torch.inductor_build import flat, nested, spec
from presk_rel.exec.torch.numerics import undisturbed

WARM_UPS = 3
"""Runs before recording, on a stream of their own: libraries load and choose kernels then."""
_RECORDING = Lock()
"""Torch records one graph at a time in a process."""


@dataclass(slots=True)
class Graph:
    """`run(*given)`, recorded at its first call. What `run` reads and writes besides stays where it is; tensors that
    are `given` anew are copied into buffers of the graph. `device` is where it runs, whichever is torch's current one
    then; `cuda` is `torch.cuda`."""

    run: Callable[..., Any]
    device: Any = None
    cuda: Any = None
    buffers: list[Any] = field(default_factory=list[Any])
    arguments: list[Any] = field(default_factory=list[Any])
    """The buffers in the form of what was given."""
    result: Any = None
    replay: Callable[[], None] | None = None

    def __call__(self, *given: Any) -> Any:
        """A replay; inside a graph that somebody else records, which cannot launch another, the run itself."""
        if self.replay is None:
            self.record(given)
        for buffer, x in zip(self.buffers, flat(given), strict=True):
            if buffer is not x:
                buffer.copy_(x, non_blocking=True)
        assert self.replay is not None
        if self._torch_cuda().is_current_stream_capturing():
            return self.run(*self.arguments)
        self.replay()
        return self.result

    def _torch_cuda(self) -> Any:
        return self.cuda or import_module("torch").cuda

    def record(self, given: tuple[Any, ...]) -> None:
        """A graph keeps what was chosen when it was recorded: the numbers are those of `exec.torch.numerics`."""
        with _RECORDING:
            undisturbed(self._record, "cuda", bf16=True)(given)

    def _record(self, given: tuple[Any, ...]) -> None:
        cuda = self._torch_cuda()
        with cuda.device(self.device):
            self._on_device(cuda, given)

    def _on_device(self, cuda: Any, given: tuple[Any, ...]) -> None:
        """Streams, and what is recorded, are of the current device: the stream that torch records on where none is
        given is of the device that was current when the process recorded first. Other threads (a loader that pins
        memory) may call CUDA meanwhile."""
        self.buffers = list(flat(given))
        self.arguments = nested([spec(x) for x in given], iter(self.buffers))
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(WARM_UPS):
                self.run(*self.arguments)
        cuda.current_stream().wait_stream(side)
        graph = cuda.CUDAGraph()
        _free_workspaces()
        with cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            self.result = self.run(*self.arguments)
        _free_workspaces()
        self.replay = graph.replay


def _free_workspaces() -> None:
    """Those of cuBLAS, so that the next product allocates its own where it runs; torch's own graphs do the same."""
    free = getattr(import_module("torch")._C, "_cuda_clearCublasWorkspaces", None)
    if free is not None:
        free()
