"""Rules in the form that engines and proofs work on: arguments of atoms are variables, constants or `_`.

`p(x - 1)` becomes `p(t), t = x - 1`, and each aggregate a `Grouping` literal of its own. Every literal keeps the index
of the source literal it came from, so that proofs speak of the rule as written. Variables made here begin with `$`.
"""

from __future__ import annotations

from dataclasses import field
from typing import assert_never

from presk_rel.diagnostics.record import mutable, record
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
from presk_rel.rules.walk import aggregate_terms, literal_terms, rename_apart, rule_terms, scope_variables


@record
class Grouping:
    """`result = aggregate`, with the aggregate's body in normal form and `shared` the variables it needs bound."""

    result: Variable
    aggregate: Aggregate
    target: Term | None
    body: tuple[NormalLiteral, ...]
    shared: tuple[str, ...]


NormalLiteral = Atom | Negation | Comparison | Grouping


@record
class NormalRule:
    """`sources[i]` is the index in `rule.body` of what `body[i]` came from; `rule` is as written."""

    rule: Rule
    body: tuple[NormalLiteral, ...]
    sources: tuple[int, ...]

    @property
    def head(self) -> Atom:
        return self.rule.head


def normalize(rule: Rule, *, name_wildcards: bool = False) -> NormalRule:
    """`rule` in normal form. With `name_wildcards`, each `_` of a positive atom is a variable, so that a solution of
    the body determines its premises."""
    apart = rename_apart(rule)
    maker = _Maker(scope_variables(rule_terms(apart)))
    body: list[NormalLiteral] = []
    sources: list[int] = []
    for index, literal in enumerate(apart.body):
        made = maker.literal(literal, name_wildcards)
        body += made
        sources += [index] * len(made)
    return NormalRule(rule, tuple(body), tuple(sources))


def normal_terms(literal: NormalLiteral) -> tuple[Term, ...]:
    """The terms of a literal in its own scope: of a grouping, its result."""
    return (literal.result,) if isinstance(literal, Grouping) else literal_terms(literal)


def needed_variables(literal: NormalLiteral) -> set[str]:
    """The variables of a literal in its scope, with those a grouping shares."""
    names = scope_variables(normal_terms(literal))
    return names | set(literal.shared) if isinstance(literal, Grouping) else names


@mutable
class _Maker:
    scope: set[str]
    count: int = 0
    extra: list[NormalLiteral] = field(default_factory=list[NormalLiteral])

    def fresh(self) -> Variable:
        self.count += 1
        return Variable(f"${self.count}")

    def literal(self, literal: Literal, name_wildcards: bool) -> list[NormalLiteral]:
        """The literal, preceded by what its terms need; `extra` collects the latter meanwhile."""
        outer, self.extra = self.extra, []
        made = self.one(literal, name_wildcards)
        result = [*self.extra, made] if made is not None else self.extra
        self.extra = outer
        return result

    def one(self, literal: Literal, name_wildcards: bool) -> NormalLiteral | None:
        match literal:
            case Atom(relation=relation, arguments=arguments, span=span):
                return Atom(relation, tuple(self.argument(a, name_wildcards) for a in arguments), span)
            case Negation(atom=atom, span=span):
                arguments = tuple(self.argument(a, False) for a in atom.arguments)
                return Negation(Atom(atom.relation, arguments, atom.span), span)
            case Comparison(operator="=", left=Variable() as variable, right=Aggregate() as aggregate):
                self.group(variable, aggregate)
                return None
            case Comparison(operator="=", left=Aggregate() as aggregate, right=Variable() as variable):
                self.group(variable, aggregate)
                return None
            case Comparison(operator=operator, left=left, right=right, span=span):
                return Comparison(operator, self.term(left), self.term(right), span)
            case _:
                assert_never(literal)

    def argument(self, term: Term, name_wildcards: bool) -> Term:
        if isinstance(term, Variable | Constant):
            return term
        if isinstance(term, Wildcard):
            return self.fresh() if name_wildcards else term
        variable = self.fresh()
        self.extra.append(Comparison("=", variable, self.term(term)))
        return variable

    def term(self, term: Term) -> Term:
        """`term` with each aggregate replaced by the variable of its grouping."""
        match term:
            case Variable() | Constant() | Wildcard():
                return term
            case Binary(operator=operator, left=left, right=right):
                return Binary(operator, self.term(left), self.term(right))
            case Call(function=function, arguments=arguments):
                return Call(function, tuple(self.term(a) for a in arguments))
            case Aggregate():
                variable = self.fresh()
                self.group(variable, term)
                return variable
            case _:
                assert_never(term)

    def group(self, result: Variable, aggregate: Aggregate) -> None:
        outer, self.extra = self.extra, []
        around, self.scope = self.scope, self.scope | scope_variables(aggregate_terms(aggregate))
        target = None if aggregate.target is None else self.term(aggregate.target)
        body = [*self.extra, *(made for inner in aggregate.body for made in self.literal(inner, False))]
        self.extra, self.scope = outer, around
        names = {n for literal in body for n in needed_variables(literal)}
        names |= scope_variables([] if target is None else [target])
        self.extra.append(Grouping(result, aggregate, target, tuple(body), tuple(sorted(names & around))))
