"""Every example, by the commands: it checks, runs on both executors, is optimized, and its proof verifies."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from presk_rel.core.ir import Function
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.session import Session
from tests.acceptance.examples import EXAMPLES as FIELD
from tests.acceptance.examples import Example
from tests.cli.harness import presk

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"V": 5, "D": 4, "H": 2, "L": 2}
CONSTS = {"gpt.psk": SMALL, "minigpt.psk": SMALL, "train_minigpt.psk": {f"m.{k}": v for k, v in SMALL.items()}}
"""Constants to run with instead."""
PATHS = [p for p in sorted(EXAMPLES.rglob("*.psk")) if p.parent.name != "diag"]
QUICK = ("mlp", "hinge", "03_attention", "layer_norm", "huber")
"""Run by default."""


def shown(path: Path, session: Session) -> Example:
    """The entry that shows the example: in `examples/field` the table says it, elsewhere it is the last that runs."""
    known = next((e for e in FIELD if path.parent.name == "field" and e.file == path.stem), None)
    if known is not None:
        return known
    written = [session.core.functions[f.name] for f in session.typed.functions]
    last = [f for f in written if not any(isinstance(t, FunctionType) for t in types(f))][-1]
    return Example(path.stem, last.name, dict.fromkeys(last.dims, 2))


def types(f: Function) -> list[object]:
    return [f.result, *(p.type for p in f.params)]


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
