"""`presk bench`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    dims_option,
    entry_option,
    in_a_folder,
    lowering_options,
    naturals,
    required,
    session,
    source_path,
    tier_option,
    write_text,
)

if TYPE_CHECKING:
    from presk_rel.api.bench import Bench


@click.command("bench", epilog="Example:  presk bench examples/mlp.psk --entry mse_grad --dim B=32 --dim D=64")
@common_options
@entry_option
@dims_option
@lowering_options
@click.option("--against", default="eager", metavar="A,B", help="eager, compile, jax.  [default: eager]")
@click.option("--dtype", type=click.Choice(["f64", "f32", "bf16"]), default="f32", help="[default: f32]")
@click.option("--device", default="cpu", help="cpu, cuda, cuda:n.  [default: cpu]")
@tier_option
@click.option("--runs", type=click.IntRange(1, 100_000), default=31, metavar="N", help="Samples.  [default: 31]")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, metavar="N", help="Of the CPU.  [default: 1]")
@click.option("--seed", type=int, default=0, metavar="N", help="Seed of the inputs.  [default: 0]")
@click.option("--plot", type=click.Path(dir_okay=False), callback=in_a_folder, metavar="OUT.svg", help="Draw it.")
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
    against: str,
    dtype: Any,
    device: str,
    tier: Any,
    runs: int,
    threads: int,
    seed: int,
    plot: str | None,
) -> None:
    """Time an optimized entry on torch against PyTorch itself, interleaved."""
    report = Report("bench", as_json, debug)

    def body() -> Outcome:
        from presk_rel.api.bench import bench
        from presk_rel.api.program import Program
        from presk_rel.exec.torch.run import fallen_back

        torch: Any = import_module("torch")
        torch.set_num_threads(threads)
        program = Program(session(report, source_path(file), naturals(consts, "--const"), engine))
        program.session.mode, program.session.unroll_stack = mode, unroll_stack
        handle = program.compile(
            required(entry),
            naturals(dims, "--dim"),
            dtype=dtype,
            device=device,
            seed=seed,
            tier="inductor" if tier == "auto" else tier,
        )
        baselines = tuple(a.strip() for a in against.split(",") if a.strip())
        found = bench(program, handle, baselines, runs)
        for warning in fallen_back(handle.status).items:
            program.session.diagnostics.add(warning)
        if plot is not None:
            write_text(plot, _svg(found, handle.function.name))
        return Outcome(_document(found, handle.function.name, dict(handle.dims), seed), _text(found))

    report.execute(body)


def _document(found: Bench, entry: str, dims: dict[str, int], seed: int) -> dict[str, Any]:
    return {
        "entry": entry, "dims": dims, "seed": seed, "medians": found.medians, "ratios": found.ratios,
        "intervals": {n: list(i) for n, i in found.intervals.items()}, "samples": found.samples,
        "kernels": found.kernels, "environment": found.environment,
    }  # fmt: skip


def _text(found: Bench) -> str:
    rows = [f"{'':<10}{'median':>12}{'95 % interval':>28}{'kernels':>9}{'ratio':>9}"]
    for name, median in found.medians.items():
        low, high = found.intervals[name]
        kernels = "?" if found.kernels[name] is None else str(found.kernels[name])
        ratio = f"{found.ratios[name]:8.2f}×" if name in found.ratios else ""
        rows.append(f"{name:<10}{_micro(median):>12}{f'{_micro(low)} … {_micro(high)}':>28}{kernels:>9}{ratio:>9}")
    about = ", ".join(f"{k} {v}" for k, v in found.environment.items())
    return "\n".join([*rows, about])


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"


def _svg(found: Bench, title: str) -> str:
    """One row per side: every sample, the median and its interval, from 0."""
    top = max(max(s) for s in found.samples.values()) or 1.0
    parts = [f'<text x="10" y="20" font-size="14">{_escaped(title)}</text>']
    for k, (name, samples) in enumerate(found.samples.items()):
        y = 50 + 40 * k
        low, high = (120 + 560 * v / top for v in found.intervals[name])
        middle = 120 + 560 * found.medians[name] / top
        dots = "".join(f'<circle cx="{120 + 560 * v / top:.1f}" cy="{y}" r="2" opacity="0.3"/>' for v in samples)
        parts.append(f'<text x="10" y="{y + 4}" font-size="12">{_escaped(name)}</text>{dots}')
        parts.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="black" stroke-width="3"/>')
        parts.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 8}" y2="{y + 8}" stroke="black"/>')
        parts.append(f'<text x="{middle:.1f}" y="{y - 11}" font-size="10">{_micro(found.medians[name])}</text>')
    height = 60 + 40 * len(found.samples)
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height}">\n{body}\n</svg>\n'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
