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
from dataclasses import dataclass, field, replace
from typing import Any, cast

from presk_rel.exec.torch.layouts import Array, fresh
from presk_rel.exec.torch.memory import Memory, Place, arrays
from presk_rel.exec.torch.plan_text import Text
from presk_rel.exec.torch.trace import COPY, Host, Step, TooLong, Tracer

LIMIT = 50_000
"""Calls of one run beyond which there is no plan: the file runs as it stands, its loops as loops."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`source` is run in the namespace of the generated file. `bound(inputs, arenas)` takes the entry's inputs and a
    flat tensor for each of `arenas` (the inputs that are its parts, in order) where it is `staged`, and gives `run`,
    the results of `compute`, and the flat tensors of `groups` (the results that are its parts). `run(given)` takes
    what `prelude` gives where `draws`, else nothing."""

    source: str
    kernels: int
    arenas: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    draws: bool
    staged: bool


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
        start = 0
        for i in members:
            x = placed[i]
            assert isinstance(x, Array)
            placed[i] = replace(x, root=f"a{k}", offset=start)
            start += x.entries
        tracer.arenas[f"a{k}"] = replace(fresh((start,), dtype), name=f"a{k}", root=f"a{k}")
    try:
        tracer.load(source)
        given, _ = tracer.run("prelude", [tuple(placed)])
        drawn, tracer.launches, tracer.steps = tracer.launches, 0, []
        returned = cast("tuple[Array, ...]", tracer.run("compute", given))
    except TooLong:
        return None
    planner = _Planner(list(tracer.steps), list(returned), [tuple(g) for g in groups])
    text = Text(planner.places(), dtype)
    names = [x.name if isinstance(x, Array) else "_" for x in inputs]
    staged = any(x.name in tracer.arenas for s in planner.steps for x in arrays(s.args))
    written = text.write(names, len(arenas) if staged else 0, given, planner.steps, [x.name for x in planner.returned])
    kernels = drawn + sum(s.launches for s in planner.steps)
    return Plan(written, kernels, tuple(map(tuple, arenas)), tuple(planner.groups), text.draws, staged)


@dataclass(slots=True)
class _Planner:
    """What is computed where. `steps` become those that run."""

    steps: list[Step]
    returned: list[Array]
    groups: list[tuple[int, ...]]
    made: dict[str, Step] = field(default_factory=dict[str, Step])
    inside: dict[str, Place] = field(default_factory=dict[str, Place])
    """Roots that are part of another buffer."""
    sizes: dict[str, tuple[int, str]] = field(default_factory=dict[str, "tuple[int, str]"])
    """Entries and type of the buffers."""

    def places(self) -> Memory:
        self.steps = _needed(self.steps, {x.name for x in self.returned})
        self.made = {p.name: s for s in self.steps if not s.view for p in s.results if p is not None and p.fixed}
        self.sizes = {n: (p.entries, p.dtype) for s in self.made.values() for p in s.results if p for n in [p.name]}
        for step in self.steps[::-1]:
            if step.function in ("torch.stack", "torch.cat"):
                self.stacked(step)
        self.steps = [s for s in self.steps if s.launches or s.view]
        copies = self.results()
        self.steps += copies
        return Memory.of(self.steps, self.sizes, self.inside)

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
        self.inside |= chosen
        at = self.steps.index(step)
        kept = [self.copy(part, whole.name, offset) for part, offset in copied]
        self.steps[at : at + 1] = [replace(step, launches=0, function="", args=()), *kept]

    def free(self, part: Array) -> bool:
        """Whether all of a buffer, and nothing else, is this part, and it has no place yet."""
        whole = self.sizes.get(part.root)
        return whole is not None and whole[0] == part.entries > 0 and part.contiguous and part.root not in self.inside

    def copy(self, part: Array, buffer: str, offset: int) -> Step:
        made = replace(fresh(part.sizes, part.dtype), name=f"{buffer}_{offset}", root=f"{buffer}_{offset}")
        self.sizes[made.name] = (part.entries, part.dtype)
        self.inside[made.name] = Place(buffer, offset)
        return Step(COPY, (part,), {}, (made,), 1)

    def results(self) -> list[Step]:
        """Let each result be computed in its arena; the copies of those that cannot."""
        copies: list[Step] = []
        for k, members in enumerate(self.groups):
            arena, start = f"g{k}", 0
            shared = self.shared(members)
            for i in members:
                x = self.returned[i]
                place = Place(arena, start - x.offset)
                if x.root not in shared or self.inside.setdefault(x.root, place) != place:
                    copies.append(self.copy(x, arena, start))
                    self.returned[i] = copies[-1].results[0] or x
                start += x.entries
            self.sizes[arena] = (start, self.returned[members[0]].dtype if members else "float32")
        return copies

    def shared(self, members: tuple[int, ...]) -> set[str]:
        """The buffers that some of these results are, each entry once."""
        found: dict[str, list[Array]] = {}
        start, shifts = 0, dict[str, set[int]]()
        for i in members:
            x = self.returned[i]
            found.setdefault(x.root, []).append(x)
            shifts.setdefault(x.root, set()).add(start - x.offset)
            start += x.entries
        return {
            root
            for root, leaves in found.items()
            if root in self.sizes
            and root not in self.inside
            and len(shifts[root]) == 1
            and sum(x.entries for x in leaves) == self.sizes[root][0]
            and all(x.contiguous for x in leaves)
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
