"""Reading files: what is text, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import Diagnostic
from presk_rel.syntax.parser import parse
from presk_rel.syntax.source import MAX_BYTES, read_source


def read(tmp_path: Path, data: bytes) -> str | Diagnostic:
    path = tmp_path / "a.psk"
    path.write_bytes(data)
    return read_source(str(path), "a.psk")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("dim θ\n".encode(), "dim θ\n"),
        (b"\xef\xbb\xbfdim A\n", "dim A\n"),
        (b"dim A\r\ndim B\r\n", "dim A\r\ndim B\r\n"),
        (b"dim A\rdim B\r", "dim A\ndim B\n"),
        (b"", ""),
    ],
)
def test_text(tmp_path: Path, data: bytes, text: str) -> None:
    assert read(tmp_path, data) == text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_gives_the_same_program(tmp_path: Path, end: str) -> None:
    source = end.join(["-- a comment", "fn f(x) =", "  let y = x", "  y", 'const A = "s"', ""])
    text = read(tmp_path, source.encode())
    assert isinstance(text, str)
    result = parse(text, "a.psk")
    assert result.diagnostics == [] and len(result.file.decls) == 2
    assert [d.span.start.line for d in result.file.decls] == [2, 5]


@pytest.mark.parametrize(
    ("data", "message", "line", "column"),
    [
        (b"dim A\ndim \xe9\n", "byte 0xE9 is not UTF-8", 2, 5),
        ("θθ ".encode() + b"\xff", "byte 0xFF is not UTF-8", 1, 4),
        (b"\xed\xa0\x80", "byte 0xED is not UTF-8", 1, 1),
        (b"dim A\n\0", "it contains a zero byte", 2, 1),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, message: str, line: int, column: int) -> None:
    found = read(tmp_path, data)
    assert isinstance(found, Diagnostic) and found.span is not None
    assert (found.code, found.message) == ("E0008", f"`a.psk` is not a text file: {message}")
    assert (found.span.start.line, found.span.start.column, found.span.file) == (line, column, "a.psk")


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    found = read(tmp_path, b"-" * (MAX_BYTES + 1))
    assert isinstance(found, Diagnostic) and found.code == "E0009"
    assert isinstance(read(tmp_path, b"-" * MAX_BYTES), str)


@pytest.mark.parametrize("path", ["missing.psk", ".", "/dev/zero", "a\0b", "x/" * 3000])
def test_what_cannot_be_read(path: str) -> None:
    found = read_source(path)
    assert isinstance(found, Diagnostic) and (found.code, found.span) == ("E0010", None)
