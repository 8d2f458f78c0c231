"""Terms and literals with variables replaced by values."""

from __future__ import annotations

from collections.abc import Mapping
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
    Term,
    Value,
    Variable,
    Wildcard,
)


def substitute_term(term: Term, values: Mapping[str, Value]) -> Term:
    match term:
        case Variable(name=name):
            return Constant(values[name]) if name in values else term
        case Wildcard() | Constant():
            return term
        case Binary(operator=operator, left=left, right=right):
            return Binary(operator, substitute_term(left, values), substitute_term(right, values))
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(substitute_term(a, values) for a in arguments))
        case Aggregate(operator=operator, target=target, body=body, span=span):
            ranging = None if target is None else substitute_term(target, values)
            return Aggregate(operator, ranging, tuple(substitute(literal, values) for literal in body), span)
        case _:
            assert_never(term)


def substitute(literal: Literal, values: Mapping[str, Value]) -> Literal:
    match literal:
        case Atom():
            return _substitute_atom(literal, values)
        case Negation(atom=atom, span=span):
            return Negation(_substitute_atom(atom, values), span)
        case Comparison():
            return substitute_comparison(literal, values)
        case _:
            assert_never(literal)


def substitute_comparison(literal: Comparison, values: Mapping[str, Value]) -> Comparison:
    left, right = substitute_term(literal.left, values), substitute_term(literal.right, values)
    return Comparison(literal.operator, left, right, literal.span)


def _substitute_atom(atom: Atom, values: Mapping[str, Value]) -> Atom:
    return Atom(atom.relation, tuple(substitute_term(a, values) for a in atom.arguments), atom.span)
