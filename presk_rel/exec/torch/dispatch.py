"""Kernels that torch runs, counted where it dispatches them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

VIEWS = frozenset(
    (
        "view", "expand", "t", "mT", "transpose", "permute", "unsqueeze", "select", "slice", "unbind", "_unsafe_view",
        "alias", "detach", "squeeze", "split", "_reshape_alias", "narrow", "as_strided", "reshape", "lift_fresh",
        "unflatten", "flatten", "movedim", "empty", "empty_like", "empty_strided", "resize_",
    )
)  # fmt: skip
"""Dispatches that move no data."""


def dispatched(run: Callable[[], Any]) -> list[str]:
    """The names of the kernels of one run, forward and backward, in order."""
    mode: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
    seen: list[str] = []

    class Counting(mode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.__name__.split(".")[0]
            if name not in VIEWS:
                seen.append(name)
            return func(*args, **(kwargs or {}))

    with Counting():
        run()
    return seen
