"""Gradients where the layers, and the functions that take the gradient, work on any number of leading axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import literal
from presk_rel.exec.values import Tensor, leaves
from presk_rel.session import Request, Session
from tests.exec.oracle import texts

TEXT = """\
dim D

module Block {
  param w : ℝ[D, D]  init = normal(std = 0.5)
  param g : ℝ[D]     init = ones
  fn apply(acc : (ℝ[..., model: D], key), c : ℝ[..., model: D], d : ℝ[...]) -> (ℝ[..., model: D], key) uses Rand =
    let (x, k) = acc
    let (here, next) = split_key(k)
    let h = x - mean(axis model, x)
    (x + g * gelu(dropout(0.5, here, h) · w) * c + d, next)
}

module Pair {
  use blocks : stack{2}(Block)
  param s : ℝ[D]  init = normal(std = 0.5)
  fn apply(acc : (ℝ[..., model: D], key), c : ℝ[..., model: D], d : ℝ[...]) -> (ℝ[..., model: D], key) uses Rand =
    let (x, k) = blocks.apply(acc, c, d)
    (tanh(x * s), k)
}

module Net {
  use pairs : stack{2}(Pair)
  fn apply(x : ℝ[..., model: D], c : ℝ[..., model: D], d : ℝ[...], k : key) -> ℝ[..., model: D] uses Rand =
    let (y, _) = pairs.apply((x, k), c, d)
    y
}

fn loss(θ : params Net, x : ℝ[..., model: D], c : ℝ[..., model: D], k : key) -> ℝ[] uses Rand =
  mean(Net.apply(θ, x, c, mean(axis model, c), k)^2)

fn slope(θ : params Net, x : ℝ[..., model: D], k : key) -> params Net uses Rand =
  grad(λ θ. loss(θ, x, x, k))(θ)

fn captured(θ : params Net, x : ℝ[..., model: D], k : key) -> ℝ[..., model: D] uses Rand =
  let f = λ c. loss(θ, x * c, c, k)
  grad(f)(x)

fn pulled(θ : params Net, x : ℝ[..., model: D], ct : ℝ[..., model: D], k : key) -> ℝ[..., model: D] uses Rand =
  vjp(λ x. Net.apply(θ, x, x, mean(axis model, x), k))(x, ct)

fn pushed(θ : params Net, x : ℝ[..., model: D], v : ℝ[..., model: D], k : key) -> ℝ[..., model: D] uses Rand =
  jvp(λ x. Net.apply(θ, x, x, mean(axis model, x), k))(x, v)

fn curvature(θ : params Net, v : params Net, x : ℝ[..., model: D], k : key) -> params Net uses Rand =
  jvp(λ θ. slope(θ, x, k))(θ, v)

fn twice(θ : params Net, x : ℝ[..., model: D], v : ℝ[..., model: D], k : key) -> ℝ[..., model: D] uses Rand =
  vjp(λ x. captured(θ, x, k))(x, v)

fn one(θ : params Net, x : ℝ[model: D], k : key) -> params Net uses Rand = slope(θ, x, k)

fn square(θ : params Net, x : ℝ[D, model: D], k : key) -> params Net uses Rand = slope(θ, x, k)

fn named{S : Shape, T : Shape}(θ : params Net, x : ℝ[S, model: D], y : ℝ[T, model: D], k : key)
    -> params Net uses Rand = grad(λ θ. loss(θ, x, x, k) * loss(θ, y, y, k))(θ)

fn ranks(θ : params Net, x : ℝ[batch: 2, model: D], y : ℝ[batch: 1, heads: 2, D, model: D], k : key)
    -> (params Net, params Net) uses Rand = (slope(θ, x, k), slope(θ, y, k))
"""
ONE, TWO, FOUR = "[0.3, -1]", "[[0.3, -1], [0.5, 2]]", "[[[[0.3, -1]], [[0.5, 2]]]]"
CASES = [
    *(("slope", {"x": x}) for x in (ONE, TWO, FOUR)),
    *(("captured", {"x": x}) for x in (ONE, TWO)),
    ("pulled", {"x": TWO, "ct": TWO}),
    ("pushed", {"x": FOUR, "v": FOUR}),
    ("curvature", {"x": TWO}),
    ("twice", {"x": TWO, "v": TWO}),
    ("one", {}),
    ("square", {}),
    ("named", {"x": ONE, "y": TWO}),
    ("ranks", {}),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("open") / "open.psk"
    found.write_text(TEXT, encoding="utf-8")
    return str(found)


def reals(value: Any) -> list[float]:
    return [float(x) for _, leaf in leaves(value) if isinstance(leaf, Tensor) for x in leaf.data.ravel().tolist()]


@pytest.mark.parametrize(("entry", "given"), CASES, ids=[f"{e} {' '.join(g.values())}" for e, g in CASES])
def test_the_numbers_are_those_of_the_stack_written_out(entry: str, given: dict[str, str], path: str) -> None:
    compare(entry, given, "inference", path)


@pytest.mark.parametrize("entry", ["pulled", "ranks"])
def test_every_layer_draws_what_it_drew(entry: str, path: str) -> None:
    compare(entry, {}, "training", path)


def compare(entry: str, given: dict[str, str], mode: Any, path: str) -> None:
    """The stack as a fold, whatever is kept of it, against the stack written out; proven, optimized, and on torch."""
    plain = Request({n: literal(n, t) for n, t in given.items()}, {"D": 2}, optimize=False)
    options = Options(bits=128)
    expected = texts(Session(path, mode=mode, unroll_stack=True).run_exact(entry, plain, options).value)
    for remat in ("store", "recompute"):
        assert texts(Session(path, mode=mode, remat=remat).run_exact(entry, plain, options).value) == expected
    session, optimized = Session(path, mode=mode), Request(plain.given, plain.dims)
    assert texts(session.run_exact(entry, optimized, options).value) == expected
    found = session.run_torch(entry, optimized, "f64", "cpu", "emit").value
    assert reals(found) == pytest.approx([float(t) for t in expected], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    "entry", ["slope", "captured", "pulled", "pushed", "curvature", "one", "square", "named", "ranks"]
)
def test_the_optimization_is_proven(entry: str, path: str) -> None:
    verdict = Session(path).verified(entry, {"D": 2})
    assert verdict.reasons == ()


def test_what_is_printed_is_read_back(path: str, tmp_path: Path) -> None:
    from presk_rel.core.printer import print_program

    for remat in ("store", "recompute"):
        printed = print_program(Session(path, remat=remat).differentiated)
        assert "ℝ[2, ..., model: D]" in printed
        again = tmp_path / "again.core"
        again.write_text(printed, encoding="utf-8")
        assert print_program(Session(str(again)).core) == printed
