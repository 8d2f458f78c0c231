"""The cache of machine code: bounded, the user's own, and never in the way."""

from pathlib import Path
from typing import Any

import pytest

from presk_rel.exec.torch import inductor_cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "presk" / "inductor"


def stored(name: str, size: int, tmp_path: Path) -> inductor_cache.Entry:
    built = tmp_path / "built"
    built.write_bytes(name.encode() * size)
    return inductor_cache.store(name, built, {"kernels": 1})


def test_the_cache_is_bounded_by_use(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inductor_cache, "MOST_BYTES", 25)
    for i, name in enumerate("abc"):
        entry = stored(name, 10, tmp_path)
        inductor_cache.os.utime(entry.path, (i, i))
    found = inductor_cache.find("a")
    assert found is not None
    assert found.about["kernels"] == 1
    stored("d", 10, tmp_path)
    assert sorted(p.stem for p in cache.glob("*.pt2")) == ["a", "c", "d"]
    assert inductor_cache.find("b") is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"sha256": "0"}'])
def test_a_damaged_entry_counts_as_none(cache: Path, tmp_path: Path, damage: str):
    entry = stored("a", 3, tmp_path)
    assert inductor_cache.find("a") == entry
    entry.path.with_suffix(".json").write_text(damage)
    assert inductor_cache.find("a") is None


def test_a_folder_that_others_can_write_to_is_not_used(cache: Path):
    assert inductor_cache.folder() == cache
    assert cache.stat().st_mode & 0o077 == cache.parent.stat().st_mode & 0o077 == 0
    for path in (cache, cache.parent):
        path.chmod(0o770)
        assert inductor_cache.folder() is None
        path.chmod(0o700)
    assert inductor_cache.folder() == cache


@pytest.mark.parametrize("base", ["{}/file", "/dev/null/x", "{}/" + "x" * 300])
def test_where_no_folder_can_be_made_entries_are_the_process_s_own(
    base: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(inductor_cache.os, "environ", {"XDG_CACHE_HOME": base.format(tmp_path)})
    assert inductor_cache.folder() is None
    own(tmp_path)


def test_nor_where_the_user_has_no_home(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def homeless(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", classmethod(homeless))
    assert inductor_cache.folder() is None
    own(tmp_path)


def test_nor_where_the_disk_is_full_or_read_only(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before, copy = stored("a", 3, tmp_path), inductor_cache.shutil.copyfile

    def full(source: Path, target: Path) -> None:
        copy(source, target)
        if target.is_relative_to(cache):
            raise OSError(28, "No space left on device")

    def read_only(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(inductor_cache.shutil, "copyfile", full)
    own(tmp_path)
    assert sorted(p.name for p in cache.iterdir()) == ["a.json", "a.pt2"]
    monkeypatch.setattr(inductor_cache.os, "utime", read_only)
    assert inductor_cache.find("a") == before  # what is there can be read


def own(tmp_path: Path) -> None:
    """An entry is kept, and elsewhere."""
    entry = stored("b", 3, tmp_path)
    assert not entry.path.is_relative_to(tmp_path)
    assert inductor_cache.find("b") == entry
    assert entry.path.parent.stat().st_mode & 0o077 == 0
    assert stored("b", 3, tmp_path).path == entry.path
    entry.path.unlink()
    assert inductor_cache.find("b") is None


def test_a_link_to_a_folder_of_ones_own_is_used(cache: Path, tmp_path: Path):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    cache.parent.mkdir(mode=0o700)
    cache.symlink_to(real)
    entry = stored("a", 3, tmp_path)
    assert inductor_cache.find("a") == entry
    assert sorted(p.name for p in real.iterdir()) == ["a.json", "a.pt2"]


def test_entries_that_another_process_removes_are_no_trouble(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gone, see = stored("a", 3, tmp_path), Path.stat

    def stat(path: Path, **options: Any) -> Any:
        if path == gone.path:
            path.unlink(missing_ok=True)
        return see(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    stored("b", 3, tmp_path)
    assert inductor_cache.find("a") is None
