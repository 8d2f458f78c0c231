"""Which relations depend on which, and the order in which to compute them (Tarjan's components, without recursion)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from presk_rel.diagnostics import Diagnostics
from presk_rel.rules.ast import Program, Rule
from presk_rel.rules.walk import used_atoms


@dataclass(frozen=True, slots=True)
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
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[tuple[str, ...]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            fresh = next((n for n in successors if n not in index or _lower(low, index, on_stack, node, n)), None)
            if fresh is not None:
                index[fresh] = low[fresh] = len(index)
                stack.append(fresh)
                on_stack.add(fresh)
                work.append((fresh, iter(graph[fresh])))
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                found.append(_pop_component(stack, on_stack, node))
    return found


def _lower(low: dict[str, int], index: dict[str, int], on_stack: set[str], node: str, seen: str) -> bool:
    """Lowers `node` to a seen node of the same component. Always false: a seen node is not visited again."""
    if seen in on_stack:
        low[node] = min(low[node], index[seen])
    return False


def _pop_component(stack: list[str], on_stack: set[str], root: str) -> tuple[str, ...]:
    members: list[str] = []
    while not members or members[-1] != root:
        members.append(stack.pop())
        on_stack.discard(members[-1])
    return tuple(sorted(members))


def check_stratified(program: Program, found: Diagnostics) -> None:
    """E9110 for each negation or aggregate over a relation that depends on the rule's own head."""
    component = {name: i for i, names in enumerate(components(dependencies(program))) for name in names}
    for rule in program.rules:
        for atom, strict in used_atoms(rule.body):
            if not strict or component[atom.relation] != component[rule.head.relation]:
                continue
            found.error(
                "E9110",
                f"`{rule.head.relation}` depends on its own absence: it is defined by negation or an aggregate over "
                f"`{atom.relation}`, which depends on `{rule.head.relation}`",
                atom.span,
                help="let the negated or aggregated relation not depend on this one",
            )
