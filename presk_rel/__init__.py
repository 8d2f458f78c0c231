"""presk_rel: the relational compiler of Presk. Importing this package imports nothing heavy.

`presk_rel.load(path)` is the way in from Python (`presk_rel.api`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from presk_rel.api import Program, load

__version__ = "0.1.0"
__all__ = ["Program", "__version__", "load"]


def __getattr__(name: str) -> object:
    if name in ("load", "Program"):
        from presk_rel import api

        return getattr(api, name)
    raise AttributeError(f"module `presk_rel` has no attribute `{name}`")
