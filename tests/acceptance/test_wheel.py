"""The wheel is whole: built, installed into an environment without the source, run from another folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(280)
def test_the_wheel_runs_from_another_folder(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, source, ignore=ignored)
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    python = environment(tmp_path / "empty")
    run([str(python), "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], tmp_path)
    shutil.rmtree(source)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(ROOT / "examples" / "mlp.psk", elsewhere)
    presk = str(python.parent / "presk")
    assert "site-packages" in run([str(python), "-c", "import presk_rel; print(presk_rel.__file__)"], elsewhere)
    run([presk, "check", "mlp.psk"], elsewhere)
    assert "E2003" in run([presk, "explain", "E2003"], elsewhere)
    assert "C∞" in run([presk, "check", "mlp.psk", "--summary"], elsewhere)
    assert "verified" in run([presk, "prove", "mlp.psk", "--entry", "mse_grad", "--verify"], elsewhere)
    run([presk, "facts", "mlp.psk", "-o", "facts"], elsewhere)
    assert (elsewhere / "facts" / "presk_rel" / "rules" / "scopes.dl").exists()


def environment(folder: Path) -> Path:
    """A fresh virtual environment that sees this one's dependencies, but not the source of presk."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    site = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
