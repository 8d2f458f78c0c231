"""Runs a program: stratum by stratum, semi-naive rounds inside each, recording the round in which a row first came.

A row's round is its rank: facts have 0, and a derived row has a derivation whose premises of its own stratum all have
smaller rounds.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import cast

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.diagnostics.record import mutable, record
from presk_rel.rules.arithmetic import byte_length, divide, remainder
from presk_rel.rules.ast import Atom, Program, Row, Rule
from presk_rel.rules.embedded import generate
from presk_rel.rules.embedded.plan import Columns, Statistics, key_of
from presk_rel.rules.normal import normalize
from presk_rel.rules.strata import Stratum, strata

ROW_LIMIT = 10_000_000
"""Rows that the relations of one stratum may have together: about three gigabytes."""

ROUND_LIMIT = 1_000_000
"""Rounds of one stratum: a few seconds of a rule that adds a row each time. Recursion over programs is less deep."""

Rows = dict[Row, int]
"""The rows of a relation with their ranks, in order of derivation."""

Step = Callable[..., None]
"""A generated function: `(delta, new)` or, of a backward rule, `(row, out)`."""


@record
class Solution:
    """All relations of a program, each row with its rank."""

    rows: Mapping[str, Rows]


def solve_embedded(program: Program, facts: Mapping[str, Iterable[Row]]) -> Solution:
    """The least model of `program` over `facts` (checked by `engine`). Raises `PreskError` E9130 on division by 0,
    and E9126 where rules do not come to an end."""
    rows: dict[str, Rows] = {name: dict.fromkeys(facts.get(name, ()), 0) for name in program.relations}
    for fact in program.facts:
        rows[fact.relation][fact.row] = 0
    store = Store(rows)
    with _without_collector():
        for stratum in (s for s in strata(program) if s.rules):
            _solve_stratum(store, rows, stratum)
    return Solution(rows)


@contextmanager
def _without_collector() -> Generator[None]:
    """No garbage collection meanwhile: nothing cyclic is made, and its passes would take half the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Store:
    """Tables of rows with the indexes that rules asked for: key of some columns → rows."""

    def __init__(self, tables: Mapping[str, Collection[Row]]) -> None:
        self.tables = tables
        self._indexes: dict[str, dict[Columns, dict[object, list[Row]]]] = {name: {} for name in tables}
        self.unfinished: set[str] = set()
        self.statistics = Statistics(tables.__getitem__, lambda name: name not in self.unfinished)

    def index(self, relation: str, columns: Columns) -> dict[object, list[Row]]:
        indexes = self._indexes[relation]
        if columns not in indexes:
            indexes[columns] = defaultdict(list)
            _extend_index(indexes[columns], columns, self.tables[relation])
        return indexes[columns]

    def extend_indexes(self, relation: str, fresh: Iterable[Row]) -> None:
        """Tells the indexes of rows that have been added to a table."""
        for columns, index in self._indexes[relation].items():
            _extend_index(index, columns, fresh)

    def load(self, generator: generate.Generator) -> tuple[Step, ...]:
        """The functions that `generator` wrote, bound to this store."""
        tables = generator.tables
        namespace: dict[str, object] = {}
        exec(compile(generator.source(), "<rules>", "exec"), namespace)  # no text of the user: see generate
        build = cast(Callable[..., tuple[Step, ...]], namespace["build"])
        return build(
            [value for _, value in tables.constants],
            [self.tables[name] for name in tables.relations],
            [self.index(relation, columns) for relation, columns in tables.indexes],
            (divide, remainder, byte_length),
        )


def _extend_index(index: dict[object, list[Row]], columns: Columns, rows: Iterable[Row]) -> None:
    key = key_of(columns)
    for row in rows:
        index[key(row)].append(row)


@mutable
class _Steps:
    """The functions of a stratum: those to run once, and those to run on the new rows of a relation of its own."""

    once: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    rounds: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])


def _solve_stratum(store: Store, rows: Mapping[str, Rows], stratum: Stratum) -> None:
    store.unfinished = set(stratum.relations)
    generator = generate.Generator(store.statistics)
    steps = _Steps()
    for rule in (r for r in stratum.rules if not _is_idle(r, rows, store.unfinished)):
        _add_steps(generator, steps, rule, store.unfinished)
    functions = store.load(generator)
    delta: dict[str, dict[Row, None]] = {name: {} for name in stratum.relations}
    for head, number in steps.once:
        functions[number]((), delta[head])
    facts = {name: dict.fromkeys(rows[name]) for name in stratum.relations} if steps.rounds else {}
    _add_round(store, rows, delta, 1)
    delta = {name: facts.get(name, {}) | delta[name] for name in stratum.relations}
    rank = 1
    while steps.rounds and any(delta.values()):
        rank += 1
        fresh: dict[str, dict[Row, None]] = {name: {} for name in stratum.relations}
        for source, head, number in (s for s in steps.rounds if delta[s[0]]):
            functions[number](delta[source], fresh[head])
        _add_round(store, rows, fresh, rank)
        delta = fresh
    store.unfinished = set()


def _is_idle(rule: Rule, rows: Mapping[str, Rows], members: set[str]) -> bool:
    """Whether a rule can give nothing, since a relation that it needs is empty for good."""
    return any(isinstance(a, Atom) and a.relation not in members and not rows[a.relation] for a in rule.body)


def _add_round(store: Store, rows: Mapping[str, Rows], fresh: Mapping[str, dict[Row, None]], rank: int) -> None:
    for name, added in fresh.items():
        if added:
            rows[name].update(dict.fromkeys(added, rank))
            store.extend_indexes(name, added)
    many = sum(len(rows[name]) for name in fresh) > ROW_LIMIT
    if many or rank > ROUND_LIMIT:
        limit = f"beyond {ROW_LIMIT:,} rows" if many else f"for more than {ROUND_LIMIT:,} rounds"
        message = f"`{'`, `'.join(fresh)}` grew {limit}, so the rules may have no end"
        raise PreskError([Diagnostic("E9126", message, None)], exit_status=3)


def _add_steps(generator: generate.Generator, steps: _Steps, rule: Rule, members: set[str]) -> None:
    normal = normalize(rule)
    own = [(i, a) for i, a in enumerate(normal.body) if isinstance(a, Atom) and a.relation in members]
    if not own:
        steps.once.append((rule.head.relation, generator.forward(normal, None)))
    for position, atom in own:
        steps.rounds.append((atom.relation, rule.head.relation, generator.forward(normal, position)))
