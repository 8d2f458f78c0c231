"""What is done to every leaf of a tree becomes one operation on the flat tensor that the leaves are parts of.

Leaves of a tree lie one after the other. Steps that compute the same, entry by entry (or convert it), from the leaves
at the same place of the same trees (and from tensors without axes) are numbered alike; a number that every leaf has is
one step. So are the products of leaves with themselves that are all added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from presk_rel.exec.torch.calls import POINTWISE
from presk_rel.exec.torch.graph import Graph, parts
from presk_rel.exec.torch.layouts import Array
from presk_rel.exec.torch.trace import COPY, Step

Key = tuple[Any, ...]


@dataclass(slots=True)
class Flattener:
    """`track` says of a tensor which leaf of which tree it is, or is computed from: (number of the whole, leaf)."""

    graph: Graph
    arenas: dict[str, tuple[Array, list[int]]]
    """The flat tensors of inputs with the entries of each leaf."""
    track: dict[str, tuple[Key, int]] = field(default_factory=dict[str, "tuple[Key, int]"])
    groups: dict[Key, dict[int, Step]] = field(default_factory=dict[Key, dict[int, Step]])
    whole: dict[Key, Array] = field(default_factory=dict[Key, Array])
    lengths: dict[Key, tuple[int, ...]] = field(default_factory=dict[Key, tuple[int, ...]])

    def run(self) -> None:
        for step in self.graph.steps:
            self.seen(step)
        for key, members in list(self.groups.items()):
            if len(members) == len(self.lengths[key]) > 1:
                self.merged(key, members)
        for key, members in list(self.groups.items()):
            if key[0] == "torch.dot" and len(members) == len(self.lengths[key]) > 1:
                self.added(key, members)

    # ---------------------------------------------------------------------------------------------------- numbering

    def seen(self, step: Step) -> None:
        """Number what a step makes."""
        tracked = [None if not isinstance(a, Array) else self.of(a) for a in step.args]
        found = [t for t in tracked if t is not None]
        if not found or len({(self.lengths[key], leaf) for key, leaf in found}) != 1:
            return
        if step.view:
            self.view(step, found)
            return
        if not _entrywise(step) and step.function != "torch.dot":
            return
        if not all(t is not None or self.common(a) for a, t in zip(step.args, tracked, strict=True)):
            return
        leaf = found[0][1]
        made = step.results[0]
        assert made is not None
        read = tuple(t[0] if t is not None else _identity(a) for a, t in zip(step.args, tracked, strict=True))
        key = (step.function, read, made.dtype, tuple(sorted((k, _identity(v)) for k, v in step.keywords.items())))
        self.lengths[key] = self.lengths[found[0][0]]
        if step.function != "torch.dot":
            if made.entries != self.lengths[key][leaf] or not self.graph.free(made):
                return
            self.track[made.name] = (key, leaf)
        self.groups.setdefault(key, {}).setdefault(leaf, step)
        if self.groups[key][leaf] is not step:
            self.track.pop(made.name, None)

    def view(self, step: Step, found: Sequence[tuple[Key, int]]) -> None:
        """All entries of a leaf in the same order are the leaf."""
        x = step.results[0]
        key, leaf = found[0]
        if len(step.results) == 1 and x is not None and x.contiguous and x.entries == self.lengths[key][leaf]:
            self.track[x.name] = (key, leaf)

    def of(self, x: Array) -> tuple[Key, int] | None:
        known = self.track.get(x.name)
        if known is not None or x.root not in self.arenas or not x.contiguous:
            return known
        flat, entries = self.arenas[x.root]
        start = 0
        for leaf, n in enumerate(entries):
            if start == x.offset and n == x.entries > 0:
                key: Key = (x.root,)
                self.lengths[key], self.whole[key] = tuple(entries), flat
                return key, leaf
            start += n
        return None

    def common(self, a: Any) -> bool:
        """Whether an argument is the same for every leaf: it has no axes."""
        return not isinstance(a, Array) or a.entries == 1

    # ------------------------------------------------------------------------------------------------------ merging

    def merged(self, key: Key, members: dict[int, Step]) -> None:
        if key[0] == "torch.dot":
            return
        first = members[0]
        args = [self.flat(a, t) for a, t in zip(first.args, key[1], strict=True)]
        if any(a is None for a in args):
            return
        results = [members[k].results[0] for k in range(len(members))]
        made = [x for x in results if x is not None]
        whole = self.graph.new((sum(x.entries for x in made),), made[0].dtype)
        step = replace(first, args=tuple(args), results=(whole,))
        names = parts(whole, made, self.graph, _starts(self.lengths[key]))
        if self.graph.replaced(list(members.values()), [step, names]):
            self.whole[key] = whole
            return
        for x in made:
            del self.graph.inside[x.root]
        del self.graph.sizes[whole.name]

    def flat(self, arg: Any, key: Any) -> Any:
        """The argument of the step on all leaves; None where it has no flat tensor."""
        if isinstance(arg, Array) and key in self.lengths:
            return self.whole.get(cast("Key", key))
        return replace(arg, sizes=(), strides=()) if isinstance(arg, Array) and not arg.sizes else arg

    def added(self, key: Key, members: dict[int, Step]) -> None:
        """Σ over the leaves of their products."""
        args = [self.flat(a, t) for a, t in zip(members[0].args, key[1], strict=True)]
        terms = {s.results[0].name for s in members.values() if s.results[0] is not None}
        top, inner = self.total(terms)
        if any(a is None for a in args) or top is None:
            return
        self.graph.replaced(
            [*members.values(), *inner, top], [replace(members[0], args=tuple(args), results=top.results)]
        )

    def total(self, terms: set[str]) -> tuple[Step | None, list[Step]]:
        """The addition that makes the sum of all terms and of nothing else, and those inside it."""
        uses = self.graph.uses()
        sums: dict[str, tuple[Step, list[Step], list[str]]] = {}
        for step in self.graph.steps:
            if step.function != "torch.add" or step.keywords or not all(isinstance(a, Array) for a in step.args):
                continue
            below: list[Step] = []
            leaves: list[str] = []
            for a in step.args:
                inside = sums.get(a.name) if uses[a.name] == 1 else None
                leaves += inside[2] if inside else [a.name]
                below += [inside[0], *inside[1]] if inside else []
            made = step.results[0]
            if made is None or not set(leaves) <= terms:
                continue
            if len(leaves) == len(terms) == len(set(leaves)) and all(uses[n] == 1 for n in leaves):
                return step, below
            sums[made.name] = (step, below, leaves)
        return None, []


def _entrywise(step: Step) -> bool:
    """Whether a step computes entry by entry; a conversion does, a copy is for the order in which entries lie."""
    x, made = step.args[0] if step.args else None, step.results[0]
    converted = isinstance(x, Array) and made is not None and x.dtype != made.dtype
    return step.function in POINTWISE or (step.function == COPY and converted)


def _identity(value: Any) -> Any:
    return ("tensor", value.root, value.offset, value.sizes) if isinstance(value, Array) else ("value", repr(value))


def _starts(lengths: Sequence[int]) -> list[int]:
    return [sum(lengths[:k]) for k in range(len(lengths))]


def flattened(graph: Graph, arenas: dict[str, tuple[Array, list[int]]]) -> None:
    """Merge in place."""
    Flattener(graph, arenas).run()
