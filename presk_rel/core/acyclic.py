"""Cycles in a graph of names, without recursion: module inclusion and calls of PSK-Core have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Some cycle, from its first node in the graph's order, or an empty list. Edges out of the graph are ignored."""
    done: set[str] = set()
    for root in graph:
        if root in done:
            continue
        found = _from(root, graph, done)
        if found:
            return found
    return []


def _from(root: str, graph: Mapping[str, Iterable[str]], done: set[str]) -> list[str]:
    path: dict[str, Iterator[str]] = {root: iter(graph[root])}
    while path:
        node = next(reversed(path))
        child = next(path[node], None)
        if child is None:
            path.pop(node)
            done.add(node)
        elif child in path:
            names = list(path)
            return names[names.index(child) :]
        elif child not in done and child in graph:
            path[child] = iter(graph[child])
    return []
