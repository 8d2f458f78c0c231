"""`presk prove`."""

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


@click.command("prove", epilog="Example:  presk prove examples/mlp.psk --entry mse_grad --verify")
@common_options
@entry_option
@dims_option
@lowering_options
@remat_option
@time_limit_option
@click.option("--verify", is_flag=True, help="Re-check the proof independently, and sample its rules over balls.")
@click.option("--step", type=click.IntRange(1), metavar="N", help="Print step N alone, in full.")
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
    verify: bool,
    step: int | None,
) -> None:
    """Print the rewrite proof of an optimization: from the entry after differentiation to the optimized one."""
    report = Report("prove", as_json, debug)

    def body() -> Outcome:
        from presk_rel.egraph.render_proof import proof_document, proof_text

        bound = naturals(dims, "--dim")
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        program.mode, program.unroll_stack, program.remat = mode, unroll_stack, remat
        program.time_limit = time_limit
        name = program.entry(required(entry)).name
        optimized = program.optimized(name, bound)
        document: dict[str, Any] = proof_document(optimized.proof)
        if step is not None and step > len(document["steps"]):
            raise click.UsageError(f"the proof has {len(document['steps'])} steps, no step {step}")
        text = proof_text(optimized.proof, step=step)
        if not verify:
            return Outcome({**document, "verified": None}, text)
        verdict = program.verified(name, bound)
        document |= {"verified": verdict.accepted, "refusals": verdict.reasons, "sampled": verdict.sampled}
        return Outcome(document, f"{text}\n\n{verdict.summary()}", 0 if verdict.accepted else 1)

    report.execute(body)
