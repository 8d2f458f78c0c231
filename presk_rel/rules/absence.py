"""Why nothing matches a goal: how far each rule gets, reading its premises in the order in which they are written.

A premise whose variables are not yet bound waits until they are. The states after each premise are kept only as far as
later premises can tell them apart, so that a long rule over large relations stays affordable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from presk_rel.diagnostics import PreskBug
from presk_rel.rules.arithmetic import aggregate_value, compare, evaluate
from presk_rel.rules.ast import Atom, Comparison, Constant, Literal, Negation, Row, Rule, Value, Variable
from presk_rel.rules.embedded.plan import assigned, bound_columns, is_ready
from presk_rel.rules.embedded.solve import Store
from presk_rel.rules.normal import Grouping, NormalLiteral, NormalRule, needed_variables, normal_terms, normalize
from presk_rel.rules.proof import Absence, Attempt, Pattern, ProofNode
from presk_rel.rules.proofs import Prover, pattern
from presk_rel.rules.walk import scope_variables

Values = dict[str, Value]


def explain_absence(prover: Prover, relation: str, row: tuple[Value | None, ...]) -> Absence:
    """Why no row of `relation` matches `row`, where None is any value: an attempt for each rule of the relation.

    If rows do match, they are what the result presents instead. An input relation has no attempts.
    """
    goal = (relation, row)
    present = sorted(r for r in prover.relations.table(relation) if _matches(r, row))
    if present:
        return Absence(goal, tuple(present), ())
    attempts = [_attempt(prover, rule, goal) for _, rule in prover.rules[relation]]
    return Absence(goal, (), attempts)


def _matches(row: Row, wanted: tuple[Value | None, ...]) -> bool:
    return all(w is None or w == v for v, w in zip(row, wanted, strict=True))


@dataclass(frozen=True, slots=True)
class _Step:
    """A literal, and the index of the source literal it belongs to; -1 for the equalities of the head."""

    literal: NormalLiteral
    source: int


def _attempt(prover: Prover, rule: Rule, goal: Pattern) -> Attempt:
    normal = normalize(rule)
    values, equalities = _unify(normal, goal)
    steps = [_Step(e, -1) for e in equalities]
    steps += [_Step(literal, source) for literal, source in zip(normal.body, normal.sources, strict=True)]
    ordered = list(_in_order(steps, set(values)))
    states, done = [values], list[_Step]()
    for position, step in enumerate(ordered):
        later = {n for s in ordered[position + 1 :] for n in needed_variables(s.literal)}
        following = _distinct((n for v in states for n in _solutions(prover.store, step.literal, v)), later)
        if not following:
            return _report(prover, normal, done, step, states[0])
        done.append(step)
        states = following
    raise PreskBug("rules.absence", f"the rule {rule.name} gives a row that is absent from {rule.head.relation}")


def _unify(normal: NormalRule, goal: Pattern) -> tuple[Values, list[NormalLiteral]]:
    """The values that the goal gives to variables of the head, and the equalities that it asks of its other columns."""
    values: Values = {}
    equalities: list[NormalLiteral] = []
    for term, wanted in zip(normal.head.arguments, goal[1], strict=True):
        if wanted is None:
            continue
        if isinstance(term, Variable) and term.name not in values:
            values[term.name] = wanted
        else:
            equalities.append(Comparison("=", Constant(wanted), term, normal.head.span))
    return values, equalities


def _in_order(steps: list[_Step], bound: set[str]) -> Iterator[_Step]:
    """The steps, each as early as its place in the rule and its variables allow."""
    todo = list(steps)
    while todo:
        step = next(s for s in todo if isinstance(s.literal, Atom) or is_ready(s.literal, bound))
        todo.remove(step)
        bound |= scope_variables(normal_terms(step.literal))
        yield step


def _distinct(states: Iterator[Values], later: set[str]) -> list[Values]:
    """One state for each choice of the variables that are needed later; the first in order comes first."""
    kept: dict[tuple[tuple[str, Value], ...], Values] = {}
    for state in states:
        kept.setdefault(tuple((n, state[n]) for n in sorted(state.keys() & later)), state)
    return list(kept.values())


def _solutions(store: Store, literal: NormalLiteral, values: Values) -> Iterator[Values]:
    """The extensions of `values` that satisfy a literal."""
    match literal:
        case Atom():
            yield from _rows(store, literal, values)
        case Negation(atom=atom):
            if next(_rows(store, atom, values), None) is None:
                yield values
        case Comparison(operator=operator, left=left, right=right):
            target = assigned(literal, set(values))
            if target is not None:
                yield values | {target[0].name: evaluate(target[1], values)}
            elif compare(operator, evaluate(left, values), evaluate(right, values)):
                yield values
        case Grouping(result=result):
            value = _group_value(store, literal, values)
            if value is not None and values.get(result.name, value) == value:
                yield values | {result.name: value}


def _group_value(store: Store, grouping: Grouping, values: Values) -> int | None:
    states: list[Values] = [{n: values[n] for n in grouping.shared}]
    for step in _in_order([_Step(literal, 0) for literal in grouping.body], set(grouping.shared)):
        states = [after for state in states for after in _solutions(store, step.literal, state)]
    target = Constant(0) if grouping.target is None else grouping.target
    return aggregate_value(grouping.aggregate, [evaluate(target, state) for state in states])


def _rows(store: Store, atom: Atom, values: Values) -> Iterator[Values]:
    """The extensions of `values` by the rows that match an atom, in order of rows."""
    columns = bound_columns(atom, set(values))
    key = tuple(evaluate(atom.arguments[i], values) for i in columns)
    if len(columns) == len(atom.arguments):
        if key in store.tables[atom.relation]:
            yield values
        return
    found = store.tables[atom.relation] if not columns else store.index(atom.relation, columns).get(_key(key), ())
    for row in sorted(found):
        extended = _extend(atom, row, values)
        if extended is not None:
            yield extended


def _key(values: Row) -> object:
    return values[0] if len(values) == 1 else values


def _extend(atom: Atom, row: Row, values: Values) -> Values | None:
    extended = dict(values)
    for argument, value in zip(atom.arguments, row, strict=True):
        if isinstance(argument, Variable) and extended.setdefault(argument.name, value) != value:
            return None
    return extended


def _report(prover: Prover, normal: NormalRule, done: Sequence[_Step], failed: _Step, values: Values) -> Attempt:
    """A source literal is satisfied once all its steps are; the failing step's literal is the one that fails."""
    incomplete = {failed.source}
    finished = [s.source for s in done if s.source >= 0]
    total = list(normal.sources)
    order = [i for i in dict.fromkeys(finished) if i not in incomplete and finished.count(i) == total.count(i)]
    body = normal.rule.body
    satisfied = tuple(_premise(prover, body[i], values) for i in order)
    if failed.source < 0:
        assert isinstance(failed.literal, Comparison)
        return Attempt(normal.rule.name, normal.rule.span, satisfied, prover.claim(failed.literal, values))
    return Attempt(normal.rule.name, normal.rule.span, satisfied, _premise(prover, body[failed.source], values))


def _premise(prover: Prover, literal: Literal, values: Values) -> ProofNode:
    """The literal with what is known of its values. A failed negation shows what it denies: the caller knows."""
    match literal:
        case Atom():
            return ProofNode("fact", pattern(literal, values))
        case Negation(atom=atom):
            return ProofNode("absence", pattern(atom, values))
        case Comparison():
            return prover.claim(literal, values)
