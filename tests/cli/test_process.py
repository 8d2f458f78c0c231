"""What the process does when its output cannot be written, and when it is interrupted: no traceback, a status."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from tests.cli.harness import MLP, presk

MAIN = "import sys; from presk_rel.cli import app; sys.argv = ['presk', *sys.argv[1:]]\n"
FULL = Path("/dev/full")


def process(code: str, *args: str, stdout: int | TextIO = subprocess.PIPE) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, "-c", MAIN + code, *args], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )
    return ran.returncode, ran.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("args", [("explain", "E2003"), ("dump", MLP, "--stage", "core"), ("--help",)])
def test_a_full_disk_is_said(args: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        assert process("app.main()", *args, stdout=full) == (
            1,
            "presk: cannot write the output: No space left on device\n",
        )


def test_before_and_after_a_command_an_interrupt_ends_the_process() -> None:
    """As a shell wants it of a process that the signal ends."""
    code = "import signal; app.group.format_help = lambda *_: signal.raise_signal(signal.SIGINT); app.main()"
    assert process(code, "--help") == (-signal.SIGINT, "")


INTERRUPTED = """
import signal
from presk_rel.diagnostics import catalogue

class Pages:
    def get(self, code):
        signal.raise_signal(signal.SIGINT)

catalogue.CATALOGUE = Pages()
app.main()
"""


def test_an_interrupted_command_says_so() -> None:
    assert process(INTERRUPTED, "explain", "E2003") == (130, "")


@pytest.mark.parametrize(
    "args",
    [
        ("export", MLP, "-o", "/nowhere/out.py"),
        ("run", MLP, "--entry", "mse", "--dim", "B=1", "--dim", "D=1", "--out", "/nowhere/out.npz"),
        ("bench", MLP, "--entry", "mse", "--dim", "B=1", "--dim", "D=1", "--plot", "/nowhere/out.svg"),
    ],
)
def test_a_folder_that_is_not_there_is_found_before_anything_is_computed(args: tuple[str, ...]) -> None:
    ran = presk(*args)
    assert ran.status == 2 and "there is no folder /nowhere" in ran.err


def test_a_file_that_cannot_be_written_is_wrong_usage() -> None:
    ran = presk("export", MLP, "-o", "/dev/full")
    assert ran.status == 2 and "cannot write to /dev/full: No space left on device" in ran.err
