"""Kernels that torch runs, counted where it dispatches them."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
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


_LAUNCH = re.compile(
    r"^ +(?:\w+ = )?(?:extern_kernels\.\w+|cpp_fused_\w+|triton_\w+\.run|torch\.ops\.\w+\.[\w.]+|aten\.[\w.]+)\(",
    re.MULTILINE,
)


def generated(run: Callable[[], Any]) -> int | None:
    """The kernels of one run of what `torch.compile` makes at this first run, as Inductor's code calls them; None where
    it makes none that can be read."""
    cache: Any = import_module("torch._inductor.codecache").PyCodeCache
    before = len(getattr(cache, "modules", ()))
    run()
    files = [str(m.__file__) for m in getattr(cache, "modules", ())[before:]]
    calls = (text[text.rindex("def call(") :] for text in map(_read, files) if "def call(" in text)
    counts = [len(_LAUNCH.findall(text)) for text in calls]
    return sum(counts) if counts else None


def _read(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")
