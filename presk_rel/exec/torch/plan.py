"""The plan of a run: every tensor has its place before it starts, so that a run is nothing but kernels.

From the calls of a generated file (`trace`) it writes `bound(inputs, arenas)`, which makes all buffers and all views
of them once, and inside it `run(given)`, which calls each kernel with the buffer it writes to. Nothing is allocated,
no view is made and no result is moved while it runs:

- a tensor of a stack is computed where the stack has it, so that the stack itself is no kernel; and a result where
  the result's arena has it (one flat buffer for the leaves of a parameter tree);
- what is no longer read gives its buffer to what is computed later;
- Python numbers are tensors: torch takes 1.5 µs for these and 3.8 for those.

What torch has no such kernel for (`Call.into`), and what is drawn anew in every run, is made while running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from presk_rel.exec.torch.calls import POINTWISE
from presk_rel.exec.torch.conversions import converted_once, rounded_together
from presk_rel.exec.torch.families import Families
from presk_rel.exec.torch.flatten import flattened
from presk_rel.exec.torch.gather import gathered
from presk_rel.exec.torch.graph import FAMILY, Graph
from presk_rel.exec.torch.layouts import Array, fresh
from presk_rel.exec.torch.memory import Memory, Place, arrays
from presk_rel.exec.torch.plan_text import Text
from presk_rel.exec.torch.trace import COPIED, COPY, Host, Step, TooLong, Tracer

LIMIT = 50_000
"""Calls of one run beyond which there is no plan: the file runs as it stands, its loops as loops."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`source` is run in the namespace of the generated file. `bound(inputs, arenas)` takes the entry's inputs and a
    flat tensor for each of `arenas` (the inputs that are its parts, in order) where it is `staged`, and gives `run`,
    the results of `compute`, and the flat tensors of `groups` (the results that are its parts). `run(given)` takes
    what `prelude` gives where `draws`, else nothing. `over` says of a group which arena it may be written over: when
    the results are written, nothing reads the inputs there any more (`bound(…, into)` takes the memory of groups)."""

    source: str
    kernels: int
    arenas: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    draws: bool
    staged: bool
    over: dict[int, tuple[int, ...]]


def plan(
    source: str,
    dtype: str,
    inputs: Sequence[Array | Host],
    arenas: Sequence[tuple[int, ...]],
    groups: Sequence[tuple[int, ...]],
) -> Plan | None:
    """The plan of a file's `entry`; None for one of more than `LIMIT` calls. `arenas` are the inputs that lie next to
    each other, `groups` the results that shall."""
    tracer = Tracer(dtype, buffers=True, limit=LIMIT)
    placed = list(inputs)
    for k, members in enumerate(arenas):
        start, kept = 0, dtype
        for i in members:
            x = placed[i]
            assert isinstance(x, Array)
            placed[i] = replace(x, root=f"a{k}", offset=start)
            start, kept = start + x.entries, x.dtype
        tracer.arenas[f"a{k}"] = replace(fresh((start,), kept), name=f"a{k}", root=f"a{k}")
    try:
        tracer.load(source)
        given, _ = tracer.run("prelude", [tuple(placed)])
        drawn, tracer.launches, tracer.steps = tracer.launches, 0, []
        returned = cast("tuple[Array, ...]", tracer.run("compute", given))
    except TooLong:
        return None
    planner = _Planner(Graph(list(tracer.steps), returned=list(returned)), [tuple(g) for g in groups])
    leaves = {f"a{k}": [cast("Array", placed[i]).entries for i in members] for k, members in enumerate(arenas)}
    memory = planner.places({name: (tracer.arenas[name], entries) for name, entries in leaves.items()})
    text, steps = Text(memory, dtype), planner.graph.steps
    names = [x.name if isinstance(x, Array) else "_" for x in inputs]
    staged = any(
        x.name in tracer.arenas or (s.function == FAMILY and x.root in tracer.arenas)
        for s in steps
        for x in arrays(s.args)
    )
    written = text.write(names, len(arenas) if staged else 0, given, steps, [x.name for x in planner.graph.returned])
    kernels = drawn + sum(s.launches for s in steps)
    over = {k: tuple(j for j in range(len(arenas)) if planner.over(k, f"a{j}")) for k in range(len(planner.groups))}
    return Plan(written, kernels, tuple(map(tuple, arenas)), tuple(planner.groups), text.draws, staged, over)


@dataclass(slots=True)
class _Planner:
    """What is computed where. The steps of `graph` become those that run."""

    graph: Graph
    groups: list[tuple[int, ...]]

    def places(self, arenas: dict[str, tuple[Array, list[int]]]) -> Memory:
        graph = self.graph
        graph.steps, graph.returned = converted_once(graph.steps, graph.returned)
        graph.steps = _needed(graph.steps, {x.name for x in graph.returned})
        made = [p for s in graph.steps if not s.view for p in s.results if p is not None and p.fixed]
        graph.sizes = {p.name: (p.entries, p.dtype) for p in made}
        gathered(graph)
        flattened(graph, arenas)
        for step in graph.steps[::-1]:
            if step.function in ("torch.stack", "torch.cat"):
                self.stacked(step)
        for members in self.groups:
            rounded_together(graph, members)
        copies = self.results()
        graph.steps += copies
        Families(graph, frozenset(arenas)).run()
        graph.steps = _needed(graph.steps, {x.name for x in graph.returned})
        return Memory.of(graph.steps, graph.sizes, graph.inside)

    def stacked(self, step: Step) -> None:
        """Let the parts of a stack be computed in it. A part that cannot is copied, unless it is more than one."""
        whole, parts = step.results[0], cast("tuple[Array, ...]", step.args[0])
        if whole is None or not whole.fixed or (step.function == "torch.cat" and _dim(step) != 0):
            return
        start, chosen, copied = 0, dict[str, Place](), list[tuple[Array, int]]()
        for part in parts:
            if self.free(part) and part.root not in chosen:
                chosen[part.root] = Place(whole.name, start)
            else:
                copied.append((part, start))
            start += part.entries
        if len(copied) > 1 or not chosen:
            return
        graph = self.graph
        graph.inside |= chosen
        at = next(i for i, s in enumerate(graph.steps) if s is step)
        copies = [self.copy(part, whole.name, offset) for part, offset in copied]
        filled = (*parts, *(x for c in copies for x in c.results))
        whole_step = replace(step, launches=0, function="", args=(filled,))
        graph.steps[at : at + 1] = [*copies, whole_step]

    def free(self, part: Array) -> bool:
        """Whether all of a buffer, and nothing else, is this part, and it has no place yet."""
        whole = self.graph.sizes.get(part.root)
        return whole is not None and whole[0] == part.entries > 0 and part.contiguous and self.graph.free(part)

    def copy(self, part: Array, buffer: str, offset: int) -> Step:
        name = f"{buffer}_{offset}"
        while name in self.graph.sizes:  # parts without entries lie at one place
            name += "e"
        made = replace(fresh(part.sizes, part.dtype), name=name, root=name)
        self.graph.sizes[name] = (part.entries, part.dtype)
        self.graph.inside[name] = Place(buffer, offset)
        return Step(COPY, (part,), {}, (made,), 1, COPIED)

    def results(self) -> list[Step]:
        """Let each result be computed in its arena; the copies of those that cannot."""
        copies: list[Step] = []
        graph = self.graph
        for k, members in enumerate(self.groups):
            arena, start = f"g{k}", 0
            shared = self.shared(members)
            for i in members:
                x = graph.returned[i]
                base, offset = graph.lies(x)
                if base in shared:
                    graph.inside[base] = Place(arena, start - offset)
                elif (base, offset) != (arena, start):
                    copies.append(self.copy(x, arena, start))
                    graph.returned[i] = copies[-1].results[0] or x
                start += x.entries
            graph.sizes[arena] = (start, graph.returned[members[0]].dtype if members else "float32")
        return copies

    def over(self, group: int, arena: str) -> bool:
        """Whether a group, computed (or rounded) entry by entry as one, may be written over an arena of inputs."""
        graph, name = self.graph, f"g{group}"
        written = [s for s in graph.steps if s.launches and any(x and graph.lies(x)[0] == name for x in s.results)]
        if len(written) != 1 or written[0].function not in (*POINTWISE, COPY):
            return False
        last, made = written[0], written[0].results[0]
        assert made is not None
        readers = [s for s in graph.steps if s.launches and any(graph.lies(x)[0] == arena for x in arrays(s.args))]
        before = graph.steps[: next(i for i, s in enumerate(graph.steps) if s is last) + 1]
        early = {id(s) for s in before}
        own = [x for x in arrays(last.args) if graph.lies(x)[0] == arena]
        return all(id(s) in early for s in readers) and all(
            x.sizes == made.sizes and x.strides == made.strides and graph.lies(x)[1] == 0 for x in own
        )

    def shared(self, members: tuple[int, ...]) -> set[str]:
        """The buffers that some of these results are, each entry once."""
        leaves: dict[str, list[Array]] = {}
        start, shifts = 0, dict[str, set[int]]()
        for i in members:
            x = self.graph.returned[i]
            base, offset = self.graph.lies(x)
            leaves.setdefault(base, []).append(x)
            shifts.setdefault(base, set()).add(start - offset)
            start += x.entries
        return {
            base
            for base, found in leaves.items()
            if base in self.graph.sizes
            and not base.startswith("g")
            and len(shifts[base]) == 1
            and sum(x.entries for x in found) == self.graph.sizes[base][0]
            and all(x.contiguous for x in found)
        }


def _dim(step: Step) -> Any:
    return step.args[1] if len(step.args) > 1 else 0


def _needed(steps: Sequence[Step], read: set[str]) -> list[Step]:
    """The steps that something reads."""
    kept: list[Step] = []
    for step in reversed(steps):
        if any(p is not None and p.name in read for p in step.results):
            kept.append(step)
            read |= {x.name for x in arrays(step.args)} | {x.name for x in arrays(tuple(step.keywords.values()))}
    return kept[::-1]
