"""`ein`: sums of products over named axes, two operands at a time from the left. A pair is a product of matrices for
every index of the axes that both have and the result keeps; where there is no matrix, entry by entry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from presk_rel.core.ein import ein_spec
from presk_rel.diagnostics import PreskBug
from presk_rel.exec.exact.kernel import filled
from presk_rel.exec.exact.step import Step
from presk_rel.exec.values import Array, Value


@dataclass(frozen=True, slots=True)
class Labelled:
    """An array whose axes have names."""

    names: tuple[str, ...]
    data: Array

    def ordered(self, names: Iterable[str]) -> Array:
        return self.data.transpose([self.names.index(n) for n in names])

    def lengths(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.data.shape[self.names.index(n)] for n in names)


def row_ein(step: Step) -> Value:
    spec = ein_spec(str(step.attrs[0]))
    if spec is None or len(spec.operands) != len(step.args):
        raise PreskBug("exec", f"no contraction: {step.attrs[0]} in {step.where}")
    waiting = [Labelled(names, step.data(i)) for i, names in enumerate(spec.operands)]
    done = waiting.pop(0)
    while waiting:
        following = waiting.pop(0)
        kept = {*spec.result, *(n for other in waiting for n in other.names)}
        done = _pair(
            step, summed(step, done, kept | {*following.names}), summed(step, following, kept | {*done.names}), kept
        )
    return step.result(summed(step, done, {*spec.result}).ordered(spec.result))


def summed(step: Step, x: Labelled, kept: set[str]) -> Labelled:
    """`x` without the axes that are not kept."""
    over = tuple(i for i, n in enumerate(x.names) if n not in kept)
    if not over:
        return x
    return Labelled(tuple(n for n in x.names if n in kept), step.kernel.total(x.data, over))


def _pair(step: Step, a: Labelled, b: Labelled, kept: set[str]) -> Labelled:
    batch = [n for n in a.names if n in b.names and n in kept]
    inner = [n for n in a.names if n in b.names and n not in kept]
    left = [n for n in a.names if n not in b.names]
    right = [n for n in b.names if n not in a.names]
    x, y = a.ordered([*batch, *left, *inner]), b.ordered([*batch, *inner, *right])
    names = (*batch, *left, *right)
    if not inner:
        one = (slice(None),) * len(batch) + (None,) * len(left)
        shaped = x[(..., *(None,) * len(right))]
        return Labelled(names, step.kernel.binary("mul", shaped, y[(*one, ...)], step.site))
    if not left and not right:
        product = step.kernel.binary("mul", x, y, step.site)
        return Labelled(names, step.kernel.total(product, tuple(range(len(batch), x.ndim))))
    shape = (*a.lengths(batch), *a.lengths(left), *b.lengths(right))
    depth, rows, columns = (_size(a.lengths(inner)), _size(a.lengths(left)), _size(b.lengths(right)))
    slices = _size(a.lengths(batch))
    xs, ys = x.reshape(slices, rows, depth), y.reshape(slices, depth, columns)
    entries = [e for i in range(slices) for e in step.kernel.matmul(xs[i], ys[i]).ravel().tolist()]
    return Labelled(names, filled(entries, shape))


def _size(lengths: tuple[int, ...]) -> int:
    return int(np.prod(lengths, dtype=object))
