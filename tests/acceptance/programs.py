"""Random well-typed Presk programs with everything that is to be differentiated, each with its independent reading in
torch: modules and a stack, helper functions, lambdas, tuples, trees, prefixes, indices, keys, inner derivatives.

    program = random_program(seed, smooth=True)
    program.text                     -- functions f, loss, loss_grad, pushed, pulled, and with `smooth` hvp and hvp2
    program.outputs(w, data)         -- f in torch; w = (θ, p, q, s), θ nested dicts of tensors
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from tests.acceptance.open_stacks import open_tower
from tests.acceptance.source import ACTS, SCALAR, VECTOR, Axes, Body, Helper, Known, aligned, written
from tests.acceptance.source_steps import STEPS

PRELUDE = """\
const D : nat = 4
const H : nat = 2
const HD : nat = D / H
const L : nat = {layers}
dim B
dim T

type Acts = ℝ[batch: B, seq: T, model: D]
type Tokens = idx[5][batch: B, seq: T]

module Linear{{In Out : dim}} {{
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]      init = normal(std = 0.3)
  fn apply(x : ℝ[..., In]) -> ℝ[..., Out] = x · w + b
}}

fn temper(x : ℝ[...], τ : f64 = 0.8) -> ℝ[...] = x / real(τ)

fn centre{{K : dim}}(x : ℝ[..., model: K]) -> ℝ[..., model: K] = x - mean(axis model, x)

fn scale{{K : dim}}(x : ℝ[..., K], s : ℝ[K]) -> ℝ[..., K] = sin(x * s)

fn twice(f, x : Acts) -> Acts = f(f(x))
"""

LAYER = """
module Layer {{
  use lin : Linear{{D, D}}
  param g : ℝ[model: D]  init = normal(std = 0.5)
  fn apply(acc : (Acts, ℝ[]), s : ℝ[]) -> (Acts, ℝ[]) =
    let (x, r) = acc
    let h = (lin.apply(x) : Acts)
{lines}
    (x + 0.5 * tanh({value}), sin(r) * s)
}}

module Net {{
  use lin    : Linear{{D, D}}
  use layers : stack{{L}}(Layer)
  use tower  : OpenTower
  param table : ℝ[vocab: 5, model: D]  init = normal(std = 0.7)
  param pos   : ℝ[T, D]                init = normal(std = 0.7)
  fn apply(x : Acts, s : ℝ[]) -> (Acts, ℝ[]) = layers.apply((lin.apply(x), s), s)
  fn look(t : Tokens) -> Acts = embed(table, t) + embed(pos, positions(seq: T))
  fn count(t : Tokens) -> Acts = (one_hot(t) : ℝ[batch: B, seq: T, vocab: 5]) · table
  fn climb(x : ℝ[..., model: D], c : ℝ[..., model: D]) -> ℝ[..., model: D] = tower.apply(x, c)
  fn slope(x : ℝ[..., model: D], c : ℝ[..., model: D]) -> ℝ[..., model: D] =
    tanh(grad(λ (z : ℝ[..., model: D]). sum(sin(tower.apply(z, c))))(x))
  fn logits(x : Acts) -> ℝ[batch: B, seq: T, vocab: 5] = ein[batch, seq, vocab](x * table)
}}

type W = (params Net, Acts, ℝ[model: D], ℝ[])
"""

MAIN = """
fn f(w : W, x : Acts, ids : Tokens, key : key) -> ({first}, ℝ[]) uses Rand =
  let (θ, p, q, s) = w
{lines}
  ({value}, {scalar})

fn loss(w : W, x : Acts, ids : Tokens, key : key) -> ℝ[] uses Rand =
  let (a, b) = f(w, x, ids, key)
  mean(sin(a) * a) + b

fn loss_grad(w : W, x : Acts, ids : Tokens, key : key) -> W uses Rand =
  grad(λ w. loss(w, x, ids, key))(w)

fn pushed(w : W, v : W, x : Acts, ids : Tokens, key : key) -> ({first}, ℝ[]) uses Rand =
  jvp(λ w. f(w, x, ids, key))(w, v)

fn pulled(w : W, ct : ({first}, ℝ[]), x : Acts, ids : Tokens, key : key) -> W uses Rand =
  vjp(λ w. f(w, x, ids, key))(w, ct)
"""

SECOND = """
fn hvp(w : W, v : W, x : Acts, ids : Tokens, key : key) -> W uses Rand =
  jvp(λ w. loss_grad(w, x, ids, key))(w, v)

fn hvp2(w : W, v : W, x : Acts, ids : Tokens, key : key) -> W uses Rand =
  vjp(λ w. loss_grad(w, x, ids, key))(w, v)
"""


@dataclass(frozen=True)
class SourceProgram:
    """`outputs(w, x, ids)` is `f` in torch, in the inference reading."""

    text: str
    smooth: bool
    outputs: Callable[[Any, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

    def loss(self, w: Any, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        a, b = self.outputs(w, x, ids)
        return (torch.sin(a) * a).mean() + b


def random_program(seed: int, size: int, *, smooth: bool) -> SourceProgram:
    rng = Random(seed)
    layers = rng.choice((0, 1, 2, 2, 3))
    helpers: list[Helper] = []
    texts = [PRELUDE.format(layers=layers)]
    for i in range(2):
        text, helper = _helper(rng, smooth, helpers, f"h{i}", size // 2)
        texts.append(text)
        helpers.append(helper)
    layer_text, layer = _layer(rng, smooth, helpers, size // 2)
    tower_text, tower = open_tower(rng, smooth, size // 3)
    main_text, outputs = _main(rng, smooth, helpers, size, _Net(layer, layers, tower))
    texts += [tower_text, layer_text, main_text, *([SECOND] if smooth else [])]
    return SourceProgram("".join(texts), smooth, outputs)


def _steps(b: Body, size: int) -> None:
    while len(b.lines) < size:
        b.rng.choice(STEPS)(b)


def _of(b: Body, axes: Axes) -> Known:
    found = [v for v in b.values if v.axes == axes]
    return found[-1]


def _helper(rng: Random, smooth: bool, helpers: list[Helper], name: str, size: int) -> tuple[str, Helper]:
    """`fn name(a : …, b : …) -> …`, the result tamed so that callers know its size."""
    axes = tuple(rng.choice((ACTS, ACTS, VECTOR, SCALAR)) for _ in range(rng.randrange(1, 3)))
    names = ("a", "b")[: len(axes)]
    b = Body(rng, smooth, list(helpers) or [_IDENTITY], [Known(n, x) for n, x in zip(names, axes, strict=True)])
    _steps(b, size)
    result = b.pick()
    params = ", ".join(f"{n} : {written(x)}" for n, x in zip(names, axes, strict=True))
    text = f"\nfn {name}({params}) -> {written(result.axes)} =\n" + "\n".join(b.lines) + f"\n  sin({result.name})\n"

    def run(*args: Any) -> Any:
        return torch.sin(b.run(dict(zip(names, args, strict=True)))[result.name])

    return text, Helper(name, axes, result.axes, run)


_IDENTITY = Helper("temper", (SCALAR,), SCALAR, lambda x: x / 0.8)


def _layer(rng: Random, smooth: bool, helpers: list[Helper], size: int) -> tuple[str, Callable[..., Any]]:
    """`Layer.apply` as text, and in torch as a function of the layer's parameters, the accumulator and s."""
    given = [Known("x", ACTS), Known("r", SCALAR), Known("s", SCALAR), Known("g", VECTOR), Known("h", ACTS)]
    b = Body(rng, smooth, helpers, given)
    _steps(b, size)
    value = b.pick(exactly=ACTS)
    text = LAYER.format(lines="\n".join("  " + line for line in b.lines), value=value.name)

    def run(θ: Any, acc: Any, s: Any) -> Any:
        x, r = acc
        env = b.run({"x": x, "r": r, "s": s, "g": θ["g"], "h": _linear(θ["lin"], x)})
        return env["x"] + 0.5 * torch.tanh(env[value.name]), torch.sin(env["r"]) * env["s"]

    return text, run


def _linear(θ: Any, x: Any) -> Any:
    return x @ θ["w"] + θ["b"]


@dataclass(frozen=True)
class _Net:
    """The members of module `Net` in torch."""

    layer: Callable[..., Any]
    layers: int
    tower: Callable[[Any, Any, Any], Any]

    def apply(self, θ: Any, x: Any, s: Any) -> Any:
        acc = (_linear(θ["lin"], x), s)
        for i in range(self.layers):
            acc = self.layer(_slice(θ["layers"], i), acc, s)
        return acc

    def look(self, θ: Any, ids: Any) -> Any:
        return θ["table"][ids] + θ["pos"]

    def slope(self, θ: Any, x: Any, c: Any) -> Any:
        return torch.tanh(torch.func.grad(lambda z: torch.sin(self.tower(θ["tower"], z, c)).sum())(x))

    def entropy(self, θ: Any, x: Any, ids: Any) -> Any:
        logits = x @ θ["table"].mT
        return -torch.log_softmax(logits, -1).gather(-1, ids.unsqueeze(-1)).mean()


def _slice(θ: Any, i: int) -> Any:
    return {n: _slice(v, i) for n, v in θ.items()} if isinstance(θ, dict) else θ[i]


def _modules(b: Body, net: _Net) -> None:
    """One of the calls of `Net` that only the main function has."""
    v, s = b.pick(exactly=ACTS), b.pick(exactly=SCALAR)
    choice = b.rng.randrange(6)
    if choice == 0:
        y, r = b.fresh(), b.fresh()
        b.line((y, r), f"Net.apply(θ, {v.name}, sin({s.name}))",
               lambda e: net.apply(e["θ"], e[v.name], torch.sin(e[s.name])))  # fmt: skip
        b.values += [Known(y, ACTS, 5 + v.bound), Known(r, SCALAR, 3)]
    elif choice == 1:
        b.let("Net.look(θ, ids)", ACTS, 4, lambda e: net.look(e["θ"], e["ids"]))
    elif choice == 2:
        b.let("Net.count(θ, ids)", ACTS, 3, lambda e: e["θ"]["table"][e["ids"]])
    elif choice < 5:
        _climb(b, net)
    else:
        b.let(f"mean(cross_entropy(Net.logits(θ, {v.name}), ids))", SCALAR, 10,
              lambda e: net.entropy(e["θ"], e[v.name], e["ids"]))  # fmt: skip


def _climb(b: Body, net: _Net) -> None:
    """A call of what works on any number of leading axes, or of its slope, on values of three axes or of one."""
    axes = b.rng.choice((ACTS, VECTOR))
    v, c = b.pick(exactly=axes), b.pick(exactly=axes)
    if not b.smooth or b.rng.random() < 0.7 or any("Net.slope" in line for line in b.lines):
        b.let(f"Net.climb(θ, {v.name}, {c.name})", axes, 2, lambda e: net.tower(e["θ"]["tower"], e[v.name], e[c.name]))
    else:
        b.let(f"Net.slope(θ, {v.name}, {c.name})", axes, 2, lambda e: net.slope(e["θ"], e[v.name], e[c.name]))


def _main(
    rng: Random, smooth: bool, helpers: list[Helper], size: int, net: _Net
) -> tuple[str, Callable[[Any, Any, Any], Any]]:
    given = [Known("x", ACTS), Known("p", ACTS), Known("q", VECTOR), Known("s", SCALAR)]
    b = Body(rng, smooth, helpers, given, key="key", indices="ids")
    for _ in range(3):
        _steps(b, len(b.lines) + size // 3)
        _modules(b, net)
    value, scalar = _blend(b), _of(b, SCALAR)
    text = MAIN.format(lines="\n".join(b.lines), value=value.name, scalar=scalar.name, first=written(value.axes))

    def outputs(w: Any, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        θ, p, q, s = w
        env = b.run({"θ": θ, "p": p, "q": q, "s": s, "x": x, "ids": ids})
        return env[value.name], env[scalar.name]

    return text, outputs


def _blend(b: Body) -> Known:
    """A sum that reads much of what the body made."""
    total = b.pick()
    for v in list(b.values):
        if set(v.axes) <= set(total.axes) and b.rng.random() < 0.6 and v.bound < 20:
            out = _added(b, total, v)
            total = out or total
    return total


def _added(b: Body, total: Known, v: Known) -> Known | None:
    if total.name == v.name:
        return None

    def run(e: Any) -> Any:
        return e[total.name] + torch.sin(aligned(e[v.name], v.axes, total.axes))

    return b.let(f"{total.name} + sin({v.name})", total.axes, total.bound + 1, run)
