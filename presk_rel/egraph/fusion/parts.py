"""A large graph in parts, one after the other: what a part makes and others read is in memory between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from presk_rel.core.ir import Param, operands
from presk_rel.egraph.fusion.graph import Graph, Node, graph_of


def parts_of(graph: Graph, size: int) -> Iterator[Graph]:
    """Parts of at most `size` operations in the order of the bindings. What needs next to no work comes with each part
    that reads it."""
    chunks: list[list[Node]] = [[]]
    count = 0
    for n in graph.nodes:
        if n.work and count == size:
            chunks.append([])
            count = 0
        chunks[-1].append(n)
        count += n.work
    owns = [_with_inline(graph, chunk) for chunk in chunks]
    read = [frozenset(v for i in own for v, _ in graph.nodes[i].reads) for own in owns]
    later = frozenset({graph.function.ret})
    wanted: list[frozenset[str]] = []
    for names in reversed(read):
        wanted.append(later)
        later |= names
    for chunk, own, results in zip(chunks, owns, reversed(wanted), strict=True):
        yield _part(graph, chunk, own, results)


def _with_inline(graph: Graph, chunk: list[Node]) -> list[int]:
    """The operations of a part, with those before it that it makes again."""
    own = {n.index for n in chunk}
    stack = list(chunk)
    while stack:
        for v in operands(stack.pop().binding.op):
            source = graph.node(v)
            if source is not None and source.inline and source.index not in own:
                own.add(source.index)
                stack.append(source)
    return sorted(own)


def _part(graph: Graph, chunk: list[Node], own: list[int], wanted: frozenset[str]) -> Graph:
    """A part whose results are those of its bindings that are wanted later, and not made again there."""
    bindings = tuple(graph.nodes[i].binding for i in own)
    inside = {b.name for b in bindings}
    outside = dict.fromkeys(v for b in bindings for v in operands(b.op) if v not in inside)
    params = tuple(Param(v, graph.types[v]) for v in outside)
    results = frozenset(n.binding.name for n in chunk if n.binding.name in wanted and _stays(graph, n))
    ret = bindings[-1].name
    return graph_of(replace(graph.function, params=params, bindings=bindings, ret=ret), graph.model, results)


def _stays(graph: Graph, node: Node) -> bool:
    """Whether others find it in memory: not what is made again, unless something reads it there."""
    return not node.inline or -1 in graph.readers[node.index]
