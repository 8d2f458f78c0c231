"""The independent checker of proofs: it shares the rules' syntax tree and the proof's data with what it checks.

A proof is accepted when every derived node is an instance of a rule of its name whose body its children are, one to
one; when leaves are input rows; when no row matches an absence; when comparisons and aggregates, computed here anew
over the relations, come out as claimed; and when heights strictly decrease, which makes it well-founded.
Plain and slow on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    Binary,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)
from presk_rel.rules.engine import Relations
from presk_rel.rules.proof import Fact, ProofNode

Bindings = dict[str, Value]


class _Refused(Exception):
    """Why a node is not what it claims to be."""


def check_proof(relations: Relations, root: ProofNode) -> list[str]:
    """What is wrong with a proof of a row of `relations`; nothing, if it is one."""
    problems: list[str] = []
    seen: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        todo += node.because
        try:
            _check_node(relations, node)
        except _Refused as reason:
            problems.append(f"{node.text}: {reason}")
    if root.kind not in ("fact", "derived"):
        problems.append(f"{root.text}: a proof ends in a fact")
    return problems


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _Refused(reason)


def _check_node(relations: Relations, node: ProofNode) -> None:
    if node.kind == "derived":
        _require(node.height == 1 + max((c.height for c in node.because), default=0), "the height is wrong")
        _require(all(c.height < node.height for c in node.because), "a premise is not lower")
        _check_derived(relations, node)
        return
    _require(node.height == 0 and node.because == () and node.rule is None, "a leaf has premises")
    match node.kind:
        case "fact":
            relation, row = _fact(node)
            _require(relation in relations.facts and row in relations.facts[relation], "it is not an input row")
        case "absence":
            _check_absent(relations, node)
        case "comparison" | "aggregate":
            _require(node.claim is not None and node.fact is None, "it claims nothing")
        case _:
            assert_never(node.kind)


def _fact(node: ProofNode) -> Fact:
    _require(node.fact is not None and all(v is not None for v in node.fact[1]), "it has no row")
    assert node.fact is not None
    return node.fact[0], tuple(v for v in node.fact[1] if v is not None)


def _check_absent(relations: Relations, node: ProofNode) -> None:
    _require(node.fact is not None and node.fact[0] in relations.program.relations, "it names no relation")
    assert node.fact is not None
    relation, wanted = node.fact
    for row in relations.table(relation):
        same = [w is None or (type(w) is type(v) and w == v) for w, v in zip(wanted, row, strict=True)]
        _require(not all(same), f"the row {row} is there")


def _check_derived(relations: Relations, node: ProofNode) -> None:
    relation, row = _fact(node)
    _require(row in relations.table(relation), "it is not in the relation")
    rules = [r for r in relations.program.rules if r.name == node.rule and r.head.relation == relation]
    _require(bool(rules), f"there is no rule {node.rule} for it")
    reasons: list[str] = []
    for rule in rules:
        try:
            _check_instance(relations, rule, node, row)
            return
        except _Refused as reason:
            reasons.append(str(reason))
    raise _Refused(f"it is no instance of {node.rule}: {'; '.join(reasons)}")


def _check_instance(relations: Relations, rule: Rule, node: ProofNode, row: Row) -> None:
    _require(node.span == rule.span, "the span is another rule's")
    _require(len(rule.body) == len(node.because), "the number of premises is wrong")
    equations = list(zip(rule.head.arguments, row, strict=True))
    for literal, child in zip(rule.body, node.because, strict=True):
        equations += _premise_equations(literal, child)
    bindings: Bindings = {}
    for term, value in equations:
        if isinstance(term, Variable):
            _require(bindings.setdefault(term.name, value) == value, f"{term.name} has two values")
    _close(relations, rule.body, bindings)
    for term, value in equations:
        _require(_evaluate(relations, term, bindings) == value, "a column has the wrong value")
    for literal, child in zip(rule.body, node.because, strict=True):
        if isinstance(literal, Comparison):
            _check_comparison(relations, literal, child, bindings)


def _premise_equations(literal: Literal, child: ProofNode) -> list[tuple[Term, Value]]:
    """What the child says about the terms of its literal."""
    if isinstance(literal, Comparison):
        _require(child.kind == ("aggregate" if _has_aggregate(literal) else "comparison"), "a premise's kind is wrong")
        return []
    atom = literal.atom if isinstance(literal, Negation) else literal
    wanted = ("absence",) if isinstance(literal, Negation) else ("fact", "derived")
    _require(child.kind in wanted and child.fact is not None, "a premise's kind is wrong")
    assert child.fact is not None
    relation, values = child.fact
    _require(relation == atom.relation and len(values) == len(atom.arguments), "a premise's relation is wrong")
    equations: list[tuple[Term, Value]] = []
    for term, value in zip(atom.arguments, values, strict=True):
        if isinstance(literal, Negation):
            _require((value is None) == isinstance(term, Wildcard), "an absence is about the wrong columns")
        if value is not None and not isinstance(term, Wildcard):
            equations.append((term, value))
    return equations


def _has_aggregate(literal: Comparison) -> bool:
    return any(isinstance(t, Aggregate) for side in (literal.left, literal.right) for t in _parts(side))


def _parts(term: Term) -> Iterator[Term]:
    """A term and the terms in it, without those inside aggregates."""
    yield term
    if isinstance(term, Binary):
        yield from _parts(term.left)
        yield from _parts(term.right)
    if isinstance(term, Call):
        for argument in term.arguments:
            yield from _parts(argument)


def _check_comparison(relations: Relations, literal: Comparison, child: ProofNode, bindings: Bindings) -> None:
    instance = _instantiate(literal, bindings)
    _require(child.claim == instance, "a claim is not the instance of its literal")
    _require(_holds(relations, literal, bindings), f"`{child.text}` does not hold")
    group: set[Fact] = set()
    for side in (literal.left, literal.right):
        for aggregate in (t for t in _parts(side) if isinstance(t, Aggregate)):
            group.update(f for state in _solve(relations, aggregate.body, bindings) for f in state.rows)
    _require(child.group == tuple(sorted(group)), "the group of an aggregate is wrong")


@dataclass(frozen=True, slots=True)
class _State:
    """Bindings on the way through a conjunction, the rows used, and equations of terms still to be checked."""

    bindings: Bindings
    rows: tuple[Fact, ...] = ()
    open: tuple[tuple[Term, Value], ...] = ()


def _solve(relations: Relations, body: tuple[Literal, ...], outside: Mapping[str, Value]) -> list[_State]:
    """All solutions of a conjunction: atoms first, as written; then equalities; then everything is checked."""
    states = [_State(dict(outside))]
    for atom in (literal for literal in body if isinstance(literal, Atom)):
        states = [
            after for state in states for row in relations.table(atom.relation) for after in _join(state, atom, row)
        ]
    return [state for state in states if _completes(relations, body, state)]


def _join(state: _State, atom: Atom, row: Row) -> Iterator[_State]:
    bindings, pending = dict(state.bindings), list(state.open)
    for term, value in zip(atom.arguments, row, strict=True):
        match term:
            case Variable(name=name):
                if bindings.setdefault(name, value) != value:
                    return
            case Wildcard():
                pass
            case _:
                pending.append((term, value))
    yield _State(bindings, (*state.rows, (atom.relation, row)), tuple(pending))


def _completes(relations: Relations, body: tuple[Literal, ...], state: _State) -> bool:
    _close(relations, body, state.bindings)
    if any(_evaluate(relations, term, state.bindings) != value for term, value in state.open):
        return False
    for literal in body:
        match literal:
            case Atom():
                continue
            case Negation(atom=atom):
                holds = not any(_fits(relations, atom, row, state.bindings) for row in relations.table(atom.relation))
            case Comparison():
                holds = _holds(relations, literal, state.bindings)
        if not holds:
            return False
    return True


def _fits(relations: Relations, atom: Atom, row: Row, bindings: Bindings) -> bool:
    return all(
        isinstance(term, Wildcard) or _evaluate(relations, term, bindings) == value
        for term, value in zip(atom.arguments, row, strict=True)
    )


def _close(relations: Relations, body: tuple[Literal, ...], bindings: Bindings) -> None:
    """Binds, in place, the variables that equalities determine."""
    equalities = [c for c in body if isinstance(c, Comparison) and c.operator == "="]
    sides = [s for c in equalities for s in ((c.left, c.right), (c.right, c.left))]
    outer = {n for literal in body for n in _scope(literal)} | set(bindings)
    before = -1
    while before != len(bindings):
        before = len(bindings)
        for side, other in sides:
            if isinstance(side, Variable) and side.name not in bindings and _needs(other, outer) <= set(bindings):
                value = _evaluate(relations, other, bindings)
                bindings |= {} if value is None else {side.name: value}


def _scope(literal: Literal) -> set[str]:
    terms = (literal.left, literal.right) if isinstance(literal, Comparison) else ()
    if isinstance(literal, Atom | Negation):
        terms = literal.arguments if isinstance(literal, Atom) else literal.atom.arguments
    return {t.name for term in terms for t in _parts(term) if isinstance(t, Variable)}


def _needs(term: Term, outer: set[str]) -> set[str]:
    names = {t.name for t in _parts(term) if isinstance(t, Variable)}
    for aggregate in (t for t in _parts(term) if isinstance(t, Aggregate)):
        for literal in aggregate.body:
            names |= _scope(literal) & outer
            sides = (literal.left, literal.right) if isinstance(literal, Comparison) else ()
            names |= {n for side in sides for n in _needs(side, outer)} & outer
    return names


def _holds(relations: Relations, literal: Comparison, bindings: Bindings) -> bool:
    left, right = _evaluate(relations, literal.left, bindings), _evaluate(relations, literal.right, bindings)
    if left is None or right is None or isinstance(left, int) != isinstance(right, int):
        return False
    order = 0 if left == right else 1 if left == sorted([left, right], key=_order_key)[1] else -1
    outcomes = {"=": (0,), "!=": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}
    return order in outcomes[literal.operator]


def _order_key(value: Value) -> tuple[int, bytes]:
    return (value, b"") if isinstance(value, int) else (0, value.encode("utf-8", "surrogatepass"))


def _evaluate(relations: Relations, term: Term, bindings: Bindings) -> Value | None:
    """The value of a term; None where it has none (an unbound variable, `max` of nothing, division by zero)."""
    match term:
        case Constant(value=value):
            return value
        case Variable(name=name):
            return bindings.get(name)
        case Wildcard():
            return None
        case Binary(operator=operator, left=left, right=right):
            a, b = _evaluate(relations, left, bindings), _evaluate(relations, right, bindings)
            return _arithmetic(operator, a, b) if isinstance(a, int) and isinstance(b, int) else None
        case Call(function=function, arguments=arguments):
            return _call(function, [_evaluate(relations, a, bindings) for a in arguments])
        case Aggregate():
            return _aggregate(relations, term, bindings)
        case _:
            assert_never(term)


def _arithmetic(operator: str, a: int, b: int) -> int | None:
    if operator in "/%" and b == 0:
        return None
    quotient = 0 if b == 0 else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    exact = {"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - b * quotient}[operator]
    return (exact + 2**31) % 2**32 - 2**31


def _call(function: str, values: list[Value | None]) -> Value | None:
    numbers = [v for v in values if isinstance(v, int)]
    symbols = [v for v in values if isinstance(v, str)]
    same = numbers if numbers else symbols
    if len(same) != len(values):
        return None
    match function:
        case "cat":
            return "".join(symbols)
        case "strlen":
            return len(symbols[0].encode("utf-8", "surrogatepass"))
        case _:
            ordered = sorted(numbers) if numbers else sorted(symbols)
            return ordered[0] if function == "min" else ordered[-1]


def _aggregate(relations: Relations, aggregate: Aggregate, bindings: Bindings) -> int | None:
    states = _solve(relations, aggregate.body, bindings)
    if aggregate.target is None:
        return len(states)
    values = [_evaluate(relations, aggregate.target, state.bindings) for state in states]
    numbers = [v for v in values if isinstance(v, int)]
    if aggregate.operator == "sum":
        return (sum(numbers) + 2**31) % 2**32 - 2**31
    if not numbers:
        return None
    return min(numbers) if aggregate.operator == "min" else max(numbers)


def _instantiate(literal: Literal, bindings: Bindings) -> Literal:
    match literal:
        case Atom(relation=relation, arguments=arguments):
            return Atom(relation, tuple(_instance_term(a, bindings) for a in arguments))
        case Negation(atom=Atom(relation=relation, arguments=arguments)):
            return Negation(Atom(relation, tuple(_instance_term(a, bindings) for a in arguments)))
        case Comparison(operator=operator, left=left, right=right):
            return Comparison(operator, _instance_term(left, bindings), _instance_term(right, bindings))
        case _:
            assert_never(literal)


def _instance_term(term: Term, bindings: Bindings) -> Term:
    match term:
        case Variable(name=name):
            return Constant(bindings[name]) if name in bindings else term
        case Wildcard() | Constant():
            return term
        case Binary(operator=operator, left=left, right=right):
            return Binary(operator, _instance_term(left, bindings), _instance_term(right, bindings))
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(_instance_term(a, bindings) for a in arguments))
        case Aggregate(operator=operator, target=target, body=body):
            ranging = None if target is None else _instance_term(target, bindings)
            return Aggregate(operator, ranging, tuple(_instantiate(b, bindings) for b in body))
        case _:
            assert_never(term)
