"""The kernels that torch runs, counted where it dispatches them."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

VIEWS = (
    "view", "expand", "t", "transpose", "permute", "unsqueeze", "select", "slice", "unbind", "_unsafe_view", "alias",
    "detach", "squeeze", "split", "_reshape_alias", "narrow", "as_strided", "reshape", "squeeze_",
)  # fmt: skip


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.split(".")[0]
        if name not in VIEWS:
            self.seen.append(name)
        return func(*args, **(kwargs or {}))


def dispatched(run: Callable[[], Any]) -> list[str]:
    """The names of the kernels of one run."""
    with Counting() as counting, torch.no_grad():
        run()
    return counting.seen
