"""The price of proof: the gradient of the tiny MiniGPT's loss, every digit proven, against the same primitives on bare
`gmpy2.mpfr` loops and on mpmath loops, which prove nothing.

    python benchmarks/exact.py [--bits 256] [--rounds 3] [--small]

The three execute the same PSK-Core, after the same passes, on the same arguments: only the arithmetic differs. Rounds
are interleaved; the medians and their ratios are printed. `--small` runs the small GPT (V=256 D=128 H=4 L=4 T=64 B=2)
once, proven, and prints its time and memory.
"""

from __future__ import annotations

import argparse
import operator
import resource
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import gmpy2
import mpmath
import numpy as np

from presk_rel.core.ir import Program
from presk_rel.exec import keys
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.kernel import Choices, Events, RowFunctions, Site, boxed, filled
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.inputs import Bound, prepare
from presk_rel.exec.values import Array, HostReals, Leaf, Tensor, Value, leaves, map_leaves
from presk_rel.session import Session

EXAMPLE = Path(__file__).parent.parent / "examples" / "train_minigpt.psk"
TINY = {"V": 64, "D": 32, "H": 2, "L": 2}
SMALL = {"V": 256, "D": 128, "H": 4, "L": 4}


class Loops:
    """A kernel of scalars in plain loops: what one writes without a matrix library. `make` is the number of a float or
    a rational, `f` the library's functions by name."""

    name = "loops"

    def __init__(self, make: Callable[[Any], Any], f: dict[str, Callable[..., Any]]) -> None:
        self.events = Events()
        self.make, self.f = make, f
        self.zero, self.one = make(0), make(1)
        self.rows = RowFunctions(self._softmax, self._cross_entropy, self._never, self._never, self._never)
        half = self.one / 2
        scale = self.one / f["sqrt"](f["pi"]() * 2)

        def cdf(x: Any) -> Any:
            return half * f["erfc"](-x * f["sqrt"](half))

        def pdf(x: Any) -> Any:
            return scale * f["exp"](-x * x * half)

        self.table: dict[str, Callable[[Any], Any]] = {
            "neg": operator.neg, "exp": f["exp"], "sqrt": f["sqrt"], "log": f["log"], "tanh": f["tanh"],
            "gelu": lambda x: x * cdf(x), "gelu'": lambda x: cdf(x) + x * pdf(x),
        }  # fmt: skip

    def _softmax(self, row: list[Any]) -> list[Any]:
        top = max(row)
        powers = [self.f["exp"](e - top) for e in row]
        whole = sum(powers, self.zero)
        return [p / whole for p in powers]

    def _cross_entropy(self, row: list[Any], y: int) -> Any:
        top = max(row)
        return self.f["log"](sum((self.f["exp"](e - top) for e in row), self.zero)) - (row[y] - top)

    def _never(self, *_args: Any) -> Any:
        raise NotImplementedError

    def settle(self, chosen: Choices, shape: tuple[int, ...], site: Site, what: Callable[[int], str]) -> list[int]:
        raise NotImplementedError

    def inject(self, data: HostReals) -> Array:
        return filled([self.make(e) for e in data.ravel().tolist()], data.shape)

    def rational(self, q: Fraction) -> Array:
        return boxed(self.make(q))

    def pi(self) -> Array:
        return boxed(self.f["pi"]())

    def unary(self, op: str, x: Array, site: Site) -> Array:
        return filled(list(map(self.table[op], x.ravel().tolist())), x.shape)

    def power(self, x: Array, n: int, site: Site) -> Array:
        return filled([e * e if n == 2 else e**n for e in x.ravel().tolist()], x.shape)

    def binary(self, op: str, x: Array, y: Array, site: Site) -> Array:
        f = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}[op]
        a, b = np.broadcast_arrays(x, y)
        return filled(list(map(f, a.ravel().tolist(), b.ravel().tolist())), a.shape)

    def total(self, x: Array, over: tuple[int, ...]) -> Array:
        kept = [axis for axis in range(x.ndim) if axis not in over]
        shape = tuple(x.shape[axis] for axis in kept)
        rows = x.transpose((*kept, *over)).reshape(int(np.prod(shape)), -1).tolist()
        return filled([sum(row, self.zero) for row in rows], shape)

    def matmul(self, x: Array, y: Array) -> Array:
        columns = y.T.tolist()
        entries = [sum(map(operator.mul, row, column), self.zero) for row in x.tolist() for column in columns]
        return filled(entries, (x.shape[0], y.shape[1]))


def bare_mpfr() -> Loops:
    def make(x: Any) -> Any:
        return gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator)) if isinstance(x, Fraction) else gmpy2.mpfr(x)

    names = ("exp", "sqrt", "log", "tanh", "erfc")
    return Loops(make, {**{n: getattr(gmpy2, n) for n in names}, "pi": gmpy2.const_pi})


def mpmath_loops() -> Loops:
    def make(x: Any) -> Any:
        return mpmath.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else mpmath.mpf(x)

    names = ("exp", "sqrt", "log", "tanh", "erfc")
    return Loops(make, {**{n: getattr(mpmath, n) for n in names}, "pi": lambda: +mpmath.pi})


# --------------------------------------------------------------------------------------------------------- the program


def program(sizes: dict[str, int]) -> Program:
    return Session(str(EXAMPLE), {f"m.{n}": v for n, v in sizes.items()}, remat="store").differentiated


def arguments(found: Program, dims: dict[str, int]) -> tuple[Bound, tuple[Value, ...]]:
    """As a run synthesizes them, but parameters that start at 0 are drawn: otherwise most of the gradient is 0."""
    bound, args = prepare(found, "loss_grad", {}, dims, 0)
    number = iter(range(10_000))

    def leaf(v: Leaf) -> Value:
        i = next(number)
        if not isinstance(v, Tensor) or v.data.any():
            return v
        n = int(np.prod(v.data.shape))
        return Tensor(
            v.axes, keys.normal(keys.split(keys.master(1), i + 1)[i], n, Fraction(1, 50)).reshape(v.data.shape)
        )

    return bound, tuple(map_leaves(leaf, a) for a in args)


def given(bound: Bound, args: tuple[Value, ...]) -> dict[str, Any]:
    """Arguments as `run_exact` takes them."""
    return {p.name: _node(a) for p, a in zip(bound.fn.params, args, strict=True)}


def _node(value: Any) -> Any:
    if hasattr(value, "fields"):
        return {n: _node(v) for n, v in value.fields.items()}
    return [_node(v) for v in value.items] if hasattr(value, "items") else value.data


def worst(proven: Value, other: Value) -> float:
    """The largest distance of an entry from the proven one, relative to the largest entry."""
    pairs: list[tuple[Any, Any]] = []
    for (_, a), (_, b) in zip(leaves(proven), leaves(other), strict=True):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            pairs += zip(a.data.text.ravel().tolist(), b.data.ravel().tolist(), strict=True)
    with mpmath.workprec(2000):
        numbers = [(mpmath.mpf(a), mpmath.mpf(str(b)) if isinstance(b, gmpy2.mpfr) else b) for a, b in pairs]
        return float(max(abs(a - b) for a, b in numbers) / max(abs(a) for a, _ in numbers))


def race(bits: int, rounds: int) -> None:
    found = program(TINY)
    bound, args = arguments(found, {"B": 2, "T": 16})
    nodes = given(bound, args)
    kernels = {"gmpy2.mpfr loops": bare_mpfr, "mpmath loops": mpmath_loops}
    seconds: dict[str, list[float]] = {"presk, proven": [], **{name: [] for name in kernels}}
    results: dict[str, Value] = {}
    gmpy2.get_context().precision = bits
    mpmath.mp.prec = bits
    for _ in range(rounds):
        start = time.process_time()
        proven = run_exact(found, "loss_grad", nodes, {}, options=Options(bits=bits))
        seconds["presk, proven"].append(time.process_time() - start)
        for name, make in kernels.items():
            start = time.process_time()
            kernel: Any = make()
            results[name] = Interpreter(found, kernel).run("loss_grad", inject(kernel, args), bound.env.dims)
            seconds[name].append(time.process_time() - start)
    base = median(seconds["presk, proven"])
    sizes = " ".join(f"{n}={v}" for n, v in TINY.items())
    print(f"gradient of the tiny MiniGPT's loss ({sizes} T=16 B=2), {bits} bits")
    print(
        f"  {'presk, proven':<18}{base:8.2f} s           working precision {proven.precision}, {proven.digits} digits"
    )
    for name, times in list(seconds.items())[1:]:
        taken, error = median(times), worst(proven.value, results[name])
        print(f"  {name:<18}{taken:8.2f} s  {taken / base:6.2f} ×  distance {error:.1e} of the largest entry")


def small(bits: int) -> None:
    found = program(SMALL)
    bound, args = arguments(found, {"B": 2, "T": 64})
    nodes = given(bound, args)
    start = time.process_time()
    result = run_exact(found, "loss_grad", nodes, {}, options=Options(bits=bits))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"small GPT, {bits} bits: {seconds:.1f} s, {peak:.2f} GiB (estimated {result.peak_bytes / 2**30:.2f} GiB)")
    print(f"  attempts at {', '.join(map(str, result.attempts))} bits")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bits", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    if chosen.small:
        small(chosen.bits)
    else:
        race(chosen.bits, chosen.rounds)
