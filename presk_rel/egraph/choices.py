"""What extraction chooses from: the nodes of the e-graph with their costs; and the terms of what was chosen."""

from __future__ import annotations

from dataclasses import dataclass, field

from presk_rel.egraph.cost import CostModel
from presk_rel.egraph.extract import Choice, Choices, ClassId
from presk_rel.egraph.folds.residuals import stacks
from presk_rel.egraph.language import INPUT, Encoded, HeadId, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.snapshot import Graph
from presk_rel.egraph.templates import shape_operands
from presk_rel.smt.linear import Linear

_BUILDERS = ("record", "tuple")


@dataclass(frozen=True, slots=True)
class Spine:
    """The records and tuples that build the result, operands first, and what they are built of. They stay as they are
    and out of the e-graph, which they would only make wide."""

    builders: tuple[TermId, ...]
    leaves: tuple[TermId, ...]


def spine(terms: Terms, root: TermId) -> Spine:
    builders: set[TermId] = set()
    leaves: set[TermId] = set()
    stack = [root]
    while stack:
        t = stack.pop()
        if terms.op(t).op not in _BUILDERS:
            leaves.add(t)
        elif t not in builders:
            builders.add(t)
            stack += terms.args[t]
    return Spine(tuple(sorted(builders)), tuple(sorted(leaves)))


def loaded_args(terms: Terms, term: TermId) -> tuple[int, ...]:
    """A term's operands as the e-graph has them: `-1 - type` where only a type is read."""
    shapes = shape_operands(terms.op(term))
    return tuple(-1 - terms.type[a] if i in shapes else a for i, a in enumerate(terms.args[term]))


@dataclass(slots=True)
class Weights:
    """Costs of e-nodes, four times the model's and 2 per binding: at equal cost fewer bindings win, and among those a
    node of the start program over a new one. A fold also costs the stacks that it writes; only those of `bodies`,
    where these are given, are choices."""

    terms: Terms
    model: CostModel
    bodies: frozenset[str] | None = None
    _units: dict[tuple[HeadId, tuple[TypeId, ...]], int] = field(
        default_factory=dict[tuple[HeadId, tuple[TypeId, ...]], int]
    )

    def units(self, head: HeadId, operands: tuple[TypeId, ...]) -> int:
        key = (head, operands)
        known = self._units.get(key)
        if known is None:
            types = self.terms.table.types
            h = self.terms.heads[head]
            work = self.model.work(h.op, h.attrs, tuple(types[t] for t in operands), types[h.type])
            more = (
                stacks(h.attrs[0], str(h.attrs[1]), types[h.type], self.model, scan=bool(h.attrs[3]))
                if (h.op == "fold" and isinstance(h.attrs[0], Linear))
                else 0
            )
            known = self._units[key] = 4 * (work.units + more) + (0 if h.op == INPUT else 2)
        return known

    def is_choice(self, head: HeadId) -> bool:
        h = self.terms.heads[head]
        return h.op != "fold" or self.bodies is None or str(h.attrs[1]) in self.bodies


_Node = tuple[ClassId, HeadId, tuple[int, ...]]


def nodes_of(graph: Graph, terms: Terms, start: list[TermId]) -> set[_Node]:
    """The nodes, with their classes, of the terms of a program."""
    found: set[_Node] = set()
    for t in start:
        args = tuple(graph.of_term[a] if a >= 0 else a for a in loaded_args(terms, t))
        found.add((graph.of_term[t], terms.head[t], args))
    return found


def choices_of(
    graph: Graph, encoded: Encoded, leaves: tuple[TermId, ...], weights: Weights, own: set[_Node]
) -> tuple[Choices, ClassId]:
    """The choices that one function has, each keyed by its place in its class: what its result may be computed from,
    and no other function's parameters. And the class, one more, that needs the leaves of its result. `own` are the
    nodes of the program."""
    heads = encoded.terms.heads
    root = len(graph.nodes)
    found: Choices = {root: [Choice(0, frozenset(graph.of_term[t] for t in leaves), 0)]}
    stack = sorted(found[root][0].needs)
    while stack:
        c = stack.pop()
        if c in found:
            continue
        ways = found[c] = list[Choice]()
        for i, node in enumerate(graph.nodes[c]):
            head = heads[node.head]
            if not weights.is_choice(node.head) or (head.op == INPUT and not encoded.owns(head)):
                continue
            operands = tuple(graph.types[a] if a >= 0 else -1 - a for a in node.args)
            cost = weights.units(node.head, operands) + ((c, node.head, node.args) not in own)
            ways.append(Choice(cost, frozenset(a for a in node.args if a >= 0), i))
            stack += [a for a in node.args if a >= 0 and a not in found]
    return dict(sorted(found.items())), root


def chosen_terms(
    graph: Graph, terms: Terms, chosen: dict[ClassId, Choice], roots: list[ClassId]
) -> dict[ClassId, TermId]:
    """The term of every chosen class, with templates where only a type is read."""
    made: dict[ClassId, TermId] = {}
    stack = list(roots)
    while stack:
        c = stack[-1]
        node = graph.nodes[c][chosen[c].key]
        missing = [a for a in node.args if a >= 0 and a not in made]
        stack += missing
        if not missing:
            stack.pop()
            args = tuple(made[a] if a >= 0 else terms.template(-1 - a) for a in node.args)
            made[c] = terms.make(node.head, args)
    return made
