"""Questions to a solved program: `regularity(f, p, "Disc"), calls(f, g)` → a table of what `f`, `p` and `g` may be.

A query is the body of a rule in the rule language (negation, comparisons, `;` and aggregates too), answered by adding
that rule to the program. Its variables may be any identifiers; each is a column, in order of appearance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from presk_rel.diagnostics import Diagnostics, PreskError, Span
from presk_rel.rules.ast import Atom, Attribute, BaseType, Literal, Program, RelationDecl, Row, Rule, Variable
from presk_rel.rules.dialect import extend_with_file
from presk_rel.rules.engine import Engine, Relations, solve
from presk_rel.rules.items import in_order
from presk_rel.rules.reader import read_body
from presk_rel.rules.rule_types import variable_types
from presk_rel.rules.validate import is_well_formed, validate
from presk_rel.rules.walk import literal_terms, own_variables, rename_apart, used_atoms

QUERY_FILE = "<query>"
"""What spans in the text of a query name as their file."""


@dataclass(frozen=True, slots=True)
class Query:
    """A program with the query's rules, whose relation is `relation`."""

    program: Program
    relation: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Sorted rows of values of `columns`. A query without variables has the row `()` if it holds, else none.

    `relations` has everything that was derived, for proofs of the rows of `query.relation`.
    """

    query: Query
    columns: tuple[str, ...]
    rows: list[Row]
    relations: Relations


def ask(
    program: Program,
    facts: Mapping[str, Iterable[Row]],
    text: str,
    *,
    rules: Path | None = None,
    search: Sequence[Path] = (),
    engine: Engine = "auto",
) -> Answer:
    """The answer to the query `text`, with the rules of the file `rules` added to the program.

    Raises `PreskError`: E9101 … E9115 for the query or the added rules, else as `engine.solve`.
    """
    extended = program if rules is None else extend_with_file(program, rules, search=search)
    query = prepare(extended, text)
    relations = solve(query.program, facts, engine)
    return Answer(query, query.columns, relations.rows(query.relation), relations)


def prepare(program: Program, text: str) -> Query:
    """`program` with the query as one rule for each alternative. Raises `PreskError` as `dialect.parse_program`."""
    alternatives = read_body(text, QUERY_FILE)
    columns = tuple(dict.fromkeys(name for body in alternatives for name in _variables(body)))
    relation = next(n for n in _names() if n not in program.relations)
    head = tuple(Variable(c) for c in columns)
    rules = [Rule(Atom(relation, head, _span(body)), body, relation, _span(body)) for body in alternatives]
    types = _types(program, rules, columns)
    attributes = tuple(Attribute(f"column{i}", t) for i, t in enumerate(types))
    declared = {**program.relations, relation: RelationDecl(relation, attributes, types, False, True)}
    extended = Program(declared, program.types, (*program.rules, *rules), program.facts)
    found = Diagnostics()
    validate(extended, found)
    if found.has_errors:
        raise PreskError(in_order(found))
    return Query(extended, relation, columns)


def _variables(body: Sequence[Literal]) -> Iterator[str]:
    for literal in body:
        for term in literal_terms(literal):
            yield from own_variables(term)


def _names() -> Iterator[str]:
    yield "query"
    for number in count(1):
        yield f"query_{number}"


def _span(body: Sequence[Literal]) -> Span:
    return body[0].span.to(body[-1].span)


def _types(program: Program, rules: Sequence[Rule], columns: Sequence[str]) -> tuple[BaseType, ...]:
    """The columns' types; `validate` says what is wrong where they are not what a rule's body makes them."""
    known: dict[str, BaseType] = {}
    for rule in rules:
        if all(is_well_formed(program, atom) for atom, _ in used_atoms(rule.body)):
            body_only = rename_apart(Rule(Atom("", ()), rule.body, rule.name, rule.span))
            known = variable_types(program.relations, body_only) | known
    return tuple(known.get(c, "symbol") for c in columns)
