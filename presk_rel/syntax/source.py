"""Reading a source file: bytes → text, or what is wrong with them. Nothing else in this folder reads programs."""

from __future__ import annotations

import os
import stat
from typing import Final

from presk_rel.diagnostics import Diagnostic, Pos, Span

MAX_BYTES: Final = 2_000_000
"""Larger files are refused (E0009): a program is written by people, and this much is read in seconds."""

_BOM: Final = b"\xef\xbb\xbf"


def read_source(path: str, shown: str | None = None) -> str | Diagnostic:
    """The text of the file at `path`; `shown` is how diagnostics name it (default: as given).

    UTF-8, a byte order mark at the start is dropped. A lone carriage return counts as a line break and becomes U+000A,
    so that positions still count the file's characters; the carriage return of a CRLF stays and is white space.
    """
    name = path if shown is None else shown
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return _unreadable(name, "not a regular file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return _unreadable(name, (reason or str(error)).lower())
    if len(data) > MAX_BYTES:
        size = f"{MAX_BYTES // 1_000_000} MB"
        return Diagnostic("E0009", f"`{name}` is larger than {size}", None, help="split the program and use `import`")
    return _decode(data.removeprefix(_BOM), name)


def _unreadable(name: str, reason: str) -> Diagnostic:
    return Diagnostic("E0010", f"cannot read `{name}`: {reason}", None)


def _decode(data: bytes, name: str) -> str | Diagnostic:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        return _not_text(name, before, f"byte 0x{data[error.start]:02X} is not UTF-8")
    at = text.find("\0")
    if at >= 0:
        return _not_text(name, text[:at], "it contains a zero byte")
    return text.replace("\r\n", "\0").replace("\r", "\n").replace("\0", "\r\n") if "\r" in text else text


def _not_text(name: str, before: str, reason: str) -> Diagnostic:
    here = Pos(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, len(before))
    return Diagnostic("E0008", f"`{name}` is not a text file: {reason}", Span(name, here, here))
