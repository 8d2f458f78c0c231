"""Central differences of any entry: an opinion on its gradient that knows nothing of differentiation.

`worst_component(program, "mse", "mse_grad", wrt="θ", dims={"B": 2, "D": 4})` is the largest distance, over every
component of the parameter `wrt`, between the gradient entry's value and (f(x + h) - f(x - h)) / 2h, with an upper
bound's ball. The truncation error is of size h², the rounding error of size 2^-bits / h: at 512 bits and h = 2^-120
both are far below 2^-100.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from presk_rel.core.ir import Program
from presk_rel.exec import inputs
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.untyped import arb, flint_context, fmpq
from presk_rel.exec.values import Leaf, Tensor, Value, leaves, map_leaves


def worst_component(
    program: Program,
    value: str,
    gradient: str,
    *,
    wrt: str,
    dims: Mapping[str, int],
    given: Mapping[str, Any] | None = None,
    seed: int = 0,
    bits: int = 512,
    step: int = 120,
    pick: Callable[[Value], Value] = lambda v: v,
) -> Fraction:
    """The largest distance, rounded up. `value` and `gradient` take the same parameters; `pick` takes the part of the
    gradient's result that belongs to `wrt`, when there are several."""
    bound, args = inputs.prepare(program, value, given or {}, dims, seed)
    position = [p.name for p in bound.fn.params].index(wrt)
    h = Fraction(1, 2**step)
    worst = arb(0)
    with flint_context.workprec(bits):

        def run(entry: str, values: tuple[Value, ...]) -> Value:
            kernel = Balls()
            return Interpreter(program, kernel).run(entry, inject(kernel, values), bound.env.dims)

        def moved(leaf: int, component: int, by: Fraction) -> Any:
            shifted = shift(args[position], leaf, component, by)
            result = run(value, (*args[:position], shifted, *args[position + 1 :]))
            assert isinstance(result, Tensor)
            return result.data[()]

        exact = pick(run(gradient, args))
        for number, (_, leaf) in enumerate(leaves(exact)):
            assert isinstance(leaf, Tensor)
            for i, slope in enumerate(leaf.data.ravel().tolist()):
                ratio = (moved(number, i, h) - moved(number, i, -h)) / arb(fmpq(2, 2**step))
                worst = worst.max(abs(slope - ratio))
        man, exp = worst.upper().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)


def shift(value: Value, leaf: int, component: int, by: Fraction) -> Value:
    """`value` with one component of one leaf moved."""
    count = iter(range(1_000_000))

    def moved(v: Leaf) -> Value:
        if next(count) != leaf or not isinstance(v, Tensor):
            return v
        entries = [Fraction(x) for x in v.data.ravel().tolist()]
        entries[component] += by
        data = np.empty(len(entries), dtype=object)
        data[:] = entries
        return Tensor(v.axes, data.reshape(v.data.shape))

    return map_leaves(moved, value)
