"""The two parts of generated code: what the host computes from keys and hyperparameters, and a function of tensors.

    def prelude(inputs):            keys to draws, hyperparameters to tensors: (tensors, kept)
    def compute(v0, v3, v7):        a pure function of tensors, of static shapes: what a compiler gets
    def entry(inputs, run=compute):         both; `run` may be a compiled `compute`

The body of a fold has the same two parts: its host part runs first, through all iterations, and hands each iteration's
draws to the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper, Key
from presk_rel.exec.torch.operand import Operand
from presk_rel.exec.torch.writer import Line, Writer, needed

HEADER = """import torch
from fractions import Fraction

from presk_rel.exec.torch import support

dtype = torch.{dtype}
device = torch.device({device!r})
"""


@dataclass(frozen=True, slots=True)
class Parts:
    """The lines of a function in its two parts. `handed` names the tensors, and lists of them by iteration, that the
    host makes for the other; `kept` and `found` are what each returns."""

    host: tuple[Line, ...]
    compute: tuple[Line, ...]
    handed: tuple[str, ...]
    kept: tuple[str, ...]
    found: tuple[str, ...]

    @property
    def kernels(self) -> int:
        return sum(x.kernels for x in (*self.host, *self.compute))


def on_host(x: Operand) -> bool:
    """Whether an operand is no tensor."""
    return isinstance(x.type, Key | Hyper)


def parts(writer: Writer, lines: list[Line], result: Iterable[Operand]) -> Parts:
    """The two parts of the lines that a result needs."""
    result = tuple(result)
    lines = needed(lines, set(_reads(x.name for x in result)))
    host, compute = [x for x in lines if x.host], [x for x in lines if not x.host]
    found = tuple(x.name for x in result if not on_host(x))
    read = _reads(found).union(*(x.reads for x in compute))
    if not writer.host.isdisjoint(read):
        raise PreskBug("torch", "a tensor is computed from a key on the device")
    handed = tuple(n for x in host for n in x.targets if n in read)
    return Parts(tuple(host), tuple(compute), handed, tuple(x.name for x in result if on_host(x)), found)


def _reads(names: Iterable[str]) -> frozenset[str]:
    return Line((), ", ".join(names), 0).reads


def listed(names: Iterable[str]) -> str:
    """The inside of a tuple of any length."""
    return "".join(f"{n}, " for n in names)


def function_text(name: str, taken: Iterable[str], lines: Iterable[str], returned: str, note: str = "") -> str:
    """A generated function."""
    rows = "\n".join([*lines, f"return {returned}"]).split("\n")
    return f"def {name}({', '.join(taken)}):{note}\n" + "".join(f"    {row}\n" for row in rows)


@dataclass(frozen=True, slots=True)
class Body:
    """The generated functions of a fold's body. `host` also returns, after its own accumulators, what it hands to
    `name`, whose last parameters that is."""

    host: str
    name: str
    handed: int
    kernels: int


def body_of(writer: Writer, lines: list[Line], taken: list[Operand], result: list[Operand]) -> Body:
    """Add the functions of a body to the file. One that no loop calls is left out: `host` where nothing is handed over
    and there is no accumulator, `name` where all accumulators are the host's."""
    split = parts(writer, lines, result)
    host, name = writer.name("f"), writer.name("f")
    mine = [x.name for x in taken if on_host(x)]
    others = [x.name for x in taken if not on_host(x)]
    if split.kept or split.handed:
        returned = f"({listed([*split.kept, *split.handed])})"
        writer.functions.append(function_text(host, mine, (x.text for x in split.host), returned))
    if split.found:
        body = function_text(
            name, [*others, *split.handed], (x.text for x in split.compute), f"({listed(split.found)})"
        )
        writer.functions.append(body)
    return Body(host, name, len(split.handed), split.kernels)


@dataclass(frozen=True, slots=True)
class Loop:
    """One part of a fold: accumulators (name, start, list of its values before each iteration), the arguments of a call
    with `{}` for the iteration's number, lists of what else an iteration returns."""

    order: range
    function: str
    accumulators: tuple[tuple[str, str, str | None], ...]
    arguments: tuple[str, ...]
    made: tuple[str, ...]
    kernels: int

    @property
    def targets(self) -> tuple[str, ...]:
        histories = (h for *_, h in self.accumulators if h is not None)
        return (*(n for n, *_ in self.accumulators), *histories, *self.made)

    def line(self, index: str, comment: str, *, host: bool) -> Line:
        """The loop as one statement."""
        names = [n for n, *_ in self.accumulators]
        histories = [(n, h) for n, _, h in self.accumulators if h is not None]
        text = [f"{listed(names)}= {listed(start for _, start, _ in self.accumulators)}"] if names else []
        text += [f"{n} = [None] * {len(self.order)}" for n in (*(h for _, h in histories), *self.made)]
        text += [f"for {index} in {self.order!r}:"]
        text += [f"    {h}[{index}] = {n}" for n, h in histories]
        made = listed([*names, *(f"{n}[{index}]" for n in self.made)])
        arguments = ", ".join(a.format(index) for a in self.arguments)
        text += [f"    {made}= {self.function}({arguments})  # {comment}"]
        return Line(self.targets, "\n".join(text), self.kernels * len(self.order), host)


def entry_text(writer: Writer, lines: list[Line], inputs: list[Operand], result: list[Operand], title: str) -> Entry:
    """`prelude`, `compute` and `entry`."""
    split = parts(writer, lines, result)
    read = _reads(split.found).union(*(x.reads for x in split.compute))
    given = [x.name for x in inputs if x.name in read] + list(split.handed)
    unpack = [f"{listed(x.name for x in inputs)}= inputs"] if inputs else []
    handed = f"({listed(given)}), ({listed(split.kept)})"
    found, kept = (iter(range(len(result))) for _ in range(2))
    places = (f"kept[{next(kept)}]" if on_host(x) else f"found[{next(found)}]" for x in result)
    texts = (
        function_text("prelude", ["inputs"], [*unpack, *(x.text for x in split.host)], handed),
        function_text("compute", given, (x.text for x in split.compute), f"({listed(map(_owned, split.found))})"),
        function_text(
            "entry",
            ["inputs", "run=compute"],
            ["given, kept = prelude(inputs)", *(["found = run(*given)"] if split.kept else [])],
            f"({listed(places)})" if split.kept else "run(*given)",
            title,
        ),
    )
    return Entry(texts, split.kernels)


@dataclass(frozen=True, slots=True)
class Entry:
    texts: tuple[str, ...]
    kernels: int


def _owned(name: str) -> str:
    """What is returned may be written to: never a constant of the file."""
    return f"{name}.clone()" if name.startswith("c") else name


def file_text(writer: Writer, entry: Entry, dtype: str, device: str) -> str:
    """The whole file: constants that something reads, bodies of folds, the entry."""
    bodies = [*writer.functions, *entry.texts]
    read = set(Line((), "\n".join(bodies), 0).reads)
    constants = "".join(f"{line.text}\n" for line in needed(writer.constants, read))
    return "\n\n".join([HEADER.format(dtype=dtype, device=device) + constants, *bodies])


def sliced_stacks(lines: Iterable[Line], leaves: list[Operand]) -> tuple[list[Operand], tuple[int, ...]]:
    """The results of the device, stacks as tuples of their slices, with how many these are."""
    stack = re.compile(r"torch\.stack\((\((?:[vc]\d+, )+\))\)")
    made = {x.targets[0]: stack.fullmatch(x.text.partition(" = ")[2].partition("  # ")[0]) for x in lines}
    found = [made.get(x.name) for x in leaves]
    slices = (m.group(1).count(",") if m else 0 for m, x in zip(found, leaves, strict=True) if not on_host(x))
    return [replace(x, name=m.group(1)) if m else x for x, m in zip(leaves, found, strict=True)], tuple(slices)
