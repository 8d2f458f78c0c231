"""`grad` of function values wherever a program keeps them: in tuples, captured, returned, passed to what is generic in
its leading axes, given to every layer of a stack; each against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.func import grad

from presk_rel.exec.literals import literal
from presk_rel.exec.values import Tensor, leaves
from presk_rel.session import Request, Session

TEXT = """\
module Layer {
  param w : ℝ[3]  init = ones
  fn apply(x : ℝ[..., 3], f) -> ℝ[..., 3] = x - grad(f)(x) * w
}

module Net {
  use layers : stack{2}(Layer)
  fn apply(x : ℝ[batch: 2, 3], c : ℝ[]) -> ℝ[batch: 2, 3] = layers.apply(x, λ z. sum(exp(sin(z))) * c)
}

fn square(x : ℝ[3]) -> ℝ[] = sum(x * x)
fn cube(x : ℝ[3]) -> ℝ[] = sum(x * x * x)

fn make(a : ℝ[3]) = ((λ (x : ℝ[3]). sum(x * a), a), λ (x : ℝ[3]). sum(x * x * a))

fn step(f, x : ℝ[..., 3]) -> ℝ[..., 3] = x - grad(f)(x)

fn centred(f, x : ℝ[..., 3], s : ℝ[...]) -> ℝ[..., 3] =
  let μ = mean(axis model, (x : ℝ[..., model: 3])) * s
  x * μ - grad(λ z. f(z * μ))(x)

fn pair(x : ℝ[3]) -> ℝ[3] =
  let (f, g) = (square, cube)
  grad(f)(x) + grad(g)(x)

fn returned(x : ℝ[3]) -> ℝ[3] =
  let (p, g) = make(x)
  let (f, y) = p
  grad(f)(x) + grad(g)(x) * y

fn captured(x : ℝ[3]) -> ℝ[3] =
  let p = (λ (x : ℝ[3]). sum(exp(x)), x)
  let h = λ (y : ℝ[3]). let (f, z) = p
    sum(grad(f)(y) * z)
  grad(h)(x)

fn passed(x : ℝ[batch: 2, 3]) -> ℝ[batch: 2, 3] = step(λ t. sum(exp(t)), x)

fn again(x : ℝ[batch: 2, 3]) -> ℝ[batch: 2, 3] = grad(λ z. sum(step(λ t. sum(exp(t)), z)^2))(x)

fn equal_axes(x : ℝ[3, 3, 3], s : ℝ[3, 3]) -> ℝ[3, 3, 3] = centred(λ t. sum(exp(sin(t))), x, s)

fn open_axes(x : ℝ[..., 3], s : ℝ[...]) -> ℝ[..., 3] = centred(λ t. sum(exp(sin(t))), x, s)

fn in_a_stack(θ : params Net, x : ℝ[batch: 2, 3], c : ℝ[]) -> ℝ[] =
  grad(λ c. sum(Net.apply(θ, x, c)))(c)
"""


def centred(x: Any, s: Any) -> Any:
    μ = (x.mean(-1) * s).unsqueeze(-1)
    return x * μ - grad(lambda z: torch.exp(torch.sin(z * μ)).sum())(x)


def stepped(x: Any) -> Any:
    return x - torch.exp(x)


def in_a_stack(θ: Any, x: Any, c: Any) -> Any:
    for w in θ["layers"]["w"]:
        x = x - grad(lambda z: torch.exp(torch.sin(z)).sum() * c)(x) * w
    return x.sum()


def cubed(x: Any) -> Any:
    return (x**3).sum()


EXPECTED: dict[str, Callable[..., Any]] = {
    "pair": lambda x: 2 * x + grad(cubed)(x),
    "returned": lambda x: x + 2 * x * x * x,
    "captured": lambda x: torch.exp(x) * x,
    "passed": stepped,
    "again": grad(lambda x: (stepped(x) ** 2).sum()),
    "equal_axes": centred,
    "open_axes": centred,
    "in_a_stack": lambda θ, x, c: grad(lambda c: in_a_stack(θ, x, c))(c),
}
GIVEN = {"open_axes": {"x": "[[0.3, 2, -1], [1, 0.5, 0.2]]", "s": "[0.7, -2]"}}


def as_torch(value: Any) -> Any:
    if hasattr(value, "fields"):
        return {n: as_torch(v) for n, v in value.fields.items()}
    return torch.tensor([float(x) for x in value.data.ravel().tolist()], dtype=torch.float64).reshape(value.data.shape)


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("entry", EXPECTED)
def test_the_gradient_is_that_of_torch(entry: str, unroll: bool, tmp_path: Path) -> None:
    from presk_rel.exec.inputs import prepare

    path = tmp_path / "values.psk"
    path.write_text(TEXT, encoding="utf-8")
    session = Session(str(path), unroll_stack=unroll)
    given = {n: literal(n, t) for n, t in GIVEN.get(entry, {}).items()}
    bound, values = prepare(session.differentiated, entry, given, {}, 3)
    expected = EXPECTED[entry](*(as_torch(v) for v in values))
    found = session.run_torch(entry, Request(given, seed=3), "f64", "cpu", "emit").value
    ours = [float(x) for _, leaf in leaves(found) if isinstance(leaf, Tensor) for x in leaf.data.ravel().tolist()]
    assert bound.fn.name == entry
    assert ours == pytest.approx(expected.flatten().tolist(), rel=1e-12, abs=1e-12)
