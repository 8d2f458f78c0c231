"""Sizes and strides of the tensors of generated code, by torch's own rules, without torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor before it exists: `name` in the trace, `root` the name of the tensor whose memory it is a view of, from
    entry `offset` on. What is `fixed` has the same memory in every run."""

    sizes: Sizes
    strides: Sizes
    dtype: str
    name: str = ""
    root: str = ""
    fixed: bool = True
    offset: int = 0

    @property
    def entries(self) -> int:
        return prod(self.sizes)

    @property
    def contiguous(self) -> bool:
        """Whether its entries lie next to each other in row-major order."""
        needed = dense(self.sizes)
        return self.entries == 0 or all(a == b for a, b, n in zip(self.strides, needed, self.sizes) if n != 1)

    def viewed(self, sizes: Iterable[int], strides: Iterable[int], start: int = 0) -> Array:
        """A view, from entry `start` of this one's memory on."""
        return replace(self, sizes=tuple(sizes), strides=tuple(strides), offset=self.offset + start)


def dense(sizes: Sequence[int]) -> Sizes:
    """The strides of row-major order."""
    strides: list[int] = []
    step = 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def fresh(sizes: Iterable[int], dtype: str) -> Array:
    """A new tensor in row-major order."""
    found = tuple(sizes)
    return Array(found, dense(found), dtype)


def viewed(sizes: Sizes, strides: Sizes, target: Sizes) -> Sizes | None:
    """The strides of a tensor viewed with other sizes (of as many entries); None where that takes a copy."""
    if prod(sizes) == 0:
        return strides if sizes == target else dense(target)
    found: list[int] = [0] * len(target)
    at = len(target) - 1
    entries, filled = 1, 1
    base = strides[-1] if strides else 1
    for d in range(len(sizes) - 1, -1, -1):
        entries *= sizes[d]
        chunk_ends = d == 0 or (sizes[d - 1] != 1 and strides[d - 1] != entries * base)
        if not chunk_ends:
            continue
        while at >= 0 and (filled < entries or target[at] == 1):
            found[at] = filled * base
            filled *= target[at]
            at -= 1
        if filled != entries:
            return None
        if d > 0:
            base, entries, filled = strides[d - 1], 1, 1
    while at >= 0 and target[at] == 1:
        found[at] = filled * base
        at -= 1
    return tuple(found) if at == -1 else None


def completed(sizes: Sequence[int], entries: int) -> Sizes:
    """Sizes without their -1."""
    if -1 not in sizes:
        return tuple(sizes)
    known = prod(n for n in sizes if n != -1)
    return tuple(entries // known if n == -1 else n for n in sizes)


def broadcast(shapes: Iterable[Sizes]) -> Sizes:
    """The common shape of operands, by trailing axes."""
    found: list[int] = []
    for shape in shapes:
        missing = len(shape) - len(found)
        found = [1] * missing + found
        for i, n in enumerate(reversed(shape), 1):
            found[-i] = n if found[-i] == 1 else found[-i]
    return tuple(found)


def expanded(x: Array, sizes: Sequence[int]) -> Array:
    """A view repeated along axes of length one and along new leading ones."""
    lead = len(sizes) - len(x.sizes)
    full = tuple(x.sizes[i - lead] if n == -1 else n for i, n in enumerate(sizes))
    kept = tuple(step if n == m else 0 for n, m, step in zip(x.sizes, full[lead:], x.strides))
    return x.viewed(full, (0,) * lead + kept)


def pointwise(arrays: Sequence[Array], dtype: str) -> Array:
    """What an operation entry by entry allocates: in the order of its operands' strides (TensorIterator's rule)."""
    sizes = broadcast(a.sizes for a in arrays)
    full = [expanded(a, sizes).strides for a in arrays]
    same = {f for f, a in zip(full, arrays) if a.sizes == sizes}
    if len(same) == 1 and len(full) == sum(a.sizes == sizes for a in arrays) and dense_in_some_order(sizes, *same):
        return Array(sizes, same.pop(), dtype)
    order = _sorted_axes(sizes, full)
    strides, step = [0] * len(sizes), 1
    for axis in order:
        strides[axis] = step
        step *= max(sizes[axis], 1)
    return Array(sizes, tuple(strides), dtype)


def dense_in_some_order(sizes: Sizes, strides: Sizes) -> bool:
    """Whether the entries fill memory without gaps."""
    step = 1
    for stride, n in sorted((s, n) for s, n in zip(strides, sizes) if n != 1):
        if stride != step:
            return False
        step *= n
    return True


def _sorted_axes(sizes: Sizes, strides: Sequence[Sizes]) -> list[int]:
    """The axes from the fastest to the slowest: an insertion sort, as comparisons may be undecided."""
    order = list(range(len(sizes)))[::-1]

    def swaps(a: int, b: int) -> int:
        for s in strides:
            if s[a] == 0 or s[b] == 0:
                continue
            if s[a] != s[b]:
                return -1 if s[a] < s[b] else 1
            if sizes[a] > sizes[b]:
                return 1
        return 0

    for i in range(1, len(order)):
        at = i
        for before in range(i - 1, -1, -1):
            comparison = swaps(order[before], order[at])
            if comparison > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif comparison < 0:
                break
    return order
