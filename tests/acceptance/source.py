"""A program being written twice: as Presk source, and as torch, line by line.

`Body` is one function body. Each `let` gives the Presk expression and how torch computes the same from an environment
of names, so the torch side knows nothing of presk: it is an independent reading of the language reference. Every axis
is named; what a step may assume of a value is its axes and a bound of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch

Axes = tuple[tuple[str, str], ...]
"""Names and lengths, as they are written."""
Env = dict[str, Any]
Run = Callable[[Env], Any]

LENGTHS = {"B": 2, "T": 3, "2*T": 6, "4*T": 12, "D": 4, "8": 8, "2": 2, "H": 2, "HD": 2, "5": 5}
"""The numbers a program is run at."""

BATCH, SEQ, SEQ2, MODEL, VOCAB = ("batch", "B"), ("seq", "T"), ("seq2", "T"), ("model", "D"), ("vocab", "5")
HEADS, HD, JOINED, HALF, TWICE = ("heads", "H"), ("hd", "HD"), ("joined", "4*T"), ("model", "2"), ("model", "8")
ACTS: Axes = (BATCH, SEQ, MODEL)
VECTOR: Axes = (MODEL,)
SCALAR: Axes = ()


def written(axes: Axes) -> str:
    return f"ℝ[{', '.join(f'{n}: {length}' for n, length in axes)}]"


def size(axes: Axes) -> int:
    result = 1
    for _, length in axes:
        result *= LENGTHS[length]
    return result


def aligned(t: torch.Tensor, axes: Axes, to: Axes) -> torch.Tensor:
    """`t`, broadcastable against a tensor of axes `to`: aligned by name."""
    names = [n for n, _ in axes]
    t = t.permute([names.index(n) for n, _ in to if n in names])
    return t[tuple(slice(None) if n in names else None for n, _ in to)]


def dim(axes: Axes, name: str) -> int:
    return [n for n, _ in axes].index(name)


@dataclass(frozen=True)
class Known:
    """A value in scope: its name, axes, and a bound that its entries keep below, roughly."""

    name: str
    axes: Axes
    bound: float = 3.0


@dataclass(frozen=True)
class Helper:
    """A function of the file that bodies may call: the axes of its parameters and of its result."""

    name: str
    params: tuple[Axes, ...]
    result: Axes
    run: Callable[..., Any]


@dataclass
class Body:
    """`smooth` bodies have all derivatives; `names` counts across the file, so that no name hides another by chance."""

    rng: Random
    smooth: bool
    helpers: list[Helper]
    values: list[Known] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    steps: list[tuple[tuple[str, ...], Run]] = field(default_factory=list)
    key: str | None = None
    indices: str | None = None
    count: int = 0

    def fresh(self, base: str = "v") -> str:
        self.count += 1
        return f"{base}{self.count}"

    def line(self, names: tuple[str, ...], text: str, run: Run) -> None:
        """`let names = text`, with no claim of what they are."""
        self.lines.append(f"  let {names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'} = {text}")
        self.steps.append((names, run))

    def let(self, text: str, axes: Axes, bound: float, run: Run, name: str = "") -> Known | None:
        """Binds a real value, ascribed its axes; nothing when its entries may be too large to differentiate well."""
        if bound > 60:
            return None
        known = Known(name or self.fresh(), axes, bound)
        self.values = [v for v in self.values if v.name != known.name] + [known]
        self.line((known.name,), f"({text} : {written(axes)})", run)
        return known

    def pick(self, *needed: tuple[str, str], exactly: Axes | None = None, least: int = 0) -> Known | None:
        """Some value, a recent one more often, whose axes contain `needed`, or are `exactly` these."""
        found = [v for v in self.values if all(a in v.axes for a in needed) and len(v.axes) >= least]
        if exactly is not None:
            found = [v for v in found if v.axes == exactly]
        return self.rng.choice(found + found[-4:]) if found else None

    def run(self, env: Mapping[str, Any]) -> Env:
        """The torch side: `env` with every name of the body."""
        out = dict(env)
        for names, step in self.steps:
            value = step(out)
            out.update(zip(names, (value,) if len(names) == 1 else value, strict=True))
        return out
