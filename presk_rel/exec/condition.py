"""What a floating-point run may be measured by where its result is beyond the bounds of `exec.conform`.

Rounding the inputs alone moves a result, and more than the bounds where a function magnifies changes or where rounding
crosses a kink. So the run is compared with the proven result of the inputs *that it was given*, rounded to its type. Of
a function that is ill-conditioned there, 8·κ·u is allowed: κ is the largest relative change of the result, in the norm
of `exec.conform`, over the unit roundoff u of the type, when every real input is taken times 1 ± u, in the worst of
`PATTERNS` directions, all evaluated exactly. An algorithm that is backward stable (N. J. Higham, *Accuracy and
Stability of Numerical Algorithms*, §1.6) has errors of a small multiple of κ·u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from presk_rel.diagnostics import PreskError
from presk_rel.exec import keys
from presk_rel.exec.conform import BOUNDS, change, distance
from presk_rel.exec.values import HostReals, Leaf, Tensor, Value, leaves, map_leaves

PATTERNS = 8
BITS = 128
"""To which results are proven: their errors are nothing against a change by u."""
UNITS = {"f64": Fraction(1, 2**53), "f32": Fraction(1, 2**24), "bf16": Fraction(1, 2**8)}
"""The unit roundoff of a type, the largest relative error of rounding to nearest."""
GROWTH = 8
"""The multiple of κ·u that is a small one."""


def allowed(dtype: str, kappa: Fraction, rounds: str | None = None) -> Fraction:
    """How far a run in this type may be from the proven result of condition κ; `rounds` is the type that its operations
    round to, where that is another."""
    return max(BOUNDS[dtype], GROWTH * kappa * UNITS[rounds or dtype])


@dataclass(frozen=True, slots=True)
class Judged:
    """`relative` is the distance from the proven result of the rounded inputs; `bound` what is allowed of it, and
    `condition` is κ there, where that was needed."""

    relative: Fraction
    bound: Fraction
    condition: Fraction | None = None

    @property
    def holds(self) -> bool:
        return self.relative <= self.bound


Run = Callable[[tuple[Value, ...]], Value]


def judged(run: Run, args: tuple[Value, ...], measured: Value, dtype: str, rounds: str | None = None) -> Judged:
    """What is to be said of `measured`, computed in `dtype` (by operations that round to `rounds`) from `args`; `run`
    gives proven results."""
    given = rounded(args, dtype)
    proven = run(given)
    relative = distance(proven, measured).relative
    if relative <= BOUNDS[dtype]:
        return Judged(relative, BOUNDS[dtype])
    kappa = condition(run, given, rounds or dtype, proven)
    return Judged(relative, allowed(dtype, kappa, rounds), kappa)


def condition(run: Run, args: tuple[Value, ...], dtype: str, value: Value | None = None) -> Fraction:
    """κ of a function at `args`, where its proven result is `value`. A direction in which it is undefined does not
    count."""
    value, found = run(args) if value is None else value, Fraction(0)
    for number in range(PATTERNS):
        try:
            found = max(found, change(value, run(moved(args, number, UNITS[dtype]))))
        except PreskError:
            continue
    return found / UNITS[dtype]


def rounded(args: tuple[Value, ...], dtype: str) -> tuple[Value, ...]:
    """As they are in memory of a type."""
    return tuple(map_leaves(lambda x: _real(x, lambda d: _rounded(d, dtype)), value) for value in args)


def moved(args: tuple[Value, ...], number: int, unit: Fraction) -> tuple[Value, ...]:
    """Direction `number`: the signs of each leaf are drawn from a key of its own."""
    count = sum(1 for value in args for _ in leaves(value))
    own = iter(keys.split(keys.master(number), count))
    return tuple(map_leaves(lambda x: _moved(x, next(own), unit), value) for value in args)


def _real(x: Leaf, f: Callable[[HostReals], HostReals]) -> Leaf:
    return Tensor(x.axes, f(x.data)) if isinstance(x, Tensor) else x


def _moved(x: Leaf, key: bytes, unit: Fraction) -> Leaf:
    return _real(x, lambda data: _scaled(data, key, unit))


def _rounded(data: HostReals, dtype: str) -> HostReals:
    """As torch rounds doubles: to bf16 from f32, ties to even."""
    array = np.asarray(data)
    doubles = np.array([float(Fraction(x)) for x in array.reshape(-1).tolist()], dtype=np.float64)
    if dtype == "f64":
        return doubles.reshape(array.shape)
    singles = doubles.astype(np.float32)
    if dtype == "bf16":
        bits = singles.view(np.uint32)
        singles = ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32)
    return singles.astype(np.float64).reshape(array.shape)


def _scaled(data: HostReals, key: bytes, unit: Fraction) -> HostReals:
    """Every entry times 1 ± u, exactly."""
    array = np.asarray(data)
    up = keys.below(key, array.size, 2).reshape(-1).tolist()
    factors = (1 - unit, 1 + unit)
    made = [Fraction(x) * factors[int(s)] for x, s in zip(array.reshape(-1).tolist(), up, strict=True)]
    found = np.empty(array.size, dtype=object)
    found[:] = made
    return found.reshape(array.shape)
