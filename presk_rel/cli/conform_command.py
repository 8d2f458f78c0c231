"""`presk conform`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    dims_option,
    entry_option,
    inputs_options,
    naturals,
    required,
    session,
    source_path,
)
from presk_rel.pipeline import Request


@click.command("conform", epilog="Example:  presk conform examples/mlp.psk --entry mse_grad --dim B=2 --dim D=4")
@common_options
@entry_option
@dims_option
@inputs_options
@click.option("--dtype", type=click.Choice(["f64", "f32", "bf16"]), default="f64", help="[default: f64]")
@click.option("--device", default="cpu", help="[default: cpu]")
@click.option("--bits", type=int, default=256, metavar="N", help="Proven bits of the exact side.  [default: 256]")
@click.option("--bound", metavar="X", help="Largest relative difference.  [default: 1e-12 for f64, 1e-5 for f32, 0.05 for bf16]")
def command(
    file: str,
    consts: tuple[str, ...],
    engine: str,
    as_json: bool,
    debug: bool,
    entry: str | None,
    dims: tuple[str, ...],
    args: tuple[str, ...],
    seed: int,
    dtype: Any,
    device: str,
    bits: int,
    bound: str | None,
) -> None:
    """Compare the torch executor with the proven result, on the same inputs."""
    report = Report("conform", as_json, debug)

    def body() -> Outcome:
        from presk_rel.exec.conform import BOUNDS, distance
        from presk_rel.exec.exact.run import Options
        from presk_rel.exec.literals import arguments

        allowed = BOUNDS[dtype] if bound is None else _bound(bound)
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        name = program.entry(required(entry)).name
        request = Request(arguments(args), naturals(dims, "--dim"), seed)
        exact = program.run_exact(name, request, Options(bits=bits))
        found = distance(exact.value, program.run_torch(name, request, dtype, device).value)
        holds = found.relative <= allowed and not found.differing
        document = {
            "entry": name, "dtype": dtype, "device": device, "dims": dict(exact.dims), "seed": seed,
            "relative": float(found.relative), "where": found.where, "scale": float(found.scale),
            "exact_error": float(found.exact_error), "entries": found.entries, "differing": found.differing,
            "bound": float(allowed), "conforms": holds,
        }  # fmt: skip
        relation = "≤" if found.relative <= allowed else ">"
        where = f" at {found.where}" if found.where else ""
        text = (
            f"{'conforms' if holds else 'does NOT conform'}: {name} on {device} in {dtype} is within "
            f"{float(found.relative):.2e} {relation} {float(allowed):.0e} of the proven result{where} "
            f"({found.entries} entries, largest {float(found.scale):.3g}, proven to {float(found.exact_error):.1e})"
        )
        return Outcome(document, text, 0 if holds else 1)

    report.execute(body)


def _bound(text: str) -> Fraction:
    from presk_rel.exec.literals import number

    value = number(text)
    if value is None or value < 0:
        raise click.UsageError(f"--bound takes a number of at least 0, not `{text[:40]}`")
    return value
