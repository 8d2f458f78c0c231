"""The table of diagnostic codes: a page for every code a pass may emit.

Each family of codes is a module of this folder with a tuple `PAGES`; a new family is a new file, found by its presence.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage, Kind

__all__ = ["CATALOGUE", "CodePage", "Kind"]


def _collect() -> dict[str, CodePage]:
    """Pages by code, in order. A code with two pages is an error."""
    families = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "page")
    pages: list[CodePage] = [p for name in families for p in import_module(f"{__name__}.{name}").PAGES]
    catalogue: dict[str, CodePage] = {}
    for page in sorted(pages, key=lambda page: page.code):
        if page.code in catalogue:
            raise ValueError(f"two pages for {page.code}")
        catalogue[page.code] = page
    return catalogue


CATALOGUE: Final = _collect()
