"""Base types in rules: each variable is a number or a symbol, decided by the columns and functions it stands in.

Works on rules whose aggregates are renamed apart (`walk.rename_apart`). Types that nothing decides stay open: such a
variable is compared only with its like. Subset types of `.type` count as their base types here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import assert_never

from presk_rel.diagnostics import Diagnostics, Span
from presk_rel.diagnostics.record import mutable
from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    BaseType,
    Binary,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    RelationDecl,
    Rule,
    Term,
    Variable,
    Wildcard,
)
from presk_rel.rules.walk import deep_literals, deep_terms, rename_apart, rule_terms


def check_types(relations: Mapping[str, RelationDecl], rule: Rule, found: Diagnostics) -> None:
    """E9108 where a number stands for a symbol or a symbol for a number. Arities have been checked."""
    _Checker(relations, found).run(rule)


@mutable
class _Checker:
    """`parents` joins variables that must agree (union-find); `types` holds what is known of the roots."""

    relations: Mapping[str, RelationDecl]
    found: Diagnostics
    parents: dict[str, str] = field(default_factory=dict[str, str])
    types: dict[str, BaseType] = field(default_factory=dict[str, BaseType])

    def run(self, rule: Rule) -> None:
        """Goes over the rule until no more types become known."""
        before = -1
        while before != len(self.types):
            before = len(self.types)
            if rule.head.relation in self.relations:
                self.atom(rule.head)
            for literal in rule.body:
                self.literal(literal)

    def root(self, name: str) -> str:
        while name in self.parents:
            name = self.parents[name]
        return name

    def literal(self, literal: Literal) -> None:
        match literal:
            case Atom():
                self.atom(literal)
            case Negation(atom=atom):
                self.atom(atom)
            case Comparison(left=left, right=right, span=span):
                self.same(left, right, span)
            case _:
                assert_never(literal)

    def atom(self, atom: Atom) -> None:
        for term, wanted in zip(atom.arguments, self.relations[atom.relation].types, strict=True):
            self.expect(term, wanted, atom.span)

    def same(self, left: Term, right: Term, span: Span) -> None:
        left_type, right_type = self.known(left, span), self.known(right, span)
        if left_type is not None:
            self.expect(right, left_type, span)
        elif right_type is not None:
            self.expect(left, right_type, span)
        elif isinstance(left, Variable) and isinstance(right, Variable):
            self.join(left.name, right.name)

    def join(self, left: str, right: str) -> None:
        a, b = self.root(left), self.root(right)
        if a != b:
            self.parents[a] = b

    def expect(self, term: Term, wanted: BaseType, span: Span) -> None:
        if isinstance(term, Variable):
            self.types.setdefault(self.root(term.name), wanted)
        actual = self.known(term, span)
        if actual is not None and actual != wanted:
            shown = f"`{term.name.split('@')[0]}`" if isinstance(term, Variable) else "this"
            self.found.error("E9108", f"a {wanted} is wanted here, but {shown} is a {actual}", span)

    def known(self, term: Term, span: Span) -> BaseType | None:
        """The type of `term` as far as it is known; checks what is inside it."""
        match term:
            case Variable(name=name):
                return self.types.get(self.root(name))
            case Wildcard():
                return None
            case Constant(value=value):
                return "number" if isinstance(value, int) else "symbol"
            case Binary(left=left, right=right):
                self.expect(left, "number", span)
                self.expect(right, "number", span)
                return "number"
            case Call():
                return self.call(term, span)
            case Aggregate(target=target, body=body):
                for literal in body:
                    self.literal(literal)
                if target is not None:
                    self.expect(target, "number", span)
                return "number"
            case _:
                assert_never(term)

    def call(self, call: Call, span: Span) -> BaseType | None:
        match call.function:
            case "cat":
                for argument in call.arguments:
                    self.expect(argument, "symbol", span)
                return "symbol"
            case "strlen":
                for argument in call.arguments:
                    self.expect(argument, "symbol", span)
                return "number"
            case "min" | "max":
                for argument in call.arguments[1:]:
                    self.same(call.arguments[0], argument, span)
                known: list[BaseType | None] = [self.known(a, span) for a in call.arguments]
                return next((t for t in known if t is not None), None)
            case _:
                assert_never(call.function)


def variable_types(relations: Mapping[str, RelationDecl], rule: Rule) -> dict[str, BaseType]:
    """The types of the variables of a rule (renamed apart), as far as something decides them."""
    checker = _Checker(relations, Diagnostics())
    checker.run(rule)
    names = {t.name for t in deep_terms(rule_terms(rule)) if isinstance(t, Variable)}
    roots = {name: checker.root(name) for name in names}
    return {name: checker.types[root] for name, root in roots.items() if root in checker.types}


def orders_symbols(relations: Mapping[str, RelationDecl], rule: Rule) -> bool:
    """Whether a valid rule compares symbols by `<` and its like, or takes `min` or `max` of symbols."""
    apart = rename_apart(rule)
    checker = _Checker(relations, Diagnostics())
    checker.run(apart)
    comparisons = [c for c in deep_literals(apart.body) if isinstance(c, Comparison) and c.operator not in ("=", "!=")]
    calls = [t for t in deep_terms(rule_terms(apart)) if isinstance(t, Call) and t.function in ("min", "max")]
    ordered = [*(c.left for c in comparisons), *calls]
    return any(checker.known(term, apart.span) == "symbol" for term in ordered)
