"""What can be computed again, kept as text in the user's cache folder.

A file holds the digest of what it was computed from and the digest of its own body, so that a stale or damaged one is
not read; any trouble with it means computing again, and is never an error.
"""

from __future__ import annotations

import os
from importlib.util import source_hash


def digest(text: str) -> str:
    """64 bits in hexadecimal. Against accidents only: the folder is the user's own. (`hashlib` alone would take a
    hundredth of the time of `presk check` to import.)"""
    return source_hash(text.encode("utf-8", "surrogatepass")).hex()


def folder() -> str | None:
    """The folder, made if need be; None where there can be none."""
    root = os.environ.get("PRESK_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(root, "presk")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return None
    return path


def read(name: str, source: str) -> str | None:
    """The body kept under `name`, if it was computed from `source` (a digest) and is as it was written."""
    place = folder()
    try:
        if place is None:
            return None
        with open(os.path.join(place, name), encoding="utf-8") as file:
            head, _, body = file.read().partition("\n")
    except (OSError, ValueError):
        return None
    return body if head == f"{source} {digest(body)}" else None


def write(name: str, source: str, body: str) -> None:
    """By rename, so that no reader sees half a file."""
    import tempfile

    place, made = folder(), None
    if place is None:
        return
    try:
        handle, made = tempfile.mkstemp(dir=place, suffix=".tmp")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"{source} {digest(body)}\n{body}")
        os.replace(made, os.path.join(place, name))
    except OSError:
        if made is not None and os.path.exists(made):
            os.remove(made)
