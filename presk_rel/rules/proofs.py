"""Proofs of minimal height for the rows of relations, whichever engine computed them, and why a row is absent.

The cone of a goal is every rule instance that could matter for it, found backwards over the finished relations; then
Knuth's generalisation of Dijkstra's algorithm settles facts by increasing height, so the first derivation of the goal
is one of least height, and cycles do no harm. Equal heights are decided by the order of rules and rows: the proof does
not depend on the engine. Nothing here recurses over facts.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError
from presk_rel.rules.arithmetic import evaluate
from presk_rel.rules.ast import Aggregate, Atom, Comparison, Constant, Negation, Row, Rule, Term, Value, Variable
from presk_rel.rules.embedded.generate import Generator
from presk_rel.rules.embedded.solve import Step, Store
from presk_rel.rules.engine import Relations
from presk_rel.rules.normal import NormalLiteral, NormalRule, needed_variables, normalize
from presk_rel.rules.printer import atom_text
from presk_rel.rules.proof import Fact, Pattern, ProofNode
from presk_rel.rules.substitute import substitute_comparison
from presk_rel.rules.walk import aggregates, literal_terms

CONE_LIMIT = 2_000_000
"""Rule instances among which the least proof is looked for: about two gigabytes."""

HEAD = "$head"
"""Begins the names of variables that stand for columns of a head which are not plain variables."""


@dataclass(frozen=True, slots=True)
class BackwardRule:
    """A rule to be run from a row of its head: `parameters` name the row's columns, `literals` include the equalities
    of head columns that are no plain variables, `results` are all variables of the rule's scope."""

    index: int
    normal: NormalRule
    parameters: tuple[str, ...]
    literals: tuple[NormalLiteral, ...]
    results: tuple[str, ...]

    @property
    def premises(self) -> tuple[str, ...]:
        """The relations of the positive atoms, in order."""
        return tuple(a.relation for a in self.literals if isinstance(a, Atom))


def backward_rule(index: int, rule: Rule) -> BackwardRule:
    """`rule` with named wildcards, its head's columns made parameters."""
    normal = normalize(rule, name_wildcards=True)
    parameters: list[str] = []
    equalities: list[NormalLiteral] = []
    for column, term in enumerate(normal.head.arguments):
        if isinstance(term, Variable) and term.name not in parameters:
            parameters.append(term.name)
            continue
        parameters.append(f"{HEAD}{column}")
        equalities.append(Comparison("=", Variable(parameters[-1]), term, normal.head.span))
    literals = (*normal.body, *equalities)
    names = {n for literal in literals for n in needed_variables(literal)} | set(parameters)
    return BackwardRule(index, normal, tuple(parameters), literals, tuple(sorted(names)))


@dataclass(frozen=True, slots=True)
class _Instance:
    """A rule with the rows of its positive atoms and the values of all its variables."""

    goal: Fact
    backward: BackwardRule
    rows: tuple[Row, ...]
    values: tuple[Value, ...]

    @property
    def premises(self) -> list[Fact]:
        return list(zip(self.backward.premises, self.rows, strict=True))


@dataclass(slots=True)
class _Cone:
    """Instances found backwards from a goal; `uses` lists for each fact the instances with it as a premise."""

    leaves: list[Fact] = field(default_factory=list[Fact])
    instances: list[_Instance] = field(default_factory=list[_Instance])
    uses: dict[Fact, list[int]] = field(default_factory=dict[Fact, list[int]])


@dataclass(frozen=True, slots=True)
class _Settled:
    heights: Mapping[Fact, int]
    chosen: Mapping[Fact, _Instance | None]


class Prover:
    """Proves rows of one `Relations`, which must have all relations (`solve` with `outputs=None`)."""

    def __init__(self, relations: Relations) -> None:
        program = relations.program
        self.relations = relations
        self.store = Store({name: relations.table(name) for name in program.relations})
        self.rules: dict[str, list[tuple[int, Rule]]] = {name: [] for name in program.relations}
        for index, rule in enumerate(program.rules):
            self.rules[rule.head.relation].append((index, rule))
        self._compiled: dict[str, list[tuple[BackwardRule, Step]]] = {}

    def prove(self, relation: str, row: Row) -> ProofNode:
        """A proof of least height. Raises `PreskError` E9125 if the row is not in the relation, and E9127 if
        it follows in too many ways to look at them all."""
        if relation not in self.rules or row not in self.relations.table(relation):
            raise PreskError([Diagnostic("E9125", f"`{atom_text(relation, row)}` does not hold", None)])
        goal = (relation, row)
        return self._build(goal, _settle(goal, self._cone(goal)))

    def _backward(self, relation: str) -> list[tuple[BackwardRule, Step]]:
        if relation not in self._compiled:
            rules = [backward_rule(index, rule) for index, rule in self.rules[relation]]
            generator = Generator(self.store.statistics)
            for rule in rules:
                generator.backward(rule.literals, rule.parameters, rule.results)
            self._compiled[relation] = list(zip(rules, self.store.load(generator), strict=True))
        return self._compiled[relation]

    def _cone(self, goal: Fact) -> _Cone:
        cone = _Cone()
        cone.uses[goal] = []
        todo = [goal]
        while todo:
            relation, row = fact = todo.pop()
            if row in self.relations.facts[relation]:
                cone.leaves.append(fact)
                continue
            for backward, function in self._backward(relation):
                found: list[tuple[tuple[Row, ...], tuple[Value, ...]]] = []
                function(row, found)
                instances = [_Instance(fact, backward, rows, values) for rows, values in found]
                todo += [premise for instance in instances for premise in _add_instance(cone, instance)]
            if len(cone.instances) > CONE_LIMIT:
                message = f"a proof of `{atom_text(*goal)}` may use more than {CONE_LIMIT:,} instances of rules"
                raise PreskError([Diagnostic("E9127", message, None)], exit_status=3)
        return cone

    def _build(self, goal: Fact, settled: _Settled) -> ProofNode:
        nodes: dict[Fact, ProofNode] = {}
        todo = [goal]
        while todo:
            fact = todo[-1]
            instance = settled.chosen[fact]
            missing = [] if instance is None else [p for p in instance.premises if p not in nodes]
            if missing:
                todo += missing
                continue
            todo.pop()
            if fact not in nodes:
                nodes[fact] = self._node(fact, instance, settled.heights[fact], nodes)
        return nodes[goal]

    def _node(self, fact: Fact, instance: _Instance | None, height: int, nodes: Mapping[Fact, ProofNode]) -> ProofNode:
        if instance is None:
            return ProofNode("fact", fact)
        rule = instance.backward.normal.rule
        values = dict(zip(instance.backward.results, instance.values, strict=True))
        premises = iter(instance.premises)
        because: list[ProofNode] = []
        for literal in rule.body:
            match literal:
                case Atom():
                    because.append(nodes[next(premises)])
                case Negation(atom=atom):
                    because.append(ProofNode("absence", pattern(atom, values)))
                case Comparison():
                    because.append(self.claim(literal, values))
        return ProofNode("derived", fact, rule.name, rule.span, tuple(because), height)

    def claim(self, literal: Comparison, values: Mapping[str, Value]) -> ProofNode:
        """The node of a comparison whose variables have these values."""
        claim = substitute_comparison(literal, values)
        found = aggregates(literal_terms(claim))
        if not found:
            return ProofNode("comparison", claim=claim)
        group = sorted({fact for aggregate in found for fact in self._group(aggregate)})
        return ProofNode("aggregate", claim=claim, group=tuple(group))

    def _group(self, aggregate: Aggregate) -> list[Fact]:
        """The rows that an aggregate without outside variables ranges over."""
        backward = backward_rule(-1, Rule(Atom(HEAD, ()), aggregate.body, HEAD))
        generator = Generator(self.store.statistics)
        generator.backward(backward.literals, (), ())
        found: list[tuple[tuple[Row, ...], tuple[Value, ...]]] = []
        self.store.load(generator)[0]((), found)
        return [fact for rows, _ in found for fact in zip(backward.premises, rows, strict=True)]


def _add_instance(cone: _Cone, instance: _Instance) -> list[Fact]:
    """Adds an instance; returns its premises that are new to the cone."""
    number = len(cone.instances)
    cone.instances.append(instance)
    fresh: list[Fact] = []
    for premise in dict.fromkeys(instance.premises):
        if premise not in cone.uses:
            cone.uses[premise] = []
            fresh.append(premise)
        cone.uses[premise].append(number)
    return fresh


def _settle(goal: Fact, cone: _Cone) -> _Settled:
    """Knuth's algorithm. Heap entries are (height, rule, premises, serial, fact, instance): all instances that give a
    fact its least height are in the heap when the first of them is taken, which is therefore the first in order."""
    waiting = [len(set(instance.premises)) for instance in cone.instances]
    heap: list[tuple[int, int, tuple[Row, ...], int, Fact, _Instance | None]] = []
    for serial, fact in enumerate(cone.leaves):
        heap.append((0, -1, (), serial - len(cone.leaves), fact, None))
    for number, instance in enumerate(cone.instances):
        if waiting[number] == 0:
            heap.append((1, instance.backward.index, (), number, instance.goal, instance))
    heapq.heapify(heap)
    heights: dict[Fact, int] = {}
    chosen: dict[Fact, _Instance | None] = {}
    while heap:
        height, _, _, _, fact, instance = heapq.heappop(heap)
        if fact in heights:
            continue
        heights[fact], chosen[fact] = height, instance
        if fact == goal:
            return _Settled(heights, chosen)
        for number, ready in ((n, cone.instances[n]) for n in cone.uses[fact] if _count_down(waiting, n) == 0):
            heapq.heappush(heap, (height + 1, ready.backward.index, ready.rows, number, ready.goal, ready))
    raise PreskBug("rules.proofs", f"{atom_text(*goal)} has no well-founded proof")


def _count_down(waiting: list[int], number: int) -> int:
    waiting[number] -= 1
    return waiting[number]


def pattern(atom: Atom, values: Mapping[str, Value]) -> Pattern:
    """The atom with its values, None where it has none."""
    return atom.relation, tuple(term_value(a, values) for a in atom.arguments)


def term_value(term: Term, values: Mapping[str, Value]) -> Value | None:
    if isinstance(term, Constant):
        return term.value
    try:
        return evaluate(term, values)
    except (KeyError, TypeError):
        return None


__all__: Sequence[str] = ["BackwardRule", "Prover", "backward_rule", "pattern", "term_value"]
