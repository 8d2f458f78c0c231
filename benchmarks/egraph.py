"""How the optimizer's time grows with the program.

    python benchmarks/egraph.py [--rounds 3]

Prints the processor seconds of `optimize` (saturate, extract, prove and all else) for generated gradients of about
2,000 and 20,000 bindings, with their ratio, which is to be at most 15. (Against torch: benchmarks/optimizer.py.)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from ad import LINES

from presk_rel.core.ir import Program
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.session import Session

SIZES = (2_000, 20_000)
PER_LINE = 10


def source(bindings: int) -> str:
    """A loss of many lines whose gradient has about this many bindings."""
    lines = ["  let v0 = x", "  let v1 = w"]
    for i in range(2, bindings // PER_LINE):
        lines.append(f"  let v{i} = {LINES[i % len(LINES)].format(f'v{i - 1}', f'v{i - 2}')}")
    body = "\n".join(lines)
    last = bindings // PER_LINE - 1
    return f"""dim N

fn loss(w : ℝ[i: N], x : ℝ[i: N]) -> ℝ[] =
{body}
  mean(v{last})

fn loss_grad(w : ℝ[i: N], x : ℝ[i: N]) -> ℝ[i: N] =
  grad(λ w. loss(w, x))(w)
"""


def generated(bindings: int) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.psk"
        path.write_text(source(bindings), encoding="utf-8")
        return Session(str(path)).flat("loss_grad")


def timed(flat: Program, dims: dict[str, int]) -> tuple[float, Optimized]:
    start = time.process_time()
    done = optimize(flat, "loss_grad", dims)
    return time.process_time() - start, done


def report(name: str, seconds: float, done: Optimized) -> None:
    r = done.report
    phases = " ".join(f"{phase} {s:.2f}" for phase, s in r.phases)
    fired = sum(n for _, n in r.fired)
    print(f"{name:10} {r.before.bindings:6} bindings become {r.after.bindings:6}, {r.e_nodes[1]:6} e-nodes, {fired:6}")
    print(f"           instances, {r.stopped}, gap {r.gap:.2%}: {seconds:.2f} s ({phases})", flush=True)


def scaling(rounds: int) -> None:
    programs = [generated(n) for n in SIZES]
    best = [float("inf")] * len(SIZES)
    for _ in range(rounds):
        for i, flat in enumerate(programs):
            seconds, done = timed(flat, {})
            best[i] = min(best[i], seconds)
            report("generated", seconds, done)
    print(f"generated  ratio {best[1] / best[0]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds: int = parser.parse_args().rounds
    scaling(rounds)


if __name__ == "__main__":
    main()
