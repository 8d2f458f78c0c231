"""Results of one form that one kernel allocates anew are stacked: one more kernel, for memory that stays.

The gradients of attention's three operands come out of one call that takes no buffers. Once they lie at equal distances
in one, what is done to each alike is one step (`families`), and no view of them is made while running.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from presk_rel.exec.torch.calls import CALLS
from presk_rel.exec.torch.graph import Graph, parts
from presk_rel.exec.torch.layouts import Array, dense_in_some_order
from presk_rel.exec.torch.trace import Step

FEWEST = 3
"""Results of one form that are worth a kernel: the merged steps save more."""


def gathered(graph: Graph) -> None:
    """Stack in place."""
    for step in list(graph.steps):
        forms: dict[object, list[Array]] = {}
        for x in step.results:
            if x is not None and not x.fixed and not step.view and dense_in_some_order(x.sizes, x.strides):
                forms.setdefault((x.sizes, x.strides, x.dtype), []).append(x)
        for members in forms.values():
            if len(members) >= FEWEST:
                _stack(graph, members)


def _stack(graph: Graph, members: list[Array]) -> None:
    first = members[0]
    made = graph.new((len(members), *first.sizes), first.dtype)
    whole = replace(made, strides=(first.entries, *first.strides))
    given = {x.name: replace(x, name=f"{x.name}d", root=f"{x.name}d") for x in members}
    roots = {x.root for x in members}
    for x in members:
        graph.sizes[x.name] = (x.entries, x.dtype)
    steps: list[Step] = []
    for step in graph.steps:
        if any(x is not None and x.name in given for x in step.results):
            results = tuple(given.get(x.name, x) if x is not None else None for x in step.results)
            stack = Step("torch.stack", (tuple(given.values()),), {}, (whole,), 1, CALLS["torch.stack"])
            kept = [replace(x, fixed=True) for x in members]
            named = parts(whole, kept, graph, [k * first.entries for k in range(len(members))])
            steps += [replace(step, results=results), stack, named]
        else:
            steps.append(_settled(step, roots))
    graph.steps = steps
    graph.returned = [_fixed(x, roots) for x in graph.returned]


def _settled(step: Step, roots: set[str]) -> Step:
    """The step, its tensors in fixed memory where their roots are now."""
    keywords: Mapping[str, Any] = {k: _fixed(v, roots) for k, v in step.keywords.items()}
    results = tuple(_fixed(x, roots) for x in step.results)
    return replace(step, args=_fixed(step.args, roots), keywords=keywords, results=results)


def _fixed(value: Any, roots: set[str]) -> Any:
    if isinstance(value, Array):
        return replace(value, fixed=True) if value.root in roots else value
    if isinstance(value, tuple | list):
        found = [_fixed(v, roots) for v in cast("list[Any]", value)]
        return tuple(found) if isinstance(value, tuple) else found
    return value
