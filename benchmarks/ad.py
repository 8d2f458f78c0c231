"""The price of a gradient of a large program: differentiation of a generated program of 1,000 and of 10,000 bindings.

    python benchmarks/ad.py [--rounds 5]

Prints the seconds of each (the least of the rounds, which are interleaved) and their ratio, which is to be at most 12.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from presk_rel.ad.reverse import Remat, differentiate
from presk_rel.core.ir import Program
from presk_rel.session import Session

SIZES = (1_000, 10_000)
LINES = (
    "sin({0} * {1})", "tanh({0}) + {1}", "{0} / ({1}^2 + 1.0)", "gelu({0} - {1})", "softmax(axis i, {0}) * {1}",
    "exp(sin({0})) * mean({1})", "max({0}, {1})",
)  # fmt: skip


def source(bindings: int) -> str:
    """A program whose PSK-Core has about this many bindings: functions of twenty lines, each of which calls the one
    five before it, and a loss that reads them all."""
    count = max(1, bindings // 45)
    functions = [_function(k) for k in range(count)]
    total = "\n".join(f"  let s = s + f{k}(s, w)" for k in range(count))
    loss = f"fn loss(w : ℝ[i: N], x : ℝ[i: N]) -> ℝ[] =\n  let s = x\n{total}\n  mean(s)"
    gradient = "fn loss_grad(w : ℝ[i: N], x : ℝ[i: N]) -> ℝ[i: N] =\n  grad(λ w. loss(w, x))(w)"
    return "\n\n".join(["dim N", *functions, loss, gradient, ""])


def _function(k: int) -> str:
    lines = [f"fn f{k}(v0 : ℝ[i: N], v1 : ℝ[i: N]) -> ℝ[i: N] ="]
    for i in range(2, 20):
        lines.append(f"  let v{i} = {LINES[(i + k) % len(LINES)].format(f'v{i - 1}', f'v{i - 2}')}")
    result = "sin(v19)" if k < 5 else f"f{k - 5}(v19, v18) + v17"
    return "\n".join([*lines, f"  {result}"])


def core(bindings: int) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.psk"
        path.write_text(source(bindings), encoding="utf-8")
        return Session(str(path)).core


def size(program: Program) -> int:
    return sum(len(f.bindings) for f in program.functions.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    programs = [core(n) for n in SIZES]
    policies: tuple[Remat, ...] = ("store", "recompute")
    for remat in policies:
        best = [float("inf")] * len(SIZES)
        for _ in range(rounds):
            for i, program in enumerate(programs):
                start = time.process_time()
                done = differentiate(program, remat)
                best[i] = min(best[i], time.process_time() - start)
                print(f"{remat:9}  {size(program):6} bindings become {size(done):6}  {best[i]:.3f} s", flush=True)
        print(f"{remat:9}  ratio {best[1] / best[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
