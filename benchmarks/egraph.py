"""The optimizer's time: how it grows with the program, and against `torch.compile`.

    python benchmarks/egraph.py [--rounds 3] [--no-torch]

Prints the processor seconds of `optimize` (saturate, extract, prove and all else) for generated gradients of about
2,000 and 20,000 bindings, with their ratio, which is to be at most 15; then its seconds for the gradient of MiniGPT
(768, L=12) at B=8, T=1024, and those that `torch.compile` takes, cold, for the same gradient. What torch compiles is
smaller, B=1, T=64, for it also has to run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from ad import LINES

from presk_rel.core.ir import Program
from presk_rel.egraph.optimize import Optimized, optimize
from presk_rel.pipeline import Session

SIZES = (2_000, 20_000)
PER_LINE = 10
EXAMPLE = Path(__file__).parents[1] / "examples" / "train_minigpt.psk"


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


# ------------------------------------------------------------------------------------------------ torch.compile

V, D, H, L = 50257, 768, 12, 12


def model(torch: Any) -> Any:
    """The transformer of examples/minigpt.psk."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
            self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
            self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

        def forward(self, x: Any, mask: Any) -> Any:
            b, t, _ = x.shape
            n = self.ln1(x)
            q, k, v = (f(n).reshape(b, t, H, D // H).transpose(1, 2) for f in (self.q, self.k, self.v))
            a = torch.softmax((q @ k.mT / (D // H) ** 0.5).masked_fill(~mask, float("-inf")), -1)
            x = x + self.o((a @ v).transpose(1, 2).reshape(b, t, D))
            return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))

    class MiniGPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tok, self.pos = nn.Parameter(torch.randn(V, D) / 50), nn.Parameter(torch.randn(1024, D) / 50)
            self.blocks = nn.ModuleList(Block() for _ in range(L))
            self.ln, self.head = nn.LayerNorm(D), nn.Parameter(torch.zeros(D, V))

        def forward(self, ids: Any, y: Any) -> Any:
            t = ids.shape[1]
            x, mask = self.tok[ids] + self.pos[:t], torch.ones(t, t, dtype=torch.bool).tril()
            for block in self.blocks:
                x = block(x, mask)
            logits = self.ln(x) @ self.head
            return nn.functional.cross_entropy(logits.reshape(-1, V), y.reshape(-1))

    return MiniGPT()


def against_torch() -> None:
    for unroll in (True, False):
        flat = Session(str(EXAMPLE), unroll_stack=unroll).flat("loss_grad")
        start = time.perf_counter()
        seconds, done = timed(flat, {"B": 8, "T": 1024})
        wall = time.perf_counter() - start
        report("minigpt", seconds, done)
        print(f"           presk, {'unrolled' if unroll else 'folded'}: {seconds:.2f} s, {wall:.2f} s on the clock")
    import os

    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        import torch

        ids, y = torch.randint(V, (1, 64)), torch.randint(V, (1, 64))
        compiled = torch.compile(model(torch))
        walls: list[float] = []
        for _ in range(2):
            start = time.perf_counter()
            compiled(ids, y).backward()
            walls.append(time.perf_counter() - start)
    print(f"           torch.compile: {walls[0] - walls[1]:.2f} s on the clock (the first call less the second)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-torch", action="store_true")
    given = parser.parse_args()
    rounds: int = given.rounds
    scaling(rounds)
    if not given.no_torch:
        against_torch()


if __name__ == "__main__":
    main()
