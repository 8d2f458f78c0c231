"""`presk explain`."""

from __future__ import annotations

from difflib import get_close_matches

import click

from presk_rel.cli.common import Outcome, Report


@click.command("explain", epilog="Example:  presk explain E2003")
@click.argument("code")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--debug", is_flag=True, help="Show a Python traceback when presk itself fails.")
def command(code: str, as_json: bool, debug: bool) -> None:
    """Print the page of a diagnostic code: what it means, a failing program, the same program fixed."""
    report = Report("explain", as_json, debug)

    def body() -> Outcome:
        from presk_rel.diagnostics.catalogue import CATALOGUE

        page = CATALOGUE.get(code.upper())
        if page is None:
            near = get_close_matches(code.upper(), CATALOGUE, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"there is no code `{code[:40]}`{hint}")
        document = {
            "code": page.code, "severity": page.severity, "title": page.title, "meaning": page.meaning,
            "failing": page.failing, "fixed": page.fixed,
        }  # fmt: skip
        parts = [f"{page.code}: {page.title}", page.meaning, "A program that fails:", _indent(page.failing)]
        return Outcome(document, "\n\n".join([*parts, "The same program, fixed:", _indent(page.fixed)]))

    report.execute(body)


def _indent(program: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in program.strip("\n").split("\n"))
