"""Which buffer each tensor of a plan lives in: buffers serve again once nothing reads what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from presk_rel.exec.torch.layouts import Array
from presk_rel.exec.torch.trace import Step


@dataclass(frozen=True, slots=True)
class Place:
    """From entry `offset` of a buffer on."""

    buffer: str
    offset: int


@dataclass(slots=True)
class Memory:
    """`pools` are the flat buffers: entries and type; `at` has the place of every root that is in one."""

    pools: dict[str, tuple[int, str]] = field(default_factory=dict[str, "tuple[int, str]"])
    at: dict[str, Place] = field(default_factory=dict[str, Place])

    @classmethod
    def of(cls, steps: Sequence[Step], sizes: Mapping[str, tuple[int, str]], inside: Mapping[str, Place]) -> Memory:
        """Places for all roots of `sizes`; those of `inside` are parts of other buffers; the buffers `g…` of results
        are nobody else's."""
        memory = cls()
        lives = _lives(steps, sizes, inside)
        starts: dict[int, list[str]] = {}
        ends: dict[int, list[str]] = {}
        for root, (first, last) in lives.items():
            starts.setdefault(first, []).append(root)
            ends.setdefault(last, []).append(root)
        for root in sizes:
            if root.startswith("g") and root not in inside:
                memory.pools[root] = sizes[root]
                memory.at[root] = Place(root, 0)
        free: list[str] = []
        for i in range(len(steps)):
            for root in starts.get(i, ()):
                if root not in memory.at:
                    memory.at[root] = Place(memory.taken(free, sizes[root]), 0)
            free += [memory.at[root].buffer for root in ends.get(i, ()) if not root.startswith("g")]
        for root in inside:
            base, offset = base_of(root, inside)
            if base in memory.at:
                memory.at[root] = Place(memory.at[base].buffer, memory.at[base].offset + offset)
        return memory

    def taken(self, free: list[str], wanted: tuple[int, str]) -> str:
        """A free buffer with room, the smallest one; else a new one."""
        entries, dtype = wanted
        fitting = [n for n in free if self.pools[n][1] == dtype and entries <= self.pools[n][0] <= 2 * entries + 64]
        if fitting:
            best = min(fitting, key=lambda n: (self.pools[n][0], n))
            free.remove(best)
            return best
        name = f"p{len(self.pools)}"
        self.pools[name] = wanted
        return name


def base_of(root: str, inside: Mapping[str, Place]) -> tuple[str, int]:
    """The buffer that a root is part of, with where."""
    offset = 0
    while root in inside:
        root, offset = inside[root].buffer, offset + inside[root].offset
    return root, offset


def _lives(
    steps: Sequence[Step], sizes: Mapping[str, tuple[int, str]], inside: Mapping[str, Place]
) -> dict[str, tuple[int, int]]:
    """The first and the last step that each buffer is written or read by."""
    lives: dict[str, tuple[int, int]] = {}
    for i, step in enumerate(steps):
        read = [*arrays(step.args), *arrays(tuple(step.keywords.values()))]
        for x in (*read, *(p for p in step.results if p is not None)):
            base, _ = base_of(x.root, inside)
            if base in sizes:
                first, _ = lives.get(base, (i, i))
                lives[base] = (first, i)
    return lives


def arrays(value: Any) -> list[Array]:
    """The tensors in arguments."""
    if isinstance(value, Array):
        return [value]
    if isinstance(value, tuple | list):
        return [x for v in cast("Sequence[Any]", value) for x in arrays(v)]
    return []
