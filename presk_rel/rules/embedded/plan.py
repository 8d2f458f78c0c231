"""The order in which the literals of a rule are evaluated.

Filters as soon as their variables are bound, then the atom that is expected to
match fewest tuples: rows / distinct keys of the bound columns, measured when a stratum starts. In the trial this
ordering was worth a factor of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from math import expm1
from operator import itemgetter
from typing import cast

from presk_rel.rules.ast import Atom, Binary, Comparison, Constant, Negation, Row, Term, Variable, Wildcard
from presk_rel.rules.normal import Grouping, NormalLiteral
from presk_rel.rules.walk import literal_terms, own_variables, subterms

Columns = tuple[int, ...]
UNKNOWN_SIZE = 1e6
"""Rows assumed of a relation that the stratum itself computes."""


SAMPLE = 4096
"""Rows that are looked at to measure a relation, about: to look at all of them would take a tenth of the time."""


class Statistics:
    """How many rows of a relation to expect for one key of some columns."""

    def __init__(self, rows: Callable[[str], Collection[Row]], known: Callable[[str], bool]) -> None:
        self._rows = rows
        self._known = known
        self._memo: dict[tuple[str, Columns], float] = {}

    def matches(self, relation: str, columns: Columns, arity: int) -> float:
        if len(columns) == arity:
            return 0.0
        if not self._known(relation):
            return float(UNKNOWN_SIZE ** ((arity - len(columns)) / arity))
        key = (relation, columns)
        if key not in self._memo:
            self._memo[key] = self._measure(relation, columns)
        return self._memo[key]

    def _measure(self, relation: str, columns: Columns) -> float:
        rows = self._rows(relation)
        if not columns or not rows:
            return float(len(rows))
        step = max(1, len(rows) // SAMPLE)
        keys = list(map(key_of(columns), islice(rows, None, None, step)))
        return len(rows) / _all_values(len(set(keys)), len(keys), len(rows))


def _all_values(seen: int, sample: int, rows: int) -> float:
    """How many distinct values `rows` rows hold of which `sample`, drawn evenly, hold `seen`: the d for which d equally
    likely values would be expected to show `seen`."""
    if seen == sample:
        return float(rows)
    low, high = float(seen), float(rows)
    for _ in range(30 if sample < rows else 0):
        middle = (low + high) / 2
        if middle * -expm1(-sample / middle) < seen:
            low = middle
        else:
            high = middle
    return low


def key_of(columns: Columns) -> Callable[[Row], object]:
    """The values of some columns of a row: of one column the bare value, of several their tuple."""
    return cast(Callable[[Row], object], itemgetter(*columns))


def bound_columns(atom: Atom, bound: set[str]) -> Columns:
    """The columns of an atom of normal form whose values are known."""
    return tuple(
        i
        for i, a in enumerate(atom.arguments)
        if isinstance(a, Constant) or (isinstance(a, Variable) and a.name in bound)
    )


def choose(todo: Sequence[NormalLiteral], bound: set[str], statistics: Statistics) -> NormalLiteral:
    """The literal of `todo` to evaluate next, given the bound variables."""
    ranks = [(_cost(literal, bound, statistics), i) for i, literal in enumerate(todo)]
    return todo[min(ranks)[1]]


def _cost(literal: NormalLiteral, bound: set[str], statistics: Statistics) -> tuple[int, float]:
    """(class, expected matches): 0 filters, 1 membership tests, 3 groups, 4 scans, 5 what may divide by zero: it waits
    for every filter, as it does in Soufflé."""
    match literal:
        case Comparison():
            if not is_ready(literal, bound):
                return (9, 0.0)
            return (5 if _may_fail(literal) else 0, 0.0)
        case Negation():
            return (1 if is_ready(literal, bound) else 9, 0.0)
        case Grouping():
            return (3 if is_ready(literal, bound) else 9, 0.0)
        case Atom():
            columns = bound_columns(literal, bound)
            arity = len(literal.arguments)
            if len(columns) == arity:
                return (1, 0.0)
            return (4, statistics.matches(literal.relation, columns, arity))


def is_ready(literal: Comparison | Negation | Grouping, bound: set[str]) -> bool:
    """Whether a literal that is not an atom can be evaluated: as a filter, or binding one variable."""
    match literal:
        case Negation(atom=atom):
            return all(isinstance(a, Wildcard | Constant) or _bound(a, bound) for a in atom.arguments)
        case Grouping(shared=shared):
            return bound.issuperset(shared)
        case Comparison(left=left, right=right):
            return (_bound(left, bound) and _bound(right, bound)) or assigned(literal, bound) is not None


def assigned(literal: Comparison, bound: set[str]) -> tuple[Variable, Term] | None:
    """The unbound variable that an equality gives the value of a bound term, if it is such."""
    if literal.operator != "=":
        return None
    for variable, term in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(variable, Variable) and variable.name not in bound and _bound(term, bound):
            return variable, term
    return None


def _bound(term: Term, bound: set[str]) -> bool:
    return bound.issuperset(own_variables(term))


def _may_fail(literal: Comparison) -> bool:
    return any(isinstance(t, Binary) and t.operator in "/%" for term in literal_terms(literal) for t in subterms(term))
