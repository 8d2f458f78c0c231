"""What a sum of products costs as executors run it: two factors at a time, each without the axes that only it has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from math import prod
from typing import TypeVar

L = TypeVar("L", bound=Hashable)
"""What names an axis."""


@dataclass(frozen=True, slots=True)
class Price:
    """`moved` counts entries read and written, `matrices` the part of `flops` that products of matrices do."""

    launches: int = 0
    flops: int = 0
    moved: int = 0
    matrices: int = 0

    def __add__(self, other: Price) -> Price:
        return Price(
            self.launches + other.launches,
            self.flops + other.flops,
            self.moved + other.moved,
            self.matrices + other.matrices,
        )


def summed(x: Iterable[L], kept: set[L], length: Callable[[L], int]) -> tuple[Price, tuple[L, ...]]:
    """A factor without the axes that are not kept."""
    axes = tuple(x)
    rest = tuple(a for a in axes if a in kept)
    if len(rest) == len(axes):
        return Price(), axes
    size, left = prod(map(length, axes)), prod(map(length, rest))
    return Price(1, size, size + left), rest


def paired(x: tuple[L, ...], y: tuple[L, ...], kept: set[L], length: Callable[[L], int]) -> tuple[Price, tuple[L, ...]]:
    """The product of two factors, summed over what is not kept; every axis is of both or kept."""
    both = [a for a in x if a in y]
    inner = [a for a in both if a not in kept]
    left, right = ([a for a in axes if a not in both] for axes in (x, y))
    batch = [a for a in both if a in kept]
    made = (*batch, *left, *right)
    out, whole = prod(map(length, made)), prod(map(length, (*made, *inner)))
    moved = prod(map(length, x)) + prod(map(length, y)) + out
    if not inner:
        return Price(1, out, moved), made
    if batch and not left and not right:
        return Price(1, 2 * whole, moved), made
    return Price(1, 2 * whole, moved, 2 * whole if batch or (left and right) else 0), made


def priced(factors: Iterable[tuple[L, ...]], result: Iterable[L], length: Callable[[L], int]) -> Price:
    """A contraction from the left on. One factor without a sum is a view."""
    done, *waiting = factors
    wanted = set(result)
    total = Price()
    while waiting:
        other, *waiting = waiting
        read = wanted.union(*waiting)
        first, done = summed(done, read.union(other), length)
        second, other = summed(other, read.union(done), length)
        pair, done = paired(done, other, read, length)
        total = total + first + second + pair
    last, done = summed(done, wanted, length)
    return total + last
