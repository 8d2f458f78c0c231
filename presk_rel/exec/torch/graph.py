"""The steps of a plan as a graph in which several become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from presk_rel.exec.torch.layouts import Array, fresh
from presk_rel.exec.torch.memory import Place, arrays, base_of
from presk_rel.exec.torch.trace import Step

FAMILY = "family"
"""The step that views tensors at equal distances in one buffer as one tensor: (root of the first, where it starts in
it, sizes, strides, the tensors if they are read)."""


@dataclass(slots=True)
class Graph:
    """`sizes` has the entries and type of every buffer, `inside` those that are parts of others."""

    steps: list[Step]
    sizes: dict[str, tuple[int, str]] = field(default_factory=dict[str, "tuple[int, str]"])
    inside: dict[str, Place] = field(default_factory=dict[str, Place])
    returned: list[Array] = field(default_factory=list[Array])
    count: int = 0

    def new(self, sizes: Iterable[int], dtype: str) -> Array:
        """A tensor with a buffer of its own."""
        name = f"m{self.count}"
        self.count += 1
        made = replace(fresh(sizes, dtype), name=name, root=name)
        self.sizes[name] = (made.entries, dtype)
        return made

    def lies(self, x: Array) -> tuple[str, int]:
        """The buffer, and the entry of it, that a tensor starts at."""
        base, offset = base_of(x.root, self.inside)
        return base, offset + x.offset

    def free(self, x: Array) -> bool:
        """Whether a tensor is part of a buffer that has no place yet."""
        return x.root in self.sizes and x.root not in self.inside and not x.root.startswith("g")

    def readers(self) -> dict[str, list[tuple[Step, int]]]:
        """Where each tensor is an argument of its own: the step, and which."""
        found: dict[str, list[tuple[Step, int]]] = {}
        for step in self.steps:
            for k, x in enumerate(step.args):
                if isinstance(x, Array):
                    found.setdefault(x.name, []).append((step, k))
        return found

    def uses(self) -> Counter[str]:
        """How often each tensor is read."""
        read = (x for s in self.steps for x in (*arrays(s.args), *arrays(tuple(s.keywords.values()))))
        return Counter(x.name for x in (*read, *self.returned))

    def replaced(self, members: Sequence[Step], new: Sequence[Step]) -> bool:
        """Put `new` for `members` and order all; False, and nothing changed, where that is a circle."""
        gone = {id(m) for m in members}
        last = max(i for i, s in enumerate(self.steps) if id(s) in gone)
        kept = [s for s in self.steps[: last + 1] if id(s) not in gone]
        found = ordered([*kept, *new, *self.steps[last + 1 :]])
        if found is None:
            return False
        self.steps = found
        return True


def ordered(steps: Sequence[Step]) -> list[Step] | None:
    """Every step after those that it reads from, as near to the given order as that allows; None for a circle."""
    maker = {p.name: i for i, s in enumerate(steps) for p in s.results if p is not None}
    waits: list[set[int]] = []
    readers: list[list[int]] = [[] for _ in steps]
    for i, step in enumerate(steps):
        read = (*arrays(step.args), *arrays(tuple(step.keywords.values())))
        needed = {maker[x.name] for x in read if x.name in maker and maker[x.name] != i}
        waits.append(needed)
        for j in needed:
            readers[j].append(i)
    ready = [i for i, w in enumerate(waits) if not w]
    heapify(ready)
    found: list[Step] = []
    while ready:
        i = heappop(ready)
        found.append(steps[i])
        for j in readers[i]:
            waits[j].discard(i)
            if not waits[j]:
                heappush(ready, j)
    return found if len(found) == len(steps) else None


def parts(whole: Array, members: Sequence[Array], graph: Graph, offsets: Sequence[int]) -> Step:
    """The step that gives parts of a tensor the names they had as tensors of their own."""
    for x, offset in zip(members, offsets, strict=True):
        graph.inside[x.root] = Place(whole.root, offset)
    return Step("", (whole,), {}, tuple(members), 0)
