"""The cache of compiled artifacts on disk: `$XDG_CACHE_HOME/presk/inductor` (by default `~/.cache/presk/inductor`).

An entry is a file `<key>.pt2`, and `<key>.json` with its SHA-256 and what is known of it. The key is a hash of all that
the machine code depends on. An entry that is damaged counts as none, and is built again. Since an entry is machine code
that is loaded, the folder, and the one it is in, must be the user's own and closed to others; where they are not, or
nothing can be written there, entries live in a folder of this process alone. The least recently used entries beyond
`MOST_BYTES` are removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MOST_BYTES = 512 * 2**20
"""What the folder holds at most, the newest entry not counted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A complete artifact: its file, and what was noted of it when it was built."""

    path: Path
    about: Mapping[str, Any]


def key(parts: Mapping[str, Any]) -> str:
    """The name of the entry that all these determine."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def folder() -> Path | None:
    """The folder of the entries, which only the user can write to, if anybody; None where there is none."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    try:
        root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
        found = root / "presk" / "inductor"
        found.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        found.mkdir(exist_ok=True, mode=0o700)
        return found if _own(found.parent) and _own(found) else None
    except (OSError, RuntimeError, ValueError):  # a name that no file can have, a user without a home
        return None


def _own(path: Path) -> bool:
    about = path.stat()
    mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
    return mine and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _temporary() -> Path:
    """A folder that ends with the process."""
    import atexit

    found = tempfile.mkdtemp(prefix="presk-inductor-")
    atexit.register(shutil.rmtree, found, ignore_errors=True)
    return Path(found)


def find(name: str) -> Entry | None:
    """The entry, if it is there and whole."""
    homes = [folder(), _temporary() if _temporary.cache_info().currsize else None]
    return next((found for home in homes if home is not None and (found := _found(home, name)) is not None), None)


def _found(home: Path, name: str) -> Entry | None:
    path = home / f"{name}.pt2"
    try:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if about["sha256"] != _digest(path):
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    with suppress(OSError):  # of a folder that can only be read
        os.utime(path)
    return Entry(path, about)


def store(name: str, built: Path, about: Mapping[str, Any]) -> Entry:
    """Move a built file into the cache, or where that cannot be into this process's own. Two processes that build the
    same entry store the same. OSError where no file can be written."""
    home = folder()
    if home is not None:
        with suppress(OSError):  # read-only, or full
            return _stored(home, name, built, about)
    return _stored(_temporary(), name, built, about)


def _stored(home: Path, name: str, built: Path, about: Mapping[str, Any]) -> Entry:
    path = home / f"{name}.pt2"
    noted = {**about, "sha256": _digest(built)}
    with tempfile.TemporaryDirectory(dir=home, ignore_cleanup_errors=True) as scratch:
        beside = Path(scratch) / "entry"
        shutil.copyfile(built, beside)
        beside.replace(path)
        beside.write_text(json.dumps(noted, sort_keys=True), encoding="utf-8")
        beside.replace(path.with_suffix(".json"))
    _evict(home, path)
    return Entry(path, noted)


def _evict(home: Path, newest: Path) -> None:
    """Remove the least recently used entries beyond the bound."""
    sized: list[tuple[Path, os.stat_result]] = []
    for path in home.glob("*.pt2"):
        with suppress(FileNotFoundError):  # another process removes some
            sized.append((path, path.stat()))
    total = 0
    for path, about in sorted(sized, key=lambda x: (-x[1].st_mtime_ns, x[0].name)):
        total += about.st_size if path != newest else 0
        if path != newest and total > MOST_BYTES:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
