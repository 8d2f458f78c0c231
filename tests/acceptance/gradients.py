"""What the derivatives of a random program are measured against: central differences over balls, duality, torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch

from presk_rel.core.ir import Program
from presk_rel.exec import inputs
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.untyped import arb, flint_context, fmpq
from presk_rel.exec.values import IndexTensor, Leaf, Tensor, TreeValue, TupleValue, Value, leaves, map_leaves
from presk_rel.pipeline import Mode, Remat
from presk_rel.session import Session
from tests.acceptance.programs import SourceProgram

BITS, STEP, CLOSE = 512, 120, Fraction(1, 2**100)
PROVEN = Fraction(1, 2**300)
"""Two computations of one number differ by their balls only: this much of the size of what was added up."""
DIMS = {"B": 2, "T": 3}


@dataclass(frozen=True)
class Differentiated:
    """A program with its arguments by name, for every entry the same (of a random program: `w`, `v`, `ct`, `x`, `ids`,
    `key`)."""

    program: Program
    args: dict[str, Value]
    dims: dict[str, int] = field(default_factory=lambda: DIMS)

    def given(self, entry: str, **changed: Value) -> list[Value]:
        return [(self.args | changed)[p.name] for p in self.program.functions[entry].params]

    def run(self, entry: str, **changed: Value) -> Value:
        """The entry over balls of `BITS` bits; inside `precision()` only."""
        kernel = Balls()
        values = inject(kernel, tuple(self.given(entry, **changed)))
        return Interpreter(self.program, kernel).run(entry, values, self.dims)

    def tied(self, entry: str) -> bool:
        """Whether some sign is not decided: a random program may take the larger of two equal numbers, at which the
        exact executor stops (E7005)."""
        kernel = Balls()
        with precision():
            Interpreter(self.program, kernel).run(entry, inject(kernel, tuple(self.given(entry))), self.dims)
        return kernel.events.first() is not None

    def moved(self, by: Fraction, name: str = "w", along: str = "v") -> Value:
        """The argument `name` moved along the argument `along`."""
        directions = iter([leaf for _, leaf in leaves(self.args[along])])
        return map_leaves(lambda leaf: _moved(leaf, next(directions), by), self.args[name])


def differentiated(text: str, folder: Path, *, remat: Remat = "store", mode: Mode = "inference") -> Differentiated:
    path = folder / "program.psk"
    path.write_text(text, encoding="utf-8")
    program = Session(str(path), remat=remat, mode=mode).differentiated
    args: dict[str, Value] = {}
    for entry in ("pulled", "pushed"):
        bound, values = inputs.prepare(program, entry, {}, DIMS, 7)
        args |= {p.name: value for p, value in zip(bound.fn.params, values, strict=True)}
    return Differentiated(program, args)


def precision() -> Any:
    return flint_context.workprec(BITS)


def _moved(leaf: Leaf, along: Leaf, by: Fraction) -> Value:
    assert isinstance(leaf, Tensor) and isinstance(along, Tensor)
    data = np.empty(leaf.data.shape, dtype=object)
    for i in np.ndindex(data.shape):
        data[i] = Fraction(leaf.data[i]) + by * Fraction(along.data[i])
    return Tensor(leaf.axes, data)


def entries(value: Value) -> list[Any]:
    """Every real of a result, in order."""
    return [x for _, leaf in leaves(value) if isinstance(leaf, Tensor) for x in leaf.data.ravel().tolist()]


def ball(x: Any) -> Any:
    """A host number as a ball."""
    f = Fraction(x)
    return arb(fmpq(f.numerator, f.denominator))


def dot(xs: list[Any], ys: list[Any]) -> tuple[Any, Any]:
    """Σ xᵢyᵢ, and one more than the sum of the absolute values."""
    terms = [x * y for x, y in zip(xs, ys, strict=True)]
    total, scale = arb(0), arb(1)
    for t in terms:
        total, scale = total + t, scale + abs(t)
    return total, scale


def distance(x: Any, y: Any, scale: Any) -> Fraction:
    """An upper bound of |x - y| / scale."""
    man, exp = (abs(x - y) / scale).abs_upper().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)


def slope_error(d: Differentiated) -> Fraction:
    """`loss_grad` along v against the central difference of `loss`."""
    h = Fraction(1, 2**STEP)
    with precision():
        (high,), (low,) = (entries(d.run("loss", w=d.moved(s))) for s in (h, -h))
        direction = [ball(x) for x in entries(d.args["v"])]
        found, scale = dot(entries(d.run("loss_grad")), direction)
        return distance(found, (high - low) / ball(2 * h), scale)


def duality_error(d: Differentiated) -> Fraction:
    """⟨ct, jvp(f)(w, v)⟩ against ⟨vjp(f)(w, ct), v⟩."""
    with precision():
        ct, v = ([ball(x) for x in entries(d.args[name])] for name in ("ct", "v"))
        pushed, first = dot(entries(d.run("pushed")), ct)
        pulled, second = dot(entries(d.run("pulled")), v)
        return distance(pushed, pulled, first + second)


def curvature_errors(d: Differentiated) -> tuple[Fraction, Fraction]:
    """Every component of `hvp` against the central difference of `loss_grad` along v, and against `hvp2`."""
    h = Fraction(1, 2**STEP)
    with precision():
        high, low = (entries(d.run("loss_grad", w=d.moved(s))) for s in (h, -h))
        one, other = entries(d.run("hvp")), entries(d.run("hvp2"))
        scale = 1 + sum((abs(x) for x in one), arb(0))
        ratio = [(x - y) / ball(2 * h) for x, y in zip(high, low, strict=True)]
        return _worst(one, ratio, scale), _worst(one, other, scale)


def _worst(xs: list[Any], ys: list[Any], scale: Any) -> Fraction:
    return max(distance(x, y, scale) for x, y in zip(xs, ys, strict=True))


# -------------------------------------------------------------------------------------------------------------- torch


def as_torch(value: Value) -> Any:
    match value:
        case TupleValue(items):
            return tuple(as_torch(v) for v in items)
        case TreeValue(fields):
            return {n: as_torch(v) for n, v in fields.items()}
        case Tensor(_, data):
            return torch.tensor(np.asarray(data, dtype=np.float64))
        case IndexTensor(_, _, data):
            return torch.tensor(np.asarray(data, dtype=np.int64))
        case _:
            raise AssertionError(value)


def parts(value: Any) -> list[float]:
    """The numbers of a torch value, in the order of `entries`."""
    match value:
        case dict():
            return [x for v in value.values() for x in parts(v)]
        case tuple():
            return [x for v in value for x in parts(v)]
        case _:
            return value.detach().flatten().tolist()


def torch_errors(d: Differentiated, source: SourceProgram) -> dict[str, float]:
    """The largest distance of each entry to what torch makes of the independent reading, relative to its largest
    number (or 1)."""
    w, v, x, ids = (as_torch(d.args[name]) for name in ("w", "v", "x", "ids"))
    gradient = torch.func.grad(lambda w: source.loss(w, x, ids))
    expected: dict[str, Callable[[], Any]] = {
        "f": lambda: source.outputs(w, x, ids),
        "loss": lambda: source.loss(w, x, ids),
        "loss_grad": lambda: gradient(w),
        "pushed": lambda: torch.func.jvp(lambda w: source.outputs(w, x, ids), (w,), (v,))[1],
        "pulled": lambda: torch.func.vjp(lambda w: source.outputs(w, x, ids), w)[1](as_torch(d.args["ct"]))[0],
    }
    if source.smooth:
        expected["hvp"] = lambda: torch.func.jvp(gradient, (w,), (v,))[1]
    with precision():
        return {entry: _apart(d.run(entry), other()) for entry, other in expected.items()}


def _apart(found: Value, other: Any) -> float:
    ours, theirs = [float(x) for x in entries(found)], parts(other)
    size = max(1.0, *(abs(x) for x in theirs))
    return max(abs(x - y) for x, y in zip(ours, theirs, strict=True)) / size
