"""The steps that random programs are made of: every builtin that has a derivative, and every form of function value.

Each step adds a line or two to a `Body`, or nothing where the values in scope do not suit it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from tests.acceptance.source import (
    ACTS,
    BATCH,
    HALF,
    HD,
    HEADS,
    JOINED,
    MODEL,
    SCALAR,
    SEQ,
    SEQ2,
    VECTOR,
    Axes,
    Body,
    Known,
    aligned,
    dim,
    size,
    written,
)

SMOOTH: dict[str, tuple[Callable[[Any], Any], float | None]] = {
    "gelu": (F.gelu, None),
    "tanh": (torch.tanh, 1),
    "sigmoid": (torch.sigmoid, 1),
    "sin": (torch.sin, 1),
    "cos": (torch.cos, 1),
}
KINKED = {"relu": (torch.relu, None), "abs": (torch.abs, None)}
"""Unary functions, with the bound of their values (None: that of the argument)."""


def unary(b: Body) -> None:
    v = b.pick()
    op = b.rng.choice([*SMOOTH, *(() if b.smooth else KINKED)])
    f, bound = (SMOOTH | KINKED)[op]
    text = b.rng.choice((f"{op}({v.name})", f"{v.name} |> {op}"))
    b.let(text, v.axes, bound or v.bound, lambda e: f(e[v.name]), name=b.rng.choice(("", "", v.name)))


def grown(b: Body) -> None:
    v = b.pick()
    b.let(f"exp(tanh({v.name}))", v.axes, 3, lambda e: torch.exp(torch.tanh(e[v.name])))


def rooted(b: Body) -> None:
    v = b.pick()
    op, f = b.rng.choice((("sqrt", torch.sqrt), ("log", torch.log)))
    b.let(f"{op}({v.name}^2 + 0.5)", v.axes, v.bound + 1, lambda e: f(e[v.name] ** 2 + 0.5))


def power(b: Body) -> None:
    v, n = b.pick(), b.rng.randrange(4)
    b.let(f"-{v.name}^{n}", v.axes, v.bound**n, lambda e: -(e[v.name] ** n))


def binary(b: Body) -> None:
    u, v = b.pick(), b.pick()
    wide, narrow = (u, v) if len(u.axes) >= len(v.axes) else (v, u)
    if not set(narrow.axes) <= set(wide.axes):
        return
    op = b.rng.choice(("+", "-", "*", "/", *(() if b.smooth else ("max", "min"))))
    bound = {"*": u.bound * v.bound, "/": 2 * u.bound, "max": u.bound + v.bound}.get(op, u.bound + v.bound)
    right = f"({v.name}^2 + 0.5)" if op == "/" else v.name
    text = f"{op}({u.name}, {v.name})" if op in ("max", "min") else f"{u.name} {op} {right}"

    def run(e: Any) -> Any:
        x, y = aligned(e[u.name], u.axes, wide.axes), aligned(e[v.name], v.axes, wide.axes)
        match op:
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case "/":
                return x / (y**2 + 0.5)
            case "max":
                return torch.maximum(x, y)
            case _:
                return torch.minimum(x, y)

    b.let(text, wide.axes, bound, run)


def clamped(b: Body) -> None:
    v = b.pick()
    if not b.smooth:
        b.let(f"clamp({v.name}, (-0.5 : ℝ), (0.75 : ℝ))", v.axes, 1, lambda e: torch.clamp(e[v.name], -0.5, 0.75))


def reduced(b: Body) -> None:
    v = b.pick(least=1)
    if v is None:
        return
    op, f = b.rng.choice((("mean", torch.mean), ("sum", torch.sum)))
    axis = b.rng.choice((None, *(n for n, _ in v.axes)))
    bound = v.bound if op == "mean" else v.bound * size(v.axes)
    if axis is None:
        b.let(f"{op}({v.name})", SCALAR, bound, lambda e: f(e[v.name]))
        return
    rest = tuple(a for a in v.axes if a[0] != axis)
    b.let(f"{op}(axis {axis}, {v.name})", rest, bound, lambda e: f(e[v.name], dim=dim(v.axes, axis)))


def soft(b: Body) -> None:
    v = b.pick(least=1)
    if v is not None:
        axis = b.rng.choice(v.axes)[0]
        b.let(f"softmax(axis {axis}, {v.name})", v.axes, 1, lambda e: torch.softmax(e[v.name], dim(v.axes, axis)))


def attention(b: Body) -> None:
    """Scores, a causal softmax of them, and their mixture of values."""
    q, k, x = (b.pick(exactly=ACTS) for _ in range(3))
    if q is None or k is None or x is None:
        return
    of: Axes = (BATCH, SEQ, SEQ2)
    s = b.let(f"ein[batch, seq, seq2]({q.name} * {k.name})", of, 4 * q.bound * k.bound,
              lambda e: torch.einsum("bsm,btm->bst", e[q.name], e[k.name]))  # fmt: skip
    if s is None:
        return

    def masked(e: Any) -> Any:
        mask = torch.ones(e[s.name].shape[-2:], dtype=torch.bool).tril()
        return torch.softmax(e[s.name].masked_fill(~mask, float("-inf")), -1)

    a = b.let(f"softmax(axis seq2, {s.name}, where = causal_mask(seq: T))", of, 1, masked)
    assert a is not None
    b.let(f"ein[batch, seq, model]({a.name} * {x.name})", ACTS, x.bound,
          lambda e: torch.einsum("bst,btm->bsm", e[a.name], e[x.name]))  # fmt: skip


def contraction(b: Body) -> None:
    """An `ein` of two values with any of their axes, in any order. (Next to a `seq2`, `seq` would mean two axes.)"""
    u, v = b.pick(least=1), b.pick()
    if u is None or SEQ2 in (*u.axes, *v.axes):
        return
    every = list(dict.fromkeys([*u.axes, *v.axes]))
    if len({name for name, _ in every}) < len(every):  # one name with two lengths (a half, a concatenation): no `ein`
        return
    out = tuple(b.rng.sample(every, b.rng.randrange(len(every) + 1)))
    gone = tuple(a for a in every if a not in out)
    letter = {n: chr(97 + i) for i, (n, _) in enumerate(every)}
    spec = [("".join(letter[n] for n, _ in axes)) for axes in (u.axes, v.axes, out)]
    b.let(f"ein[{', '.join(n for n, _ in out)}]({u.name} * {v.name})", out, u.bound * v.bound * size(gone),
          lambda e: torch.einsum(f"{spec[0]},{spec[1]}->{spec[2]}", e[u.name], e[v.name]))  # fmt: skip


def dotted(b: Body) -> None:
    v, q = b.pick(exactly=ACTS), b.pick(exactly=VECTOR)
    if v is not None and q is not None:
        text = b.rng.choice((f"{v.name} · {q.name}", f"matmul({v.name}, {q.name})"))
        b.let(text, (BATCH, SEQ), 4 * v.bound * q.bound, lambda e: e[v.name] @ e[q.name])


def heads(b: Body) -> None:
    v = b.pick(exactly=ACTS)
    if v is None:
        return
    split = b.let(f"split_heads({v.name})", (BATCH, HEADS, SEQ, HD), v.bound,
                  lambda e: e[v.name].unflatten(-1, (2, 2)).transpose(-2, -3))  # fmt: skip
    assert split is not None
    b.let(f"merge_heads(sin({split.name}))", ACTS, 1,
          lambda e: torch.sin(e[split.name]).transpose(-2, -3).flatten(-2))  # fmt: skip


def merged(b: Body) -> None:
    v = b.pick(exactly=ACTS)
    if v is None:
        return
    m = b.let(f"merge(axis seq, axis model, {v.name})", (BATCH, JOINED), v.bound, lambda e: e[v.name].flatten(1))
    assert m is not None
    b.let(f"split(axis joined, seq: T, model: 4, tanh({m.name}))", ACTS, 1,
          lambda e: torch.tanh(e[m.name]).unflatten(-1, (-1, 4)))  # fmt: skip


def joined(b: Body) -> None:
    """A concatenation and a slice of it."""
    u, v = b.pick(exactly=ACTS), b.pick(exactly=ACTS)
    if u is None or v is None:
        return
    axis, long, cut = b.rng.choice((("seq", "2*T", "T..2*T"), ("model", "8", "1..5")))
    k, bound = dim(ACTS, axis), max(u.bound, v.bound)
    axes: Axes = tuple((n, long) if n == axis else (n, length) for n, length in ACTS)
    c = b.let(f"concat(axis {axis}, {u.name}, {v.name})", axes, bound, lambda e: torch.cat([e[u.name], e[v.name]], k))
    assert c is not None
    lo = (lambda n: n // 2) if axis == "seq" else (lambda _: 1)

    def run(e: Any) -> Any:
        return e[c.name].narrow(k, lo(e[c.name].shape[k]), e[u.name].shape[k])

    b.let(f"{c.name}[{axis}: {cut}]", ACTS, bound, run)


def selected(b: Body) -> None:
    v = b.pick(exactly=ACTS)
    if v is None:
        return
    axis, i = b.rng.choice((("seq", -1), ("seq", 0), ("model", 2)))
    rest = tuple(a for a in ACTS if a[0] != axis)
    b.let(f"{v.name}[{axis}: {i}]", rest, v.bound, lambda e: e[v.name].select(dim(ACTS, axis), i))


def sliced(b: Body) -> None:
    v = b.pick(MODEL)
    if v is not None:
        axes = tuple(HALF if a == MODEL else a for a in v.axes)
        b.let(f"{v.name}[model: 1..3]", axes, v.bound, lambda e: e[v.name].narrow(dim(v.axes, "model"), 1, 2))


def paired(b: Body) -> None:
    """Through a tuple, taken apart again."""
    u, v = b.pick(), b.pick()
    p, q = b.fresh(), b.fresh()
    b.line((p, q), f"({v.name}, cos({u.name}))", lambda e: (e[v.name], torch.cos(e[u.name])))
    b.values += [Known(p, v.axes, v.bound), Known(q, u.axes, 1)]


def dropped(b: Body) -> None:
    """In the inference reading `dropout` is the identity."""
    v = b.pick()
    if b.key is None or v.axes == SCALAR:
        return
    k, b.key, before = b.fresh("k"), b.fresh("k"), b.key
    b.line((k, b.key), f"split_key({before})", lambda e: (None, None))
    b.let(f"dropout(0.25, {k}, {v.name})", v.axes, 1.4 * v.bound, lambda e: e[v.name])


def numbers(b: Body) -> None:
    """Hyperparameters and indices become reals."""
    v = b.pick()
    choice = b.rng.randrange(3)
    if choice == 0:
        b.let(f"{v.name} / sqrt(HD : ℝ)", v.axes, v.bound, lambda e: e[v.name] / 2**0.5)
    elif choice == 1:
        b.let(f"real(7 / H) * {v.name} - 0.25", v.axes, 3 * v.bound, lambda e: 3 * e[v.name] - 0.25)
    elif b.indices is not None:
        ids = b.indices
        b.let(f"real({ids})", (BATCH, SEQ), 4, lambda e: e[ids].double())


def called(b: Body) -> None:
    h = b.rng.choice(b.helpers)
    args = [b.pick(exactly=axes) for axes in h.params]
    given = [a.name for a in args if a is not None]
    if len(given) == len(args):
        b.let(f"{h.name}({', '.join(given)})", h.result, 4, lambda e: h.run(*(e[n] for n in given)))


def prefixed(b: Body) -> None:
    """Functions of any number of leading axes (see `programs.PRELUDE`)."""
    v, q = b.pick(MODEL), b.pick(exactly=VECTOR)
    if v is None or v.axes[-1] != MODEL:
        return
    b.let(f"temper({v.name})", v.axes, 2 * v.bound, lambda e: e[v.name] / 0.8)
    b.let(f"centre({v.name})", v.axes, 2 * v.bound, lambda e: e[v.name] - e[v.name].mean(-1, keepdim=True))
    if q is not None:
        b.let(f"scale({v.name}, {q.name})", v.axes, 1, lambda e: torch.sin(e[v.name] * e[q.name]))


def expression(b: Body, t: str, axes: Axes) -> tuple[str, Callable[[Any, Any], Any], Known | None]:
    """A smooth expression of `t` that keeps its axes, reading a value of the scope where one fits."""
    op = b.rng.choice([*SMOOTH])
    c = b.pick(exactly=axes)
    f = SMOOTH[op][0]
    if c is None or b.rng.random() < 0.3:
        return f"{op}({t}) * {t}", lambda x, e: f(x) * x, None
    if b.rng.random() < 0.5:
        return f"{op}({t} * {c.name}) + {t}", lambda x, e: f(x * e[c.name]) + x, c
    return f"{t} * {c.name} * {t}", lambda x, e: x * e[c.name] * x, c


def closure(b: Body) -> None:
    """A lambda, applied: bound by `let`, or passed to a function that applies it twice."""
    v = b.pick()
    text, run, _ = expression(b, "t", v.axes)
    f, param = b.fresh("f"), f"λ (t : {written(v.axes)}). {text}"
    if v.axes == ACTS and b.rng.random() < 0.4:
        b.let(f"twice({param}, sin({v.name}))", ACTS, 9, lambda e: run(run(torch.sin(e[v.name]), e), e))
        return
    b.line((f,), param, lambda e: lambda x, e=dict(e): run(x, e))
    b.let(f"{f}(tanh({v.name}))", v.axes, 4, lambda e: e[f](torch.tanh(e[v.name])))


def derived(b: Body) -> None:
    """`grad`, `vjp` or `jvp` of a lambda of the body."""
    v, u = b.pick(), b.pick()
    u = u if u.axes == v.axes else v
    text, run, _ = expression(b, "t", v.axes)
    op = b.rng.choice(("grad", "vjp", "jvp"))
    body, more = (f"mean({text})", "") if op == "grad" else (text, f", cos({u.name})")

    def derivative(e: Any) -> Any:
        x, y = torch.sin(e[v.name]), torch.cos(e[u.name])
        match op:
            case "grad":
                return torch.func.grad(lambda t: run(t, e).mean())(x)
            case "vjp":
                return torch.func.vjp(lambda t: run(t, e), x)[1](y)[0]
            case _:
                return torch.func.jvp(lambda t: run(t, e), (x,), (y,))[1]

    b.let(f"{op}(λ (t : {written(v.axes)}). {body})(sin({v.name}){more})", v.axes, 9, derivative)


STEPS: tuple[Callable[[Body], None], ...] = (
    unary, unary, grown, rooted, power, binary, binary, binary, clamped, reduced, soft, attention, contraction,
    dotted, heads, merged, joined, selected, sliced, paired, dropped, numbers, called, called, prefixed, closure,
    closure, derived,
)  # fmt: skip
