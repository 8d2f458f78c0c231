"""Differentiation makes very many small values, none of them cyclic: the cycle collector would go through all of them
again and again, which takes more than linear time."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Generator[None]:
    """No collection of cycles inside; afterwards as it was before."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
