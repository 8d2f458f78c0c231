"""Strongly connected components by a loop, whatever the depth of the graph (Tarjan)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Generic, TypeVar

from presk_rel.diagnostics.record import mutable

N = TypeVar("N", bound=Hashable)


def order(nodes: Sequence[N], needs: Callable[[N], Iterable[N]]) -> tuple[list[N], set[N]]:
    """`nodes` such that each stands after what it needs (cycles apart), else in the order given; and the members of
    cycles. What `needs` names outside `nodes` is ignored. Linear in nodes and edges."""
    search = _Search(needs, set(nodes))
    for node in nodes:
        if node not in search.index:
            search.run(node)
    return search.done, search.cyclic


@mutable
class _Search(Generic[N]):
    needs: Callable[[N], Iterable[N]]
    known: set[N]
    index: dict[N, int] = field(default_factory=dict[N, int])
    low: dict[N, int] = field(default_factory=dict[N, int])
    open: list[N] = field(default_factory=list[N])
    on_stack: set[N] = field(default_factory=set[N])
    done: list[N] = field(default_factory=list[N])
    cyclic: set[N] = field(default_factory=set[N])

    def run(self, root: N) -> None:
        work: list[tuple[N, Iterator[N]]] = [(root, self._enter(root))]
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                self._leave(node)
                if work:
                    parent = work[-1][0]
                    self.low[parent] = min(self.low[parent], self.low[node])
            elif child not in self.index:
                work.append((child, self._enter(child)))
            elif child in self.on_stack:
                self.low[node] = min(self.low[node], self.index[child])
                if child == node:
                    self.cyclic.add(node)

    def _enter(self, node: N) -> Iterator[N]:
        self.index[node] = self.low[node] = len(self.index)
        self.open.append(node)
        self.on_stack.add(node)
        return (n for n in self.needs(node) if n in self.known)

    def _leave(self, node: N) -> None:
        if self.low[node] != self.index[node]:
            return
        component: list[N] = []
        while not component or component[-1] != node:
            component.append(self.open.pop())
            self.on_stack.discard(component[-1])
        self.done.extend(reversed(component))
        if len(component) > 1:
            self.cyclic.update(component)
