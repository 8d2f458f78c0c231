"""The process that compiles: what it does is asked for line by line, and nothing is left of it, however it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from presk_rel.exec.torch import inductor_process
from presk_rel.exec.torch.inductor_process import BuildError, build, shared

SERVER = """
import json, os, sys
from presk_rel.exec.torch import inductor_build

def build(job):
{body}

inductor_build.build = build
inductor_build.serve()
"""
"""The real process but for the compiler."""
WRITES = "open(job['out'], 'w').write(str(os.getpid()))"
STUCK = """
import pathlib, subprocess
inner = subprocess.Popen(["sleep", "100"])
pathlib.Path(job["scratch"], "half").write_text("")
pathlib.Path(job["noted"]).write_text(f"{os.getpid()} {inner.pid}")
inner.wait()
"""
"""A compiler that waits for what it started."""


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has another compiler run."""

    def serve(body: str) -> None:
        text = SERVER.format(body="\n".join(f"  {line}" for line in body.splitlines()))
        monkeypatch.setattr(inductor_process, "COMMAND", ("-c", text))

    return serve


def job(tmp_path: Path, **more: Any) -> dict[str, Any]:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return {"out": str(tmp_path / "out"), "scratch": str(scratch), "noted": str(tmp_path / "noted"), **more}


def ended(pid: int) -> bool:
    """Whether a process has ended (one that nobody waited for counts)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def eventually(found: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not found() and time.monotonic() < until:
        time.sleep(0.02)
    return found()


def test_builds_within_shared_are_done_by_one_process(tmp_path: Path, serving: Callable[[str], None]):
    serving(WRITES)
    out, pids = tmp_path / "out", list[str]()

    def built() -> None:
        out.unlink(missing_ok=True)
        build(job(tmp_path), "g++")
        pids.append(out.read_text())

    with shared():
        built()
        built()
    built()
    assert pids[0] == pids[1] != pids[2]
    assert eventually(lambda: all(ended(int(p)) for p in pids))


def test_another_compiler_is_another_process(tmp_path: Path, serving: Callable[[str], None]):
    serving("open(job['out'], 'w').write(os.environ['CXX'])")
    with shared():
        for cxx in ("g++", "clang++ -O3"):
            build(job(tmp_path), cxx)
            assert (tmp_path / "out").read_text() == cxx


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('no\\x1b code')", "RuntimeError: no code"),
        ("print('out of luck'); sys.stdout.flush(); os._exit(3)", "out of luck"),
        ("os._exit(3)", "status 3"),
        ("pass", "wrote nothing"),
        ("os.kill(os.getpid(), 9)", "status -9"),
    ],
)
def test_what_fails_is_said_and_the_next_build_is_done(
    tmp_path: Path, serving: Callable[[str], None], body: str, said: str
):
    serving(f"if job.get('fails'):\n  {body}\nelse:\n  {WRITES}")
    with shared():
        for _ in range(2):
            (tmp_path / "out").unlink(missing_ok=True)
            with pytest.raises(BuildError, match=said):
                build(job(tmp_path, fails=True), "g++")
            build(job(tmp_path), "g++")
            assert (tmp_path / "out").read_text()


def test_python_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nothing/python")
    with pytest.raises(BuildError, match=r"cannot be run: .*/nothing/python"):
        build(job(tmp_path), "g++")


def test_an_interrupt_ends_the_compilers_too(tmp_path: Path, serving: Callable[[str], None]):
    serving(STUCK)
    noted, given = tmp_path / "noted", job(tmp_path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        with pytest.raises(KeyboardInterrupt):
            while True:
                try:
                    build(given, "g++")
                except KeyboardInterrupt:
                    if noted.exists() and noted.read_text():
                        signal.setitimer(signal.ITIMER_REAL, 0)
                        raise
                    signal.setitimer(signal.ITIMER_REAL, 2, 0.2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    pids = [int(x) for x in noted.read_text().split()]
    assert all(ended(p) for p in pids)


def test_compilers_end_with_the_process_that_waits_for_them(tmp_path: Path, serving: Callable[[str], None]):
    serving(STUCK)
    given, noted = job(tmp_path), tmp_path / "noted"
    text = f"""
import json
from presk_rel.exec.torch import inductor_process
inductor_process.COMMAND = {inductor_process.COMMAND!r}
inductor_process.build(json.loads({json.dumps(given)!r}), "g++")
"""
    waiting = subprocess.Popen([sys.executable, "-c", text])
    assert eventually(lambda: noted.exists() and bool(noted.read_text()))
    os.kill(waiting.pid, signal.SIGKILL)
    waiting.wait()
    pids = [int(x) for x in noted.read_text().split()]
    assert eventually(lambda: all(ended(p) for p in pids) and not Path(given["scratch"]).exists())
