"""Walks over terms and literals of the rule language, and renaming apart of what is local to an aggregate.

No walk recurses over the length of a program; terms nest at most `reader.DEPTH_LIMIT` deep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from presk_rel.diagnostics.record import mutable
from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    Binary,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Rule,
    Term,
    Variable,
    Wildcard,
)


def literal_terms(literal: Literal) -> tuple[Term, ...]:
    """The terms that stand directly in a literal."""
    match literal:
        case Atom(arguments=arguments):
            return arguments
        case Negation(atom=atom):
            return atom.arguments
        case Comparison(left=left, right=right):
            return (left, right)
        case _:
            assert_never(literal)


def subterms(term: Term) -> Iterator[Term]:
    """`term` and what it is made of, left to right; an aggregate is given, but not entered."""
    todo = [term]
    while todo:
        current = todo.pop()
        yield current
        match current:
            case Binary(left=left, right=right):
                todo += (right, left)
            case Call(arguments=arguments):
                todo.extend(reversed(arguments))
            case Variable() | Wildcard() | Constant() | Aggregate():
                pass
            case _:
                assert_never(current)


def own_variables(term: Term) -> list[str]:
    """Names of the variables of a term outside its aggregates, in order, with repetitions."""
    return [t.name for t in subterms(term) if isinstance(t, Variable)]


def scope_variables(terms: Iterable[Term]) -> set[str]:
    return {name for term in terms for name in own_variables(term)}


def aggregates(terms: Iterable[Term]) -> list[Aggregate]:
    """The outermost aggregates of `terms`."""
    return [t for term in terms for t in subterms(term) if isinstance(t, Aggregate)]


def aggregate_terms(aggregate: Aggregate) -> list[Term]:
    """The terms that stand directly in an aggregate: its target and those of its body."""
    inner = [term for literal in aggregate.body for term in literal_terms(literal)]
    return inner if aggregate.target is None else [aggregate.target, *inner]


def rule_terms(rule: Rule) -> list[Term]:
    return [*rule.head.arguments, *(term for literal in rule.body for term in literal_terms(literal))]


def deep_terms(terms: Iterable[Term]) -> Iterator[Term]:
    """Every term within `terms`, those in aggregates included."""
    todo = list(terms)
    while todo:
        inside = list(subterms(todo.pop()))
        yield from inside
        todo.extend(term for a in inside if isinstance(a, Aggregate) for term in aggregate_terms(a))


def deep_literals(body: Iterable[Literal]) -> Iterator[Literal]:
    """Every literal of a body, those in aggregates included."""
    todo = list(body)
    while todo:
        literal = todo.pop()
        yield literal
        for aggregate in aggregates(literal_terms(literal)):
            todo.extend(aggregate.body)


def deep_variables(aggregate: Aggregate) -> set[str]:
    """All variables of an aggregate and of those inside it."""
    return {t.name for t in deep_terms([aggregate]) if isinstance(t, Variable)}


def used_atoms(body: Iterable[Literal]) -> Iterator[tuple[Atom, bool]]:
    """The atoms of a body, with whether they must be complete first (negated, or within an aggregate)."""
    for literal in body:
        match literal:
            case Atom():
                yield literal, False
            case Negation(atom=atom):
                yield atom, True
            case Comparison():
                pass
            case _:
                assert_never(literal)
        for aggregate in aggregates(literal_terms(literal)):
            yield from ((atom, True) for atom, _ in used_atoms(aggregate.body))


@mutable
class _Renamer:
    """Gives the variables local to each aggregate names of their own (`x@2`); no identifier contains `@`."""

    count: int = 0

    def term(self, term: Term, names: Mapping[str, str]) -> Term:
        match term:
            case Variable(name=name):
                return Variable(names.get(name, name))
            case Wildcard() | Constant():
                return term
            case Binary(operator=operator, left=left, right=right):
                return Binary(operator, self.term(left, names), self.term(right, names))
            case Call(function=function, arguments=arguments):
                return Call(function, tuple(self.term(a, names) for a in arguments))
            case Aggregate():
                return self.aggregate(term, names)
            case _:
                assert_never(term)

    def aggregate(self, aggregate: Aggregate, names: Mapping[str, str]) -> Aggregate:
        self.count += 1
        inner = dict(names)
        for name in sorted(scope_variables(aggregate_terms(aggregate))):
            inner.setdefault(name, f"{name}@{self.count}")
        target = None if aggregate.target is None else self.term(aggregate.target, inner)
        body = tuple(self.literal(literal, inner) for literal in aggregate.body)
        return Aggregate(aggregate.operator, target, body, aggregate.span)

    def literal(self, literal: Literal, names: Mapping[str, str]) -> Literal:
        match literal:
            case Atom():
                return self.atom(literal, names)
            case Negation(atom=atom, span=span):
                return Negation(self.atom(atom, names), span)
            case Comparison(operator=operator, left=left, right=right, span=span):
                return Comparison(operator, self.term(left, names), self.term(right, names), span)
            case _:
                assert_never(literal)

    def atom(self, atom: Atom, names: Mapping[str, str]) -> Atom:
        return Atom(atom.relation, tuple(self.term(a, names) for a in atom.arguments), atom.span)


def rename_apart(rule: Rule) -> Rule:
    """`rule` with every variable that only an aggregate mentions renamed, so that names need no scopes.

    A variable of an aggregate that also stands outside it (in the rule, or in an enclosing aggregate) is shared.
    """
    terms = rule_terms(rule)
    if not aggregates(terms):
        return rule
    names = {name: name for name in scope_variables(terms)}
    renamer = _Renamer()
    head = renamer.atom(rule.head, names)
    return Rule(head, tuple(renamer.literal(literal, names) for literal in rule.body), rule.name, rule.span)
