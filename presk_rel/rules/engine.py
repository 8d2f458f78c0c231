"""The one entry to the engines: `solve` a program over facts; the result keeps both, so that proofs can be asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal as OneOf

from presk_rel.diagnostics import Diagnostic, Diagnostics, PreskBug, PreskError
from presk_rel.diagnostics.record import record
from presk_rel.rules.ast import INT_MAX, INT_MIN, Program, RelationDecl, Row
from presk_rel.rules.embedded import solve_embedded

Engine = OneOf["auto", "souffle", "embedded"]

CROSSOVER = 2_000_000
"""Facts beyond which `auto` takes Soufflé where it is installed. Measured on scopes, effects and regularity together,
writing and reading files included: the embedded engine is faster up to 720,000 facts (3.1 s against 4.1 s), and by then
both grow alike; beyond two million its memory (150 bytes a row and index) is what decides."""


@record
class Relations:
    """The relations of a program over facts. `facts` holds the input rows, those of the program's text included."""

    program: Program
    facts: Mapping[str, Collection[Row]]
    engine: OneOf["souffle", "embedded"]
    tables: Mapping[str, Collection[Row]]

    def rows(self, name: str) -> list[Row]:
        """The rows of a relation, sorted: numbers by value, symbols by code points."""
        return sorted(self.table(name))

    def table(self, name: str) -> Collection[Row]:
        """The rows of a relation, for membership and iteration in no promised order."""
        if name not in self.tables:
            raise PreskBug("rules.engine", f"the relation `{name}` was not asked of the {self.engine} engine")
        return self.tables[name]


def solve(
    program: Program,
    facts: Mapping[str, Iterable[Row]],
    engine: Engine = "auto",
    outputs: Collection[str] | None = None,
) -> Relations:
    """The least model of `program` over `facts`, which give rows of its input relations.

    `outputs` are the relations wanted; proofs need all of them, which is what None says. Both engines give equal
    relations. Raises `PreskError`: E9120 for facts that do not fit, E9126 for rules without an end, E9130 for a
    division by zero, E9121 … E9124 from Soufflé.
    """
    given = _checked(program, facts)
    chosen = _choose(program, given) if engine == "auto" else engine
    rows = _with_program_facts(program, given)
    inputs = {name: table.keys() for name, table in rows.items()}
    if chosen == "embedded":
        return Relations(program, inputs, chosen, solve_embedded(program, rows).rows)
    from presk_rel.rules.souffle import solve_souffle

    derived = {rule.head.relation for rule in program.rules}
    wanted = derived if outputs is None else derived.intersection(outputs)
    tables: dict[str, Collection[Row]] = {n: inputs[n] for n in program.relations if n not in derived}
    for name, rows in solve_souffle(program, given, sorted(wanted)).items():
        tables[name] = dict.fromkeys(rows)
    return Relations(program, inputs, chosen, tables)


def _choose(program: Program, facts: Mapping[str, Collection[Row]]) -> OneOf["souffle", "embedded"]:
    if sum(map(len, facts.values())) <= CROSSOVER:
        return "embedded"
    from presk_rel.rules import souffle

    return "souffle" if souffle.available() and souffle.represents(program, facts) else "embedded"


def _with_program_facts(program: Program, facts: Mapping[str, Collection[Row]]) -> dict[str, dict[Row, None]]:
    """A table may be copied without hashing its rows anew."""
    inputs = {name: dict.fromkeys(facts.get(name, ())) for name in program.relations}
    for fact in program.facts:
        inputs[fact.relation][fact.row] = None
    return inputs


def _checked(program: Program, facts: Mapping[str, Iterable[Row]]) -> dict[str, Collection[Row]]:
    found = Diagnostics()
    given: dict[str, Collection[Row]] = {}
    for name, rows in facts.items():
        decl = program.relations.get(name)
        if decl is None or not decl.is_input:
            found.error("E9120", f"facts are given for `{name}`, which is not an input relation", None)
            continue
        given[name] = rows if isinstance(rows, Collection) else list(rows)
        _check_rows(decl, given[name], found)
    if found.has_errors:
        raise PreskError(found.items)
    return given


def _check_rows(decl: RelationDecl, rows: Collection[Row], found: Diagnostics) -> None:
    """One diagnostic for the first row that does not fit. By columns, since that is the fast way in Python."""
    lengths = set(map(len, rows))
    if lengths - {decl.arity}:
        wrong = next(row for row in rows if len(row) != decl.arity)
        found.error("E9120", f"`{decl.name}` has {decl.arity} columns; a row of facts has {len(wrong)}", None)
        return
    for column, (values, wanted) in enumerate(zip(zip(*rows, strict=True), decl.types, strict=False)):
        types = set(map(type, values))
        if types != {int if wanted == "number" else str}:
            found.add(_misfit(decl, column, "holds something else than a " + wanted))
        elif wanted == "number" and not (min(values) >= INT_MIN and max(values) <= INT_MAX):
            found.add(_misfit(decl, column, "holds a number that does not fit 32 bits"))


def _misfit(decl: RelationDecl, column: int, what: str) -> Diagnostic:
    return Diagnostic("E9120", f"the column `{decl.attributes[column].name}` of the facts `{decl.name}` {what}", None)
