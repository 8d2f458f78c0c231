"""The process in which a program is compiled ahead of time (`inductor_build`), as this one sees it.

It leads a group of its own, so that whatever ends the wait for it (Ctrl-C, an error) ends the compilers that it
started too, and it ends by itself when this process does. Importing the compiler takes longer than compiling a small
program: builds within `shared()` are done by one process, one after another.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

COMMAND = ("-P", "-m", "presk_rel.exec.torch.inductor_build")
"""After Python: nothing is imported from the current folder."""
PATIENCE = 3.0
"""Seconds in which compilers that are told to end remove what they have half written."""


class BuildError(Exception):
    """The compiler failed; its last words."""


@dataclass(slots=True)
class Builder:
    """A process that compiles one job after another; one that failed is replaced at the next."""

    _child: subprocess.Popen[str] | None = None
    _said: IO[bytes] | None = None
    _cxx: str = ""

    def build(self, job: Mapping[str, Any], cxx: str) -> None:
        """Have the job's `out` written, by this C++ compiler. `BuildError` where that fails."""
        try:
            if self._child is None or self._cxx != cxx:
                self.close()
                self._start(cxx)
            self._ask(job)
        except OSError as error:
            self.close()
            raise BuildError(f"the compiler cannot be run: {cleaned(str(error))}") from error
        except BaseException:
            self.close()
            raise

    def _start(self, cxx: str) -> None:
        """Start it with the modules that this process imports."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "CXX": cxx}
        self._said, self._cxx = tempfile.TemporaryFile(), cxx  # noqa: SIM115
        self._child = subprocess.Popen(
            [sys.executable, *COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
            env=environment,
            start_new_session=True,
        )

    def _ask(self, job: Mapping[str, Any]) -> None:
        child = self._child
        assert child is not None and child.stdin is not None and child.stdout is not None
        with suppress(BrokenPipeError):  # it has ended: its last words say why
            child.stdin.write(json.dumps(job) + "\n")
            child.stdin.flush()
        if child.stdout.readline():
            if Path(job["out"]).exists():
                return
            raise BuildError("the compiler wrote nothing")
        child.wait()
        raise BuildError(f"the compiler failed: {self._last_words() or f'status {child.returncode}'}")

    def _last_words(self) -> str:
        assert self._said is not None
        self._said.seek(0)
        lines = [x.strip() for x in self._said.read().decode(errors="replace").splitlines() if x.strip()]
        return cleaned(lines[-1]) if lines else ""

    def close(self) -> None:
        """End the process, and what it started."""
        child, self._child = self._child, None
        if child is not None:
            _end(child)
        if self._said is not None:
            self._said.close()
            self._said = None


def _end(child: subprocess.Popen[str]) -> None:
    """Nothing of the group is left afterwards. Compilers that are told to end remove what they have half written, which
    others would take for whole (a precompiled header)."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    until = time.monotonic() + PATIENCE
    _signal(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(PATIENCE)
    while _signal(child.pid, 0) and time.monotonic() < until:
        time.sleep(0.01)
    _signal(child.pid, signal.SIGKILL)
    child.wait()


def _signal(group: int, number: int) -> bool:
    """Whether there was anybody to be told."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


_SHARED: ContextVar[Builder | None] = ContextVar("_SHARED", default=None)


@contextmanager
def shared() -> Generator[None]:
    """Builds in here are done by one process."""
    builder = Builder()
    before = _SHARED.set(builder)
    try:
        yield
    finally:
        _SHARED.reset(before)
        builder.close()


def build(job: Mapping[str, Any], cxx: str) -> None:
    """Compile a job (see `inductor_build`) into its `out`. `BuildError` where that fails."""
    builder = _SHARED.get()
    if builder is not None:
        builder.build(job, cxx)
        return
    builder = Builder()
    try:
        builder.build(job, cxx)
    finally:
        builder.close()


def cleaned(text: str) -> str:
    """A foreign message as part of one of presk's."""
    return "".join(c for c in text if c.isprintable())[:200]
