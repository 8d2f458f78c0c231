"""Which relations depend on which, and the order in which to compute them (Tarjan's components, without recursion)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from presk_rel.diagnostics import Diagnostics
from presk_rel.diagnostics.record import record
from presk_rel.rules.ast import Program, Rule
from presk_rel.rules.walk import used_atoms


@record
class Stratum:
    """Relations that depend on each other, and their rules. `recursive` when some rule uses its own stratum."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool


def strata(program: Program) -> tuple[Stratum, ...]:
    """The strata in an order in which each needs only itself and earlier ones."""
    graph = dependencies(program)
    by_relation: dict[str, list[Rule]] = {name: [] for name in program.relations}
    for rule in program.rules:
        by_relation[rule.head.relation].append(rule)
    result: list[Stratum] = []
    for component in components(graph):
        members = set(component)
        rules = tuple(rule for name in component for rule in by_relation[name])
        recursive = any(used in members for name in component for used in graph[name])
        result.append(Stratum(component, rules, recursive))
    return tuple(result)


def dependencies(program: Program) -> dict[str, dict[str, None]]:
    """Relation → the relations that its rules use."""
    graph: dict[str, dict[str, None]] = {name: {} for name in program.relations}
    for rule in program.rules:
        for atom, _ in used_atoms(rule.body):
            graph[rule.head.relation][atom.relation] = None
    return graph


def components(graph: Mapping[str, Mapping[str, None]]) -> list[tuple[str, ...]]:
    """Strongly connected components, dependencies first."""
    search = _Tarjan(graph)
    for root in graph:
        if root not in search.index:
            search.visit(root)
    return search.found


class _Tarjan:
    """Tarjan's algorithm with a stack of its own, so that a long chain of relations costs no recursion."""

    def __init__(self, graph: Mapping[str, Mapping[str, None]]) -> None:
        self.graph = graph
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.stack: list[str] = []
        self.on_stack: set[str] = set()
        self.found: list[tuple[str, ...]] = []
        self.work: list[tuple[str, Iterator[str]]] = []

    def visit(self, root: str) -> None:
        self.enter(root)
        while self.work:
            node, successors = self.work[-1]
            fresh = next((n for n in successors if self.is_fresh(node, n)), None)
            if fresh is None:
                self.leave()
            else:
                self.enter(fresh)

    def enter(self, node: str) -> None:
        self.index[node] = self.low[node] = len(self.index)
        self.stack.append(node)
        self.on_stack.add(node)
        self.work.append((node, iter(self.graph[node])))

    def is_fresh(self, node: str, successor: str) -> bool:
        """Whether a successor has not been seen; one of the same component lowers `node` to it."""
        if successor in self.on_stack:
            self.low[node] = min(self.low[node], self.index[successor])
        return successor not in self.index

    def leave(self) -> None:
        node, _ = self.work.pop()
        if self.work:
            parent = self.work[-1][0]
            self.low[parent] = min(self.low[parent], self.low[node])
        if self.low[node] == self.index[node]:
            self.found.append(self.pop_component(node))

    def pop_component(self, root: str) -> tuple[str, ...]:
        members: list[str] = []
        while not members or members[-1] != root:
            members.append(self.stack.pop())
            self.on_stack.discard(members[-1])
        return tuple(sorted(members))


def check_stratified(program: Program, found: Diagnostics) -> None:
    """E9110 for each negation or aggregate over a relation that depends on the rule's own head."""
    component = {name: i for i, names in enumerate(components(dependencies(program))) for name in names}
    for rule in program.rules:
        head = rule.head.relation
        used = (atom for atom, strict in used_atoms(rule.body) if strict)
        for atom in (a for a in used if component[a.relation] == component[head]):
            found.error(
                "E9110",
                f"`{head}` depends on its own absence: it is defined by negation or an aggregate over "
                f"`{atom.relation}`, which depends on `{head}`",
                atom.span,
                help="let the negated or aggregated relation not depend on this one",
            )
