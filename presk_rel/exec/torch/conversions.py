"""Conversions between types, each of them once.

Generated code rounds the operands of large products where it has them, and widens what comes in. In a plan, where every
tensor is a part of some memory, the same entries are seen to be the same: what was widened from bf16 is never rounded
back, and what several products read is rounded once. What nothing reads then is not computed (`plan`). The leaves of a
result are rounded together, from memory in which they lie as they do in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from presk_rel.exec.torch.graph import Graph, parts
from presk_rel.exec.torch.layouts import Array
from presk_rel.exec.torch.memory import Place
from presk_rel.exec.torch.trace import COPIED, COPY, Step


def converted_once(steps: Sequence[Step], returned: Sequence[Array]) -> tuple[list[Step], list[Array]]:
    """The steps, and what they return, with views for conversions whose result there is already."""
    found = _Conversions()
    for step in steps:
        found.step(step)
    return found.steps, [found.moved(x) for x in returned]


def rounded_together(graph: Graph, members: Sequence[int]) -> None:
    """One conversion for the results of a group, if each is one of a whole buffer that has no place yet."""
    made = [graph.returned[i] for i in members]
    makers = {s.results[0].name: s for s in graph.steps if s.function == COPY and s.results[0] is not None}
    steps = [makers[x.name] for x in made if x.name in makers and _rounds(graph, makers[x.name])]
    sources = [cast("Array", s.args[0]) for s in steps]
    if len(steps) != len(made) or len(made) < 2 or len({x.root for x in (*sources, *made)}) != 2 * len(made):
        return
    total, starts = 0, list[int]()
    for x in sources:
        starts.append(total)
        total += x.entries
    undo = dict(graph.inside), dict(graph.sizes)
    wide, narrow = (graph.new((total,), each[0].dtype) for each in (sources, made))
    for x, start in zip(sources, starts, strict=True):
        graph.inside[x.root] = Place(wide.name, start)
    names = parts(narrow, made, graph, starts)
    whole = Step("", (tuple(sources),), {}, (wide,), 0)
    if not graph.replaced(steps, [whole, Step(COPY, (wide,), {}, (narrow,), 1, COPIED), names]):
        graph.inside, graph.sizes = undo  # one of them is computed from another one, rounded


def _rounds(graph: Graph, step: Step) -> bool:
    """Whether a copy converts all of a buffer into another one, of which neither has a place yet."""
    x, made = cast("Array", step.args[0]), cast("Array", step.results[0])
    whole = x.contiguous and x.entries > 0 and graph.sizes.get(x.root, (0, ""))[0] == x.entries
    return x.dtype != made.dtype and whole and graph.free(x) and graph.free(made)


@dataclass(slots=True)
class _Conversions:
    steps: list[Step] = field(default_factory=list[Step])
    starts: dict[tuple[str, str], Array] = field(default_factory=dict[tuple[str, str], Array])
    """By root and type: a tensor of that type that has the root's entries, from the first one on."""
    views: dict[object, Array] = field(default_factory=dict[object, Array])
    """By view and type: a tensor of that type that has its entries."""
    sources: dict[str, Array] = field(default_factory=dict[str, Array])
    """By root: what its entries were copied from, in the same type."""
    moves: dict[str, Array] = field(default_factory=dict[str, Array])
    """By root that is no more: the tensor where it would start."""

    def step(self, step: Step) -> None:
        keywords = {k: self.moved(v) for k, v in step.keywords.items()}
        step = replace(step, args=self.moved(step.args), keywords=keywords, results=self.moved(step.results))
        if step.function != COPY:
            self.steps.append(step)
            return
        x, made = cast("Array", step.args[0]), cast("Array", step.results[0])
        if x.dtype == made.dtype:
            self.sources[made.root] = x
            self.steps.append(step)
            return
        there = self.there(x, made.dtype) or self.there(self.source(x), made.dtype)
        if there is not None:
            self.view(*there, made)
            return
        start = self.starts.get((x.root, made.dtype))
        read = self.source(x) if start is None else self.strided(start, x, made)
        self.steps.append(replace(step, args=(read,)))
        self.known(x, made)
        self.views[_view(read, made.dtype)] = made

    def there(self, x: Array, dtype: str) -> tuple[Array, int] | None:
        """The tensor, and the entry of it, from which on it has the entries of x in another type and row-major
        order."""
        start = self.starts.get((x.root, dtype))
        if start is not None and x.contiguous and x.offset + x.entries <= start.entries:
            return start, x.offset
        same = self.views.get(_view(x, dtype))
        return None if same is None else (same, 0)

    def source(self, x: Array) -> Array:
        """What x is a copy of in its own type: that is converted without the copy."""
        of = self.sources.get(x.root)
        return of if of is not None and x.contiguous and x.offset == 0 and x.entries == of.entries else x

    def strided(self, start: Array, x: Array, made: Array) -> Array:
        """x in another type, which lies as it does from `start` on; x itself where that ends before it."""
        last = x.offset + sum((n - 1) * s for n, s in zip(x.sizes, x.strides))
        if last >= start.entries:
            return x
        part = self.part(start, x.offset, last + 1 - x.offset, made.name)
        found = replace(part, name=f"{made.name}s", sizes=x.sizes, strides=x.strides)
        self.steps.append(Step("as_strided", (part, x.sizes, x.strides), {}, (found,), 0, method=True))
        return found

    def known(self, x: Array, made: Array) -> None:
        """Remember what a conversion makes; to widen loses nothing, so it is one of what it makes as well."""
        self.views[_view(x, made.dtype)] = made
        if x.contiguous and x.offset == 0:
            self.starts.setdefault((x.root, made.dtype), made)
        if x.contiguous and x.dtype == "bfloat16":
            self.starts[made.root, x.dtype] = x

    def view(self, of: Array, start: int, made: Array) -> None:
        """What would be converted, as part of what there is."""
        part = self.part(of, start, made.entries, made.name)
        found = replace(part, name=made.name, sizes=made.sizes, strides=made.strides)
        self.steps.append(Step("reshape", (part, made.sizes), {}, (found,), 0, method=True))
        self.moves[made.root] = found

    def part(self, of: Array, start: int, entries: int, name: str) -> Array:
        """Some entries of a row-major tensor, in a row."""
        flat = replace(of, name=f"{name}f", sizes=(of.entries,), strides=(1,))
        part = replace(flat, name=f"{name}p", sizes=(entries,), offset=of.offset + start)
        self.steps += [
            Step("reshape", (of, flat.sizes), {}, (flat,), 0, method=True),
            Step("narrow", (flat, 0, start, entries), {}, (part,), 0, method=True),
        ]
        return part

    def moved(self, value: Any) -> Any:
        """With roots that are no more replaced."""
        match value:
            case Array():
                of = self.moves.get(value.root)
                if of is None:
                    return value
                return replace(value, root=of.root, offset=of.offset + value.offset, fixed=of.fixed)
            case tuple() | list():
                found = [self.moved(v) for v in cast("list[Any]", value)]
                return tuple(found) if isinstance(value, tuple) else found
            case _:
                return value


def _view(x: Array, dtype: str) -> object:
    return x.root, x.offset, x.sizes, x.strides, dtype
