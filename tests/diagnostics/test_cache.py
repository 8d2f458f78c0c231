"""What is kept in the user's cache folder: read back as written, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import cache


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRESK_CACHE", str(tmp_path))
    return tmp_path / "presk"


def test_what_was_written_is_read() -> None:
    cache.write("a.json", cache.digest("source"), "{}\nℝ")
    assert cache.read("a.json", cache.digest("source")) == "{}\nℝ"


def test_what_was_made_of_something_else_is_not() -> None:
    cache.write("a.json", cache.digest("source"), "{}")
    assert cache.read("a.json", cache.digest("other")) is None


@pytest.mark.parametrize("damage", [b"", b"x", b"\xff", b"0123\n{}"])
def test_what_was_damaged_is_not(place: Path, damage: bytes) -> None:
    cache.write("a.json", cache.digest("source"), "{}")
    (place / "a.json").write_bytes(damage)
    assert cache.read("a.json", cache.digest("source")) is None


def test_no_file_is_left_over(place: Path) -> None:
    cache.write("a.json", cache.digest("source"), "{}")
    assert [p.name for p in place.iterdir()] == ["a.json"]


def test_a_folder_that_cannot_be_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRESK_CACHE", str(tmp_path / "file"))
    cache.write("a.json", "0", "{}")
    assert cache.read("a.json", "0") is None
