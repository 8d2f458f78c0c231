"""`presk query`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from presk_rel.cli.common import Outcome, Report, naturals, session, source_path


@click.command(
    "query", epilog="Example:  presk query examples/tour/hinge.psk 'regularity(f, p, \"C0plus\"), calls(f, g)'"
)
@click.argument("file", required=False, type=click.Path())
@click.argument("atoms", required=False)
@click.option("--relations", is_flag=True, help="List the relations with their columns and meaning.")
@click.option("--rules", type=click.Path(dir_okay=False), metavar="EXTRA.dl", help="Add rules of your own.")
@click.option("--const", "consts", multiple=True, metavar="NAME=N", help="Replace a constant.")
@click.option("--engine", type=click.Choice(["auto", "souffle", "embedded"]), default="auto", envvar="PRESK_ENGINE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--debug", is_flag=True, help="Show a Python traceback when presk itself fails.")
def command(
    file: str | None,
    atoms: str | None,
    relations: bool,
    rules: str | None,
    consts: tuple[str, ...],
    engine: Any,
    as_json: bool,
    debug: bool,
) -> None:
    """Ask the program's relations in Datalog: a table of what the query's variables may be."""
    report = Report("query", as_json, debug)
    if not relations and (file is None or atoms is None):
        raise click.UsageError("FILE and a query are needed (or --relations)")

    def body() -> Outcome:
        if file is None or atoms is None:
            return _relations()
        from presk_rel.rules.program import rule_program, rules_path
        from presk_rel.rules.query import ask

        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        rows = program.input_facts()
        report.sources["<query>"] = atoms
        extra = None if rules is None else Path(source_path(rules))
        if extra is not None:
            report.sources[str(extra)] = extra.read_text(encoding="utf-8", errors="replace")
        search = (rules_path().parent, Path(__file__).parents[2])
        answer = ask(rule_program(), rows, atoms, rules=extra, search=search, engine=engine)
        document = {"columns": list(answer.columns), "rows": [list(row) for row in answer.rows]}
        return Outcome(document, _table(answer.columns, answer.rows))

    report.execute(body)


def _relations() -> Outcome:
    from presk_rel.facts.schema import SCHEMA

    entries = [
        {
            "name": row.name,
            "columns": [{"name": c.name, "type": c.type} for c in row.columns],
            "role": row.role,
            "origin": row.origin,
            "meaning": row.meaning,
        }
        for row in SCHEMA.values()
    ]
    lines = [
        f"{row.name}({', '.join(c.name for c in row.columns)})   {row.role}, {row.origin}\n    {row.meaning}"
        for row in SCHEMA.values()
    ]
    return Outcome({"relations": entries}, "\n".join(lines))


def _table(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    if not columns:
        return "yes" if rows else "no"
    cells = [list(columns), *([str(v) for v in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("─" * w for w in widths))
    count = len(rows)
    return "\n".join([*lines, f"{count} row{'' if count == 1 else 's'}"])
