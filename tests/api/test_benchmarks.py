"""The benchmark scripts run: what is not there is refused, and every row and side can be built."""

import subprocess
import sys
from pathlib import Path

import pytest

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
    assert "–" not in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_the_optimizer_against_torch_compile():
    done = ran("optimizer.py", "--width", "8", "--heads", "2", "--blocks", "2", "--vocabulary", "7", "--length", "3")
    assert done.returncode == 0, done.stderr
    assert "less time" in done.stdout
