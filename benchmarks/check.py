"""The price of `presk check`.

    python benchmarks/check.py [--rounds 5] [--functions 1000]

Three things are printed. `presk check examples/train_minigpt.psk` against `python -c "import z3, lark"`, processes of
the same run in turn, their least times and the ratio (at most 3 is wanted). The check of a generated program of N
functions and of 10·N, in this process, the time of each pass and the ratio of the whole (at most 12). How often a
dimension question was asked, how often Z3 had to answer it.

Times are the processor's, so that other work on the machine counts less, except those of the passes; modules are
compiled beforehand, as an installed package has them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from presk_rel.session import Session
from presk_rel.smt import solver

ROOT = Path(__file__).parent.parent
TRAIN = ROOT / "examples" / "train_minigpt.psk"
CHECK = [sys.executable, "-m", "presk_rel.cli.app", "check", str(TRAIN)]
COMPILED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
COMPILED["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "presk-benchmark-pycache")
IMPORTS = [sys.executable, "-c", "import z3, lark"]


def process_seconds(command: list[str]) -> float:
    process = subprocess.Popen(command, cwd=ROOT, env=COMPILED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


def program_of(functions: int) -> str:
    """Functions that call one another (`f9` calls `f4`), a module with its own, a gradient in every tenth."""
    lines = [
        "dim B",
        "module Linear{In Out : dim} {",
        "  param w : ℝ[In, Out]  init = xavier_uniform",
        "  fn apply(x : ℝ[..., In]) -> ℝ[..., Out] = x · w",
        "}",
        "model Layer = Linear{8, 8}",
    ]
    for i in range(functions):
        inner = f"f{i // 2}(θ, h)" if i else "h"
        head = f"fn f{i}(θ : params Layer, x : ℝ[batch: B, model: 8]) -> ℝ[batch: B, model: 8] ="
        lines += [head, "  let h = gelu(Layer.apply(θ, x)) + x", f"  {inner} * 0.5 - mean(h)"]
        if i % 10 == 0:
            lines += [
                f"fn g{i}(θ : params Layer, x : ℝ[batch: B, model: 8]) -> params Layer =",
                f"  grad(λ θ. mean(f{i}(θ, x)^2))(θ)",
            ]
    return "\n".join(lines) + "\n"


@dataclass
class Questions:
    """What was asked while it is installed."""

    asked: int = 0
    by_z3: int = 0

    def install(self) -> None:
        prove, decide = solver.Solver.prove, solver._Z3.decide

        def counted_prove(this: solver.Solver, condition: solver.Condition) -> solver.Verdict:
            self.asked += 1
            return prove(this, condition)

        def counted_decide(this: solver._Z3, condition: solver.Condition) -> solver.Verdict:
            self.by_z3 += 1
            return decide(this, condition)

        solver.Solver.prove = counted_prove
        solver._Z3.decide = counted_decide


def check(path: Path, questions: Questions) -> tuple[float, dict[str, float]]:
    questions.asked = questions.by_z3 = 0
    session = Session(str(path))
    start = time.process_time()
    found = session.check()
    seconds = time.process_time() - start
    assert not [d for d in found if d.severity == "error"], found[0].message
    return seconds, session.seconds


def show(what: str, seconds: float, passes: dict[str, float], questions: Questions) -> None:
    parts = ", ".join(f"{name} {value:.2f}" for name, value in passes.items())
    print(f"{what}: {seconds:.2f} s ({parts}); {questions.asked} questions, {questions.by_z3} answered by Z3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--functions", type=int, default=1_000)
    options = parser.parse_args()

    process_seconds(CHECK), process_seconds(IMPORTS)  # compiles
    pairs = [(process_seconds(CHECK), process_seconds(IMPORTS)) for _ in range(options.rounds)]
    ours, imports = (min(times) for times in zip(*pairs, strict=True))
    print(f"presk check train_minigpt.psk {ours:.3f} s, import z3, lark {imports:.3f} s: {ours / imports:.2f} times")

    questions = Questions()
    questions.install()
    show("train_minigpt.psk", *check(TRAIN, questions), questions)
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in (options.functions, 10 * options.functions):
            path = Path(folder) / f"{n}.psk"
            path.write_text(program_of(n), encoding="utf-8")
            took, passes = check(path, questions)
            seconds.append(took)
            show(f"{n} functions", took, passes, questions)
    print(f"10 times the functions: {seconds[1] / seconds[0]:.1f} times the time")


if __name__ == "__main__":
    main()
