"""The time to optimize a gradient, against the time torch.compile takes for the same gradient, in one run.

    python benchmarks/optimizer.py                        MiniGPT of width 768 with 12 blocks
    python benchmarks/optimizer.py --width 128 --blocks 4 --vocabulary 256
    python benchmarks/optimizer.py --contractions         all examples with and without the rules of contractions

presk's passes are those of `presk run --time`; torch.compile's time is that of the first call of the exported gradient
(fullgraph, no cache), less that of the second. Seconds are of the wall, and of the CPU with all child processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from gradients import EXAMPLES, machine

SMALL = {"train_minigpt": {"m.V": 64, "m.D": 32, "m.H": 2, "m.L": 2}, "minigpt": {"V": 64, "D": 32, "H": 2, "L": 2},
         "gpt": {"V": 64, "D": 32, "H": 2, "L": 2}}  # fmt: skip


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds of a call."""
    before, start = cpu(), time.perf_counter()
    run()
    return time.perf_counter() - start, cpu() - before


def cpu() -> float:
    usages = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in usages)


def contractions(dim: int) -> None:
    """What `egraph.contract` does to every function of every example: operations that are launches, their arithmetic
    and traffic, launches of the partition, e-nodes and seconds of the processor, without it and with it."""
    from presk_rel.egraph.fusion.fuse import fuse
    from presk_rel.egraph.optimize import optimize
    from presk_rel.egraph.rules import RULES
    from presk_rel.session import Session

    others = tuple(r for r in RULES.values() if r.ruleset != "contract")
    columns = ("operations", "flops", "bytes", "kernels", "e-nodes", "seconds")
    total = [[0.0] * len(columns), [0.0] * len(columns)]
    print(f"{'':44}" + "".join(f"{c:>20}" for c in columns))
    for path in sorted(EXAMPLES.rglob("*.psk")):
        session = Session(str(path), SMALL.get(path.stem, {}))
        if any(d.severity == "error" for d in session.check()):
            continue
        for name in session.core.functions:
            dims = dict.fromkeys(session.core.functions[name].dims, dim)
            rows: list[list[float]] = []
            for rules in (others, None):
                start = time.process_time()
                done = optimize(session.flat(name), name, dims, rules=rules)
                spent = time.process_time() - start
                after, kernels = done.report.after, fuse(done.program, name, dims).work.kernels
                rows.append([after.kernels, after.flops, after.bytes, kernels, done.report.e_nodes[1], spent])
            for sums, row in zip(total, rows, strict=True):
                sums[:] = [a + b for a, b in zip(sums, row, strict=True)]
            if rows[0][:4] != rows[1][:4]:
                print(_compared(f"{path.stem} {name}", rows), flush=True)
    print(_compared("all", total))


def _compared(name: str, rows: list[list[float]]) -> str:
    pairs = zip(*rows, strict=True)
    cells = (f"{a:,.0f} {b:,.0f}" if a == int(a) else f"{a:.2f} {b:.2f}" for a, b in pairs)
    return f"{name:44}" + "".join(f"{c:>20}" for c in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--contractions", action="store_true")
    parser.add_argument("--dim", type=int, default=8, help="with --contractions: what every dimension is bound to")
    options = parser.parse_args()
    if options.contractions:
        contractions(options.dim)
        return
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # workers' time is then this process's and its compilers'
    import presk_rel
    from presk_rel.api.baselines import compiled

    heads = options.heads or max(1, options.width // 64)
    consts = {"m.V": options.vocabulary, "m.D": options.width, "m.H": heads, "m.L": options.blocks}
    dims = {"T": options.length, "B": options.batch}
    print("; ".join(f"{k} {v}" for k, v in machine().items()))
    print(", ".join(f"{k} = {v}" for k, v in {**consts, **dims}.items()))

    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", consts)
    session = program.session
    session.differentiated  # noqa: B018  what comes before the optimizer is timed alone
    front = dict(session.seconds)
    session.flat("loss_grad")
    wall, spent = timed(lambda: session.optimized("loss_grad", dims))
    print(f"{'presk, before the optimizer':<36}{sum(front.values()):8.2f} s")
    print(f"{'presk, optimizer':<36}{wall:8.2f} s  {spent:8.2f} s of CPU")

    import_module("torch").set_num_threads(1)
    handle = program.compile("loss_grad", dims, tier="emit")
    run = compiled(program, handle)
    first, second = timed(run), timed(run)
    whole = [a - b for a, b in zip(first, second, strict=True)]
    print(f"{'torch.compile':<36}{whole[0]:8.2f} s  {whole[1]:8.2f} s of CPU")
    print(f"the optimizer takes {whole[0] / wall:.1f}× less time ({whole[1] / spent:.1f}× less CPU)")


if __name__ == "__main__":
    main()
