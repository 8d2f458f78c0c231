"""How much a result changes when nothing but its inputs is rounded: what a floating-point run may be measured by.

κ is the largest relative change of the result, in the norm of `exec.conform`, over the relative change of the inputs
that causes it, in the worst of `PATTERNS` directions: every real input times 1 ± h, signs by pattern, everything
evaluated exactly. An algorithm that is backward stable (N. J. Higham, *Accuracy and Stability of Numerical
Algorithms*, §1.6) has errors of a small multiple of κ·u in a type of unit roundoff u, and none has smaller ones as a
rule: its inputs are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from presk_rel.diagnostics import PreskError
from presk_rel.exec import keys
from presk_rel.exec.conform import BOUNDS, change
from presk_rel.exec.values import HostReals, Leaf, Tensor, Value, leaves, map_leaves

PATTERNS = 8
STEP = Fraction(1, 2**48)
"""h: far below what bends a function, far above the error of a result proven to `BITS`."""
BITS = 128
UNITS = {"f64": Fraction(1, 2**53), "f32": Fraction(1, 2**24), "bf16": Fraction(1, 2**8)}
"""The unit roundoff of a type, the largest relative error of rounding to nearest."""
GROWTH = 8
"""The multiple of κ·u that is a small one."""


def allowed(dtype: str, kappa: Fraction) -> Fraction:
    """How far a run in this type may be from the proven result of condition κ."""
    return max(BOUNDS[dtype], GROWTH * kappa * UNITS[dtype])


def condition(run: Callable[[tuple[Value, ...]], Value], args: tuple[Value, ...]) -> Fraction:
    """κ of a function that gives proven results, at `args`. A direction in which it is undefined does not count."""
    value, found = run(args), Fraction(0)
    for number in range(PATTERNS):
        try:
            moved = run(tuple(_moved(args, number)))
        except PreskError:
            continue
        found = max(found, change(value, moved))
    return found / STEP


def _moved(args: tuple[Value, ...], number: int) -> Iterator[Value]:
    """The arguments in direction `number`: the signs of each leaf are drawn from a key of its own."""
    count = sum(1 for value in args for _ in leaves(value))
    own = iter(keys.split(keys.master(number), count))

    def leaf(x: Leaf) -> Value:
        key = next(own)
        return Tensor(x.axes, _scaled(x.data, key)) if isinstance(x, Tensor) else x

    for value in args:
        yield map_leaves(leaf, value)


def _scaled(data: HostReals, key: bytes) -> HostReals:
    """Every entry times 1 ± h, exactly."""
    array = np.asarray(data)
    up = keys.below(key, array.size, 2).reshape(-1).tolist()
    factors = (1 - STEP, 1 + STEP)
    made = [Fraction(x) * factors[int(s)] for x, s in zip(array.reshape(-1).tolist(), up, strict=True)]
    found = np.empty(array.size, dtype=object)
    found[:] = made
    return found.reshape(array.shape)
