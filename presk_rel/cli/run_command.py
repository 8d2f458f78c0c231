"""`presk run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    dims_option,
    entry_option,
    in_a_folder,
    inputs_options,
    lowering_options,
    naturals,
    remat_option,
    required,
    session,
    source_path,
    tier_option,
)
from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.session import Request, Session

if TYPE_CHECKING:
    from presk_rel.exec.exact.run import RunResult


@click.command("run", epilog="Example:  presk run examples/mlp.psk --entry mse_grad --dim B=2 --dim D=4 --json")
@common_options
@entry_option
@dims_option
@lowering_options
@inputs_options
@click.option("--executor", type=click.Choice(["exact", "torch"]), default="exact", help="[default: exact]")
@click.option("--bits", type=int, default=256, metavar="N", help="Proven bits, 24 to 10000.  [default: 256]")
@click.option("--max-bits", type=int, metavar="N", help="Working precision to give up at.")
@click.option("--digits", type=int, metavar="N", help="Print fewer digits.")
@click.option("--kernel", type=click.Choice(["balls", "mpmath"]), default="balls", help="[default: balls, proven]")
@click.option(
    "--dtype", type=click.Choice(["f64", "f32", "bf16"]), default="f64", help="Of the torch executor.  [default: f64]"
)
@click.option("--device", default="cpu", help="Of the torch executor: cpu, cuda, cuda:n.  [default: cpu]")
@tier_option
@click.option("--no-opt", is_flag=True, help="Run the program as differentiated, not optimized.")
@click.option("--verify", is_flag=True, help="Check the optimization's proof first.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    callback=in_a_folder,
    metavar="FILE",
    help="Store tensors: .npz or .safetensors.",
)
@click.option("--time", "with_time", is_flag=True, help="Print the time of each phase and binding.")
@click.option("--memory", "with_memory", is_flag=True, help="Print the memory at the peak and of each binding.")
@remat_option
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
    args: tuple[str, ...],
    seed: int,
    executor: str,
    bits: int,
    max_bits: int | None,
    digits: int | None,
    kernel: Any,
    dtype: Any,
    device: str,
    tier: Any,
    no_opt: bool,
    verify: bool,
    out: str | None,
    with_time: bool,
    with_memory: bool,
    remat: Any,
) -> None:
    """Run an entry: its exact value, correctly rounded and proven; or on torch."""
    report = Report("run", as_json, debug)

    def body() -> Outcome:
        from presk_rel.cli.run_costs import Progress, binding_costs
        from presk_rel.exec.exact.run import Options
        from presk_rel.exec.literals import arguments

        _fits(executor, dtype, device, tier, digits)
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        program.remat = remat
        program.mode, program.unroll_stack = mode, unroll_stack
        name = _entry(program, entry)
        request = Request(arguments(args), naturals(dims, "--dim"), seed, optimize=not no_opt)
        _verify(program, name, request, wanted=verify)
        if executor == "torch":
            document, text, value = _torch(program, name, request, dtype, device, tier, digits)
        else:
            progress = Progress(sys.stderr)
            options = Options(bits=bits, digits=digits, kernel=kernel, max_bits=max_bits, progress=progress)
            try:
                result = program.run_exact(name, request, options)
            except KeyboardInterrupt:
                return Outcome({"interrupted": True, "computed": progress.document()}, progress.said(), 130)
            finally:
                progress.clear()
            document, text = _exact(name, result)
            value = result.value
            costs = binding_costs(result, time=with_time, memory=with_memory)
            document |= costs.document
            text += costs.text
        if out is not None:
            from presk_rel.exec.render import store

            store(value, Path(out))
        if with_time:
            document["phases"] = program.seconds
            text += "\n\n" + "\n".join(f"{phase:<14}{seconds:8.3f} s" for phase, seconds in program.seconds.items())
        return Outcome(document, text)

    report.execute(body)


DIGITS = 17
"""What tells a double from all others."""


def _fits(executor: str, dtype: str, device: str, tier: str, digits: int | None) -> None:
    """Wrong usage for an option of the other executor, where it would change what is asked for."""
    if executor == "torch" and digits is not None and not 1 <= digits <= DIGITS:
        raise click.UsageError(f"--digits is from 1 to {DIGITS} on torch, not {digits}")
    if executor == "exact" and dtype != "f64":
        raise click.UsageError("--dtype is for --executor torch; the exact executor computes with reals")
    if executor == "exact" and tier != "auto":
        raise click.UsageError("--tier is for --executor torch")
    if executor == "exact" and device != "cpu":
        raise click.UsageError("--device is for --executor torch; the exact executor computes on the CPU")


def _entry(program: Session, entry: str | None) -> str:
    """The entry; a file that is only run by its training block is outside what can be executed (exit status 3)."""
    if entry is None and any(getattr(d, "kind", None) == "training" for d in program.loaded.files[-1].decls):
        problem = "a training run is not executed; give the function to run with --entry"
        raise PreskError([Diagnostic("E7002", problem, None)], exit_status=3)
    return program.entry(required(entry)).name


def _verify(program: Session, entry: str, request: Request, *, wanted: bool) -> None:
    if not wanted or not request.optimize:
        return
    verdict = program.verified(entry, request.dims)
    if not verdict.accepted:
        raise PreskError([Diagnostic("E8001", verdict.summary(), None)])


def _exact(entry: str, result: RunResult) -> tuple[dict[str, Any], str]:
    from presk_rel.exec.render import to_json, to_text

    document = {
        "entry": entry,
        "result": to_json(result.value),
        "bits": result.bits,
        "digits": result.digits,
        "dims": dict(result.dims),
        "seed": result.seed,
        "executor": "exact",
        "kernel": result.kernel,
        "proven": result.kernel == "balls",
        "precision": result.precision,
    }
    return document, to_text(result.value)


def _torch(
    program: Session, entry: str, request: Request, dtype: Any, device: str, tier: Any, digits: int | None
) -> tuple[dict[str, Any], str, Any]:
    from presk_rel.exec.render import to_json, to_text
    from presk_rel.exec.torch.run import printable

    result = program.run_torch(entry, request, dtype, device, tier)
    value = printable(result.value, digits)
    document = {
        "entry": entry,
        "result": to_json(value),
        "dtype": dtype,
        "device": device,
        "dims": dict(result.dims),
        "seed": request.seed,
        "executor": "torch",
        "proven": False,
        "kernels": result.kernels,
        "tier": result.status.tier,
    }
    return document, to_text(value), value
