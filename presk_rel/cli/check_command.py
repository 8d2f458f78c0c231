"""`presk check`."""

from __future__ import annotations

from typing import Any

import click

from presk_rel.cli.common import Outcome, Report, common_options, naturals, session, source_path


@click.command("check", epilog="Example:  presk check examples/mlp.psk --summary")
@common_options
@click.option("--summary", is_flag=True, help="Print constants, modules and functions with effects and regularity.")
@click.option("-W", "levels", multiple=True, metavar="CODE=error|ignore", help="Raise or silence a warning.")
def command(
    file: str, consts: tuple[str, ...], engine: str, as_json: bool, debug: bool, summary: bool, levels: tuple[str, ...]
) -> None:
    """Find all mistakes of a program, with counterexamples. Silent when there are none."""
    report = Report("check", as_json, debug)

    def body() -> Outcome:
        wanted = _levels(levels)
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        found = [d for d in program.check() if not (d.severity == "warning" and wanted.get(d.code) == "ignore")]
        failed = any(d.severity == "error" or wanted.get(d.code) == "error" for d in found)
        report.diagnostics = found
        if failed:
            return Outcome({}, status=1)
        document: dict[str, Any] = {}
        text = _all_well(program.path)
        if summary:
            from presk_rel.cli.summary import summary_document, summary_text

            document = summary_document(program)
            text = summary_text(document)
        return Outcome(document, text)

    report.execute(body)


def _levels(pairs: tuple[str, ...]) -> dict[str, str]:
    table: dict[str, str] = {}
    if not pairs:
        return table
    from presk_rel.diagnostics.catalogue import CATALOGUE

    for pair in pairs:
        code, _, level = pair.partition("=")
        if level not in ("error", "ignore") or not code.startswith("W") or code not in CATALOGUE:
            raise click.UsageError(f"-W takes CODE=error or CODE=ignore for a warning's code, not `{pair[:80]}`")
        table[code] = level
    return table


def _all_well(path: str) -> str:
    import sys

    return f"ok: {path}" if sys.stdout.isatty() else ""
