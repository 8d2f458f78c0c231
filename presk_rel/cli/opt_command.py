"""`presk opt`."""

from __future__ import annotations

from typing import Any

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    dims_option,
    entry_option,
    lowering_options,
    naturals,
    remat_option,
    required,
    session,
    source_path,
    time_limit_option,
)


@click.command("opt", epilog="Example:  presk opt examples/mlp.psk --entry mse_grad --dim B=2 --dim D=4 --report")
@common_options
@entry_option
@dims_option
@lowering_options
@remat_option
@time_limit_option
@click.option("--report", "with_report", is_flag=True, help="Add the table before/after, the rules fired, and times.")
def command(
    file: str,
    consts: tuple[str, ...],
    engine: str,
    as_json: bool,
    debug: bool,
    entry: str | None,
    dims: tuple[str, ...],
    mode: Any,
    unroll_stack: bool,
    remat: Any,
    time_limit: float | None,
    with_report: bool,
) -> None:
    """Print the optimized PSK-Core of an entry."""
    report = Report("opt", as_json, debug)

    def body() -> Outcome:
        from presk_rel.cli.tables import report_document, report_text
        from presk_rel.core.analysis import reached
        from presk_rel.core.printer import print_function
        from presk_rel.egraph.fusion.fuse import with_kernels

        bound = naturals(dims, "--dim")
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        program.mode, program.unroll_stack, program.remat = mode, unroll_stack, remat
        program.time_limit = time_limit
        name = program.entry(required(entry)).name
        optimized, fused = program.optimized(name, bound), program.fused(name, bound)
        core = "\n\n".join(print_function(f, fused.program) for f in reached(fused.program, name))
        figures = with_kernels(optimized.report, fused, program.seconds["fuse"])
        if not (as_json or with_report):
            return Outcome({}, core)
        launches = program.launches(name, bound)
        document = {"entry": name, "core": core, "report": report_document(figures, launches)}
        return Outcome(document, f"{core}\n\n{report_text(figures, launches)}")

    report.execute(body)
