"""`presk export`."""

from __future__ import annotations

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    in_a_folder,
    naturals,
    session,
    source_path,
    write_text,
)


@click.command("export", epilog="Example:  presk export examples/mlp.psk --target pytorch -o mlp.py")
@common_options
@click.option("--target", type=click.Choice(["pytorch"]), default="pytorch", help="[default: pytorch]")
@click.option("--mode", type=click.Choice(["readable"]), default="readable", help="[default: readable]")
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False), callback=in_a_folder, metavar="OUT.py", help="Write to a file."
)
def command(
    file: str,
    consts: tuple[str, ...],
    engine: str,
    as_json: bool,
    debug: bool,
    target: str,
    mode: str,
    out: str | None,
) -> None:
    """Print a program as readable PyTorch, which runs alone."""
    report = Report("export", as_json, debug)

    def body() -> Outcome:
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        text = program.exported().source
        document = {"target": target, "mode": mode, "source": text, "out": out}
        if out is None:
            return Outcome(document, text.rstrip("\n"))
        write_text(out, text)
        return Outcome(document, f"wrote {out}")

    report.execute(body)
