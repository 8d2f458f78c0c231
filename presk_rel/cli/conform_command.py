"""`presk conform`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    dims_option,
    entry_option,
    inputs_options,
    lowering_options,
    naturals,
    required,
    session,
    source_path,
    tier_option,
)
from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.session import Request

if TYPE_CHECKING:
    from presk_rel.exec.condition import Judged
    from presk_rel.exec.conform import Difference, Distance
    from presk_rel.exec.exact.run import RunResult
    from presk_rel.session import Session

ALL_DIMS = 2
"""What a dim is that `--all` has no number for."""


@click.command("conform", epilog="Example:  presk conform examples/mlp.psk --entry mse_grad --dim B=2 --dim D=4")
@common_options
@entry_option
@click.option("--all", "every", is_flag=True, help="Every function that runs; dims not given are 2.")
@dims_option
@lowering_options
@inputs_options
@click.option("--dtype", type=click.Choice(["f64", "f32", "bf16"]), default="f64", help="[default: f64]")
@click.option("--device", default="cpu", help="[default: cpu]")
@tier_option
@click.option("--bits", type=int, default=256, metavar="N", help="Proven bits of the exact side.  [default: 256]")
@click.option(
    "--bound",
    metavar="X",
    help="Largest relative difference.  [default: 1e-12 for f64, 2e-6 for f32, 0.05 for bf16; beyond, as the "
    "condition of the function at these inputs has it]",
)
def command(
    file: str,
    consts: tuple[str, ...],
    engine: str,
    as_json: bool,
    debug: bool,
    entry: str | None,
    every: bool,
    dims: tuple[str, ...],
    mode: Any,
    unroll_stack: bool,
    args: tuple[str, ...],
    seed: int,
    dtype: Any,
    device: str,
    tier: Any,
    bits: int,
    bound: str | None,
) -> None:
    """Compare the torch executor with the proven result, on the same inputs."""
    report = Report("conform", as_json, debug)

    def body() -> Outcome:
        from presk_rel.exec.literals import arguments
        from presk_rel.exec.torch.inductor_process import shared

        if every and entry is not None:
            raise click.UsageError("--entry names one function, --all takes every one: give one of the two")
        allowed = None if bound is None else _bound(bound)
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        program.mode, program.unroll_stack = mode, unroll_stack
        torch = Torch(dtype, device, tier)
        request = Request(arguments(args), naturals(dims, "--dim"), seed)
        if every:
            with shared():
                return _all(program, request, torch, bits, allowed)
        return _one(program, program.entry(required(entry)).name, request, torch, bits, allowed)

    report.execute(body)


@dataclass(frozen=True, slots=True)
class Torch:
    """How the torch side runs."""

    dtype: Any
    device: str
    tier: Any


def _one(program: Session, name: str, request: Request, torch: Torch, bits: int, bound: Fraction | None) -> Outcome:
    from presk_rel.exec.conform import BOUNDS, distance
    from presk_rel.exec.exact.run import Options

    exact = program.run_exact(name, request, Options(bits=bits))
    ran = program.run_torch(name, request, torch.dtype, torch.device, torch.tier, planned=True)
    found = distance(exact.value, ran.value)
    allowed, judged = BOUNDS[torch.dtype] if bound is None else bound, None
    holds = found.relative <= allowed and not found.differing
    if bound is None and not holds and not found.differing:
        judged = program.judged(name, request, exact.args, ran.value, torch.dtype, torch.device)
        holds = judged.holds
    export = _export(program, name, request, exact)
    holds = holds and export["conforms"] is not False
    document = {
        "entry": name, "dtype": torch.dtype, "device": torch.device, "tier": ran.status.tier,
        "dims": dict(exact.dims), "seed": request.seed,
        "relative": float(found.relative), "where": found.where, "scale": float(found.scale),
        "exact_error": float(found.exact_error), "entries": found.entries, "differing": found.differing,
        "discrete": found.discrete, "first": None if found.first is None else _difference(found.first),
        "bound": float(allowed), "judged": None if judged is None else _judged(judged),
        "export": export, "conforms": holds,
    }  # fmt: skip
    where = f"on {torch.device} in {torch.dtype} (tier {ran.status.tier})"
    head = f"{'conforms' if holds else 'does NOT conform'}: {name} {where}"
    return Outcome(
        document, f"{head} {_said(found, allowed, judged)}{_export_said(export, found.entries)}", 0 if holds else 1
    )


def _export(program: Session, name: str, request: Request, exact: RunResult) -> dict[str, Any]:
    """The exported file's result, in f64, against the proven one."""
    from presk_rel.api.export_run import run_exported
    from presk_rel.exec.conform import BOUNDS, distance

    ran = run_exported(program, name, exact)
    if ran.value is None:
        conforms = False if ran.failed else None
        return {"relative": None, "where": "", "bound": None, "conforms": conforms, "reason": ran.reason}
    found, bound = distance(exact.value, ran.value), BOUNDS["f64"]
    holds, differing = found.relative <= bound, found.differing
    if not holds and not differing:
        judged = program.judged(name, request, exact.args, ran.value, "f64")
        holds, bound = judged.holds, max(bound, judged.bound)
    reason = None if found.first is None else f"at {found.first.where} it gives {found.first.measured}"
    return {
        "relative": float(found.relative), "where": found.where, "bound": float(bound),
        "conforms": holds and not differing, "reason": reason,
    }  # fmt: skip


def _export_said(export: dict[str, Any], entries: int) -> str:
    """What was found of the exported file; nothing where there is nothing to compare."""
    if export["conforms"] is None:
        return ""
    if export["reason"] is not None:
        reason = export["reason"] if export["relative"] is None else f"the exported file differs: {export['reason']}"
        return f"; {reason}"
    if not entries:
        return "; so does the exported file"
    relation = "≤" if export["conforms"] else ">"
    return f"; the exported file within {export['relative']:.2e} {relation} {export['bound']:.0e}"


def _difference(difference: Difference) -> dict[str, str]:
    return {"where": difference.where, "measured": difference.measured, "proven": difference.proven}


def _short(number: str) -> str:
    """A decimal to a dozen characters before its exponent."""
    mantissa, e, exponent = number.partition("e")
    return f"{mantissa[:12]}…{e}{exponent}" if len(mantissa) > 12 and "." in mantissa else number


def _said(found: Distance, allowed: Fraction, judged: Judged | None) -> str:
    """What was found, after the name of the entry."""
    equal = f"{found.discrete} discrete value{'s' if found.discrete != 1 else ''}"
    if found.first is not None:
        more = f", and {found.differing - 1} more differ" if found.differing > 1 else ""
        first = found.first
        return f"at {first.where}: torch gives {first.measured}, the proven result is {_short(first.proven)}{more}"
    if not found.entries:
        return f"gives the proven result ({equal})"
    relation = "≤" if found.relative <= allowed else ">"
    where = f" at {found.where}" if found.where else ""
    return (
        f"is within {float(found.relative):.2e} {relation} {float(allowed):.0e} of the proven result{where} "
        f"({found.entries} entries, largest {float(found.scale):.3g}, proven to {float(found.exact_error):.1e}"
        f"{f'; {equal} equal' if found.discrete else ''}"
        f"){'' if judged is None else _judgement(judged)}"
    )


def _judged(judged: Judged) -> dict[str, float | None]:
    kappa = None if judged.condition is None else float(judged.condition)
    return {"relative": float(judged.relative), "bound": float(judged.bound), "condition": kappa}


def _judgement(judged: Judged) -> str:
    relation = "≤" if judged.holds else ">"
    kappa = "" if judged.condition is None else f", at condition {float(judged.condition):.2g}"
    far = f"{float(judged.relative):.2e} {relation} {float(judged.bound):.0e}"
    return f"; of that of its rounded inputs within {far}{kappa}"


def _all(program: Session, request: Request, torch: Torch, bits: int, bound: Fraction | None) -> Outcome:
    """Every function that runs on inputs made from the seed; the others with what they lack."""
    results: list[dict[str, Any]] = []
    skipped: list[dict[str, str]] = []
    lines: list[str] = []
    _known(program, request)
    for name, function in program.core.functions.items():
        if ".lambda" in name:
            continue
        own = {d: request.dims.get(d, ALL_DIMS) for d in function.dims}
        given = {k: v for k, v in request.given.items() if any(p.name == k for p in function.params)}
        try:
            ran = _one(program, name, Request(given, own, request.seed), torch, bits, bound)
        except PreskError as error:
            reason = f"{error.diagnostics[0].code}: {error.diagnostics[0].message}"
            skipped.append({"entry": name, "reason": reason})
            program.diagnostics.items[:] = [d for d in program.diagnostics.items if d not in error.diagnostics]
            lines.append(f"skipped: {name}: {reason}")
            continue
        results.append(ran.document)
        lines.append(ran.text)
    holds = bool(results) and all(r["conforms"] for r in results)
    return Outcome({"all": results, "skipped": skipped, "conforms": holds}, "\n".join(lines), 0 if holds else 1)


def _known(program: Session, request: Request) -> None:
    """E7010 for a dim or argument that no function has."""
    functions = program.core.functions.values()
    dims, names = {d for f in functions for d in f.dims}, {p.name for f in functions for p in f.params}
    missing = [f"dimension `{d}`" for d in request.dims if d not in dims]
    missing += [f"parameter `{a}`" for a in request.given if a not in names]
    if missing:
        raise PreskError([Diagnostic("E7010", f"no function of {program.path} has a {m}", None) for m in missing])


def _bound(text: str) -> Fraction:
    from presk_rel.exec.literals import number

    value = number(text)
    if value is None or value < 0:
        raise click.UsageError(f"--bound takes a number of at least 0, not `{text[:40]}`")
    return value
