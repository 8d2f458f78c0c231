"""`presk facts`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from presk_rel import rules
from presk_rel.cli.common import Outcome, Report, common_options, naturals, session, source_path


@click.command("facts", epilog="Example:  presk facts examples/mlp.psk -o facts/")
@common_options
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Folder."
)
def command(file: str, consts: tuple[str, ...], engine: str, as_json: bool, debug: bool, folder: str) -> None:
    """Write every input relation as Soufflé .facts, with rules.dl and its includes."""
    report = Report("facts", as_json, debug)

    def body() -> Outcome:
        from presk_rel.rules.facts_io import write_facts
        from presk_rel.rules.program import rule_program

        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        rows = program.input_facts()
        try:
            _copy_rules(Path(folder))
            write_facts(Path(folder), rule_program(), rows)
        except OSError as error:
            raise click.UsageError(f"cannot write to {folder}: {error.strerror}") from error
        counts = {name: len(rows.get(name, [])) for name in rule_program().inputs}
        return Outcome(
            {"folder": folder, "relations": counts},
            f"{sum(counts.values())} facts of {len(counts)} relations in {folder}",
        )

    report.execute(body)


def _copy_rules(folder: Path) -> None:
    """rules.dl and its includes, laid out so that Soufflé finds them beside it."""
    from presk_rel.rules.program import rules_path

    parts = folder / "presk_rel" / "rules"
    parts.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(rules_path(), folder / "rules.dl")
    for part in sorted(Path(rules.__file__).parent.glob("*.dl")):
        shutil.copyfile(part, parts / part.name)
