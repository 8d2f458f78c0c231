"""A stack in a stack whose layers work on any number of leading axes, with a random body, as Presk and as torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import torch
import torch.nn.functional as F

Kind = Literal["whole", "lead"]
Run = Callable[[dict[str, Any]], Any]
AXES: dict[Kind, str] = {"whole": "ℝ[..., model: D]", "lead": "ℝ[...]"}

TOWER = """
module OpenLayer {{
  param w : ℝ[D, D]      init = xavier_uniform
  param g : ℝ[model: D]  init = normal(std = 0.5)
  fn apply(acc : (ℝ[..., model: D], ℝ[...]), c : ℝ[..., model: D]) -> (ℝ[..., model: D], ℝ[...]) =
    let (x, r) = acc
{lines}
    (x + 0.5 * tanh({whole}), sin({lead}))
}}

module OpenPair {{
  use inner : stack{{2}}(OpenLayer)
  fn apply(acc : (ℝ[..., model: D], ℝ[...]), c : ℝ[..., model: D]) -> (ℝ[..., model: D], ℝ[...]) =
    let (x, r) = inner.apply(acc, sin(c))
    (centre(x) + x * r, r)
}}

module OpenTower {{
  use outer : stack{{{layers}}}(OpenPair)
  fn apply(x : ℝ[..., model: D], c : ℝ[..., model: D]) -> ℝ[..., model: D] =
    let (y, r) = outer.apply((x, mean(axis model, c)), c)
    tanh(y) * r
}}
"""


@dataclass
class _Layer:
    """The body of one layer: names by their kind, lines of text, and what torch computes."""

    rng: Random
    smooth: bool
    names: list[tuple[str, Kind]]
    lines: list[str] = field(default_factory=list[str])
    steps: list[tuple[str, Run]] = field(default_factory=list[tuple[str, Run]])

    def pick(self, kind: Kind) -> str:
        return self.rng.choice([n for n, k in self.names if k == kind][-5:])

    def let(self, kind: Kind, text: str, run: Run) -> None:
        name = f"o{len(self.lines)}"
        self.lines.append(f"    let {name} = ({text} : {AXES[kind]})")
        self.steps.append((name, run))
        self.names.append((name, kind))

    def step(self) -> None:
        """One more value, of size about 1."""
        a, b, m = self.pick("whole"), self.pick("whole"), self.pick("lead")
        kinked: list[tuple[Kind, str, Run]] = [
            ("whole", f"relu({a})", lambda e: torch.relu(e[a])),
            ("whole", f"max({a}, {b})", lambda e: torch.maximum(e[a], e[b])),
            ("lead", f"abs({m})", lambda e: torch.abs(e[m])),
        ]
        forms: list[tuple[Kind, str, Run]] = [
            ("whole", f"gelu({a})", lambda e: F.gelu(e[a])),
            ("whole", f"sin({a}) * {b}", lambda e: torch.sin(e[a]) * e[b]),
            ("whole", f"tanh({a} · w)", lambda e: torch.tanh(e[a] @ e["w"])),
            ("whole", f"centre({a})", lambda e: e[a] - e[a].mean(-1, keepdim=True)),
            ("whole", f"softmax(axis model, {a})", lambda e: torch.softmax(e[a], -1)),
            ("whole", f"scale({a}, g)", lambda e: torch.sin(e[a] * e["g"])),
            ("whole", f"temper({a})", lambda e: e[a] / 0.8),
            ("whole", f"{a} - {m}", lambda e: e[a] - e[m].unsqueeze(-1)),
            ("whole", f"{a} * {m}", lambda e: e[a] * e[m].unsqueeze(-1)),
            ("whole", f"{a} + g", lambda e: e[a] + e["g"]),
            ("lead", f"mean(axis model, {a} * {b})", lambda e: (e[a] * e[b]).mean(-1)),
            ("lead", f"sum(axis model, sin({a}))", lambda e: torch.sin(e[a]).sum(-1)),
            ("lead", f"cos({m})", lambda e: torch.cos(e[m])),
        ]
        self.let(*self.rng.choice(forms if self.smooth else forms + kinked))

    def run(self, θ: Any, acc: Any, c: Any) -> dict[str, Any]:
        env = {"x": acc[0], "r": acc[1], "c": c, "w": θ["w"], "g": θ["g"]}
        for name, step in self.steps:
            env[name] = step(env)
        return env


def open_tower(rng: Random, smooth: bool, size: int) -> tuple[str, Callable[[Any, Any, Any], Any]]:
    """The modules as text, and `OpenTower.apply` in torch."""
    layer = _Layer(rng, smooth, [("x", "whole"), ("c", "whole"), ("r", "lead")])
    for _ in range(size):
        layer.step()
    whole, lead, layers = layer.pick("whole"), layer.pick("lead"), rng.choice((0, 1, 1, 2))
    text = TOWER.format(lines="\n".join(layer.lines), whole=whole, lead=lead, layers=layers)

    def pair(θ: Any, acc: Any, c: Any) -> Any:
        for i in range(2):
            env = layer.run({n: t[i] for n, t in θ["inner"].items()}, acc, torch.sin(c))
            acc = (env["x"] + 0.5 * torch.tanh(env[whole]), torch.sin(env[lead]))
        x, r = acc
        return x - x.mean(-1, keepdim=True) + x * r.unsqueeze(-1), r

    def run(θ: Any, x: Any, c: Any) -> Any:
        acc = (x, c.mean(-1))
        for i in range(layers):
            acc = pair({"inner": {n: t[i] for n, t in θ["outer"]["inner"].items()}}, acc, c)
        return torch.tanh(acc[0]) * acc[1].unsqueeze(-1)

    return text, run
