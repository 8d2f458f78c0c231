"""The distance of f64 and f32 torch runs from the proven result, for every entry of the examples that runs: the page
docs/conformance.md.

    PYTHONPATH=. python benchmarks/conformance.py [FILE…] [--bits 256] > docs/conformance.md

Inputs are synthesized from seed 0. A dim that no row of `DIMS` gives is 2, 3, 4, … in order of the entry's dims, or 4,
or 12, where those make no shape.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from presk_rel.core.ir import Function
from presk_rel.diagnostics import PreskError
from presk_rel.exec.conform import BOUNDS, Distance, distance
from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import Node, arguments
from presk_rel.exec.torch.run import Dtype
from presk_rel.session import Request, Session

EXAMPLES = Path(__file__).parent.parent / "examples"
DTYPES: tuple[Dtype, ...] = ("f64", "f32")
LENGTHS = ((2, 3, 4, 5, 6, 7), (4,), (12,))
RETRIED = ("E7003", "E7015", "E7017")
"""Codes of dims that make no value."""
TINY = {"V": 32, "D": 16, "H": 2, "L": 2}
CONSTS: dict[str, Mapping[str, int]] = {
    "gpt.psk": TINY,
    "minigpt.psk": TINY,
    "train_minigpt.psk": {f"m.{n}": v for n, v in TINY.items()},
}
"""Constants of the files whose own are too large to be run exactly."""
ARGS: dict[tuple[str, str], tuple[str, ...]] = {
    **{("field/gaussian_process.psk", f): ("width=1",) for f in ("kernel", "smooth", "loss", "loss_grad")},
    ("tour/deep.psk", "loss"): ("y=[[0.25, 0.5, 0.75], [0.5, 0.125, 1]]",),
    ("tour/deep.psk", "loss_grad"): ("y=[[0.25, 0.5, 0.75], [0.5, 0.125, 1]]",),
}
"""Arguments where normal draws make no sense."""
DIMS: dict[tuple[str, str], Mapping[str, int]] = {
    ("tour/deep.psk", "loss"): {"B": 2, "D": 3},
    ("tour/deep.psk", "loss_grad"): {"B": 2, "D": 3},
}


@dataclass(frozen=True, slots=True)
class Row:
    """An entry: its distances by dtype, or why it was not run."""

    entry: str
    dims: Mapping[str, int]
    distances: Mapping[str, Distance] = field(default_factory=dict[str, Distance])
    refused: str = ""

    @property
    def conforms(self) -> bool:
        return all(d.relative <= BOUNDS[t] and not d.differing for t, d in self.distances.items())


def entries(program: Session) -> list[str]:
    """The functions that the main file declares, in order, but those that take or return functions."""
    runnable, path = program.differentiated.functions, program.loaded.files[-1].path
    return [f.name for f in program.typed.functions if f.span.file == path and f.name in runnable]


def requests(fn: Function, given: Mapping[str, Node], dims: Mapping[str, int]) -> Iterator[Request]:
    free = [d for d in fn.dims if d not in dims]
    for lengths in LENGTHS:
        chosen = {d: lengths[min(i, len(lengths) - 1)] for i, d in enumerate(free)}
        yield Request(given, {**chosen, **dims})


def row(program: Session, file: str, entry: str, bits: int) -> Row:
    refused, dims = "", {}
    given = arguments(ARGS.get((file, entry), ()))
    for request in requests(program.entry(entry), given, DIMS.get((file, entry), {})):
        try:
            exact = program.run_exact(entry, request, Options(bits=bits))
            measured = {t: program.run_torch(entry, request, t, "cpu", planned=True).value for t in DTYPES}
        except PreskError as error:
            said = error.diagnostics[0]
            refused, dims = refused or f"{said.code}: {said.message}", dict(request.dims)
            if said.code in RETRIED:
                continue
            break
        return Row(entry, dict(exact.dims), {t: distance(exact.value, v) for t, v in measured.items()})
    return Row(entry, dims, {}, refused)


def cells(r: Row) -> list[str]:
    dims = " ".join(f"{n}={v}" for n, v in r.dims.items())
    if r.refused:
        return [f"`{r.entry}`", dims, "", f"not run: {r.refused}", ""]
    count = next(iter(r.distances.values())).entries
    return [f"`{r.entry}`", dims, str(count or "–"), *(_cell(d) for d in r.distances.values())]


def _cell(d: Distance) -> str:
    if d.differing:
        return f"**{d.differing} differ**"
    if not d.entries:
        return "equal"
    return f"{float(d.relative):.1e}" if d.relative else "0"


HEAD = """# Conformance: torch against the proven results

Written by `PYTHONPATH=. python benchmarks/conformance.py > docs/conformance.md`.

For every function of the examples that runs: its exact value, proven to {bits} bits ([exact.md](exact.md)), against the
same optimized program on torch on the same inputs, synthesized from seed 0. The distance is the largest difference of
two entries over the largest entry of the proven result: not per tensor, since a gradient that is analytically 0 has
rounding noise for its only entries. Torch at f32 also rounds its inputs, which the distance includes. Indices,
masks and keys are compared exactly. `presk conform` allows 1e-12 at f64 and 2e-6 at f32, and more
of what magnifies changes of its inputs ([torch.md](torch.md#precision)).

Not in the tables: initializers `M.init`, which are draws and exact on both sides, and functions that take or return
functions, which no entry can be. `presk conform FILE --entry F`, and `--all`, measure one's own programs.
"""


def page(files: list[str], bits: int) -> Iterator[str]:
    yield HEAD.format(bits=bits)
    for file in files:
        consts = CONSTS.get(file, {})
        program = Session(str(EXAMPLES / file), consts)
        yield f"## examples/{file}\n"
        if consts:
            yield "With " + " ".join(f"`--const {n}={v}`" for n, v in consts.items()) + ".\n"
        yield "| entry | dims | reals | f64 | f32 |\n|---|---|---:|---:|---:|"
        for entry in entries(program):
            yield "| " + " | ".join(cells(row(program, file, entry, bits))) + " |"
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--bits", type=int, default=256)
    chosen = parser.parse_args()
    found = sorted(str(p.relative_to(EXAMPLES)) for p in EXAMPLES.rglob("*.psk") if p.parent.name != "diag")
    for line in page(chosen.files or found, chosen.bits):
        print(line, flush=True)


if __name__ == "__main__":
    main()
