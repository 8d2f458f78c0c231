"""The benchmark scripts run: what is not there is refused, and every row and side can be built."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from presk_rel.exec.torch import library
from presk_rel.exec.torch.attention import SWITCH
from tests.exec.torch.as_on_cuda import on_cuda
from tests.exec.torch.fused_attention import fused

__all__ = ["on_cuda"]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def ran(*arguments: str, timeout: int = 1500) -> subprocess.CompletedProcess[str]:
    script, *rest = arguments
    command = [sys.executable, str(BENCHMARKS / script), *rest]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def test_a_gpu_that_is_not_there_is_refused():
    done = ran("gpu.py", "--device", "cuda:99", timeout=120)
    assert done.returncode == 3
    assert done.stderr.startswith("[E7102] the device `cuda:99` is not there")


def test_a_gpu_run_that_has_to_stop_shows_what_it_has():
    done = ran("gpu.py", "--device", "cpu", "--quick", "--stop", "1", timeout=120)
    assert done.returncode == 1
    assert "| MLP D=4 B=2 f32 *" in done.stdout
    assert "left out: MLP D=4 B=2: stopped: no time" in done.stdout


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("gpu")


def test_attention_is_timed_both_ways_where_it_is_there(gpu: Any, on_cuda: pytest.MonkeyPatch):
    on_cuda.setattr(library, "FEW_KEYS", 0)
    for row, asked in ((gpu.gpt(11, 16, 2, 1, 4, 2, 1), True), (gpu.ROWS["mlp"][1], False)):
        program = gpu.program_of(row)
        plain = gpu.bound(program, row, "emit", "f32", "cpu")
        with fused() as called:
            found = gpu.with_calls(program, row, plain, "f32", "cpu")
        assert called.names == (["efficient", "efficient_back"] if asked else [])
        assert (found is not None) == asked
        assert SWITCH not in os.environ


def test_a_side_that_is_wrong_is_said_to_be_and_is_not_the_fastest(gpu: Any, monkeypatch: pytest.MonkeyPatch):
    row = gpu.QUICK["mlp"][1]
    right = gpu.bound(gpu.program_of(row), row, "emit", "f32", "cpu")
    wrong = [x + 1 for x in gpu.leaves(torch, right.result)]
    sides = {"emit": lambda: right, "calls": lambda: lambda: tuple(wrong), "eager": lambda: right}
    monkeypatch.setattr(gpu, "sides_of", lambda *_: sides)
    found = gpu.Found("MLP")
    gpu.measure(row, found, "f32", "cpu", float("inf"))
    assert [x.split(" (")[0] for x in found.left] == ["calls as a right one"]
    assert set(found.samples) == {"emit", "calls", "eager"}
    times = {n: gpu.median(found, n) for n in found.samples}
    assert f"| {times['eager'] / times['emit']:.2f}× eager |" in gpu.shown(found, "f32")


@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_gradients_quick():
    done = ran("gradients.py", "--quick")
    assert done.returncode == 0, done.stderr
    row = next(x for x in done.stdout.splitlines() if x.startswith("| mlp4 "))
    assert len(row.split("|")) == 10
    assert float(row.split("|")[-2]) < 2e-6


@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_everything_of_the_gpu_script_but_the_graphs():
    done = ran("gpu.py", "--device", "cpu", "--quick", "--seconds", "1400", "--stop", "1500")
    assert done.returncode == 0, done.stderr
    assert "left out" not in done.stdout
    head, _, *rows = [x.split("|") for x in done.stdout.splitlines() if x.startswith("|")]
    assert len(rows) == 2
    for row in rows:
        assert [name.strip() for name, cell in zip(head, row, strict=True) if cell.strip() == "–"] == ["calls"]


@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_the_optimizer_against_torch_compile():
    done = ran("optimizer.py", "--width", "8", "--heads", "2", "--blocks", "2", "--vocabulary", "7", "--length", "3")
    assert done.returncode == 0, done.stderr
    assert "less time" in done.stdout
