"""Every example, by the commands: it checks, runs on both executors, is optimized, and its proof verifies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from presk_rel.session import Session
from tests.acceptance.examples import CONSTS, PATHS, shown
from tests.cli.harness import presk

QUICK = ("mlp", "hinge", "03_attention", "layer_norm", "huber")
"""Run by default."""


def options(name: str, pairs: Iterable[tuple[str, object]]) -> list[str]:
    return [text for key, value in pairs for text in (name, f"{key}={value}")]


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=() if p.stem in QUICK else pytest.mark.slow) for p in PATHS]
)
def test_every_command_does_its_work(path: Path) -> None:
    consts = CONSTS.get(path.name, {})
    example = shown(path, Session(str(path), consts))
    file = [str(path), *options("--const", consts.items())]
    entry = [*file, "--entry", example.entry]
    dims = options("--dim", example.dims.items())
    args = options("--arg", ((k, [int(x) for x in v]) for k, v in example.args.items()))
    ran = {
        "check": presk("check", *file),
        "run": presk("run", *entry, *dims, *args, "--digits", "10"),
        "run on torch": presk("run", *entry, *dims, *args, "--executor", "torch"),
        "conform": presk("conform", *entry, *dims, *args),
        "opt": presk("opt", *entry, *dims, "--report"),
        "prove": presk("prove", *entry, "--verify"),
    }
    assert {what: r.err or r.out[-500:] for what, r in ran.items() if r.status != 0} == {}
