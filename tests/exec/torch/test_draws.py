"""Draws are functions of their keys and of nothing else: in training, masks and tokens on torch are the exact
executor's, bit for bit, in every dtype, in loops and unrolled, optimized or not, and in the backward pass.

Every draw is one binary digit of an integer below 2⁸, which bf16 holds too: with x = 1 a mask of rate ½ is 0 or 2."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presk_rel.exec.exact.run import Options
from presk_rel.exec.inputs import prepare
from presk_rel.exec.torch.run import Dtype, compile_entry, run_torch
from presk_rel.exec.values import IndexTensor, Rounded, Tensor, Value, leaves
from presk_rel.session import Request, Session

SOURCE = """\
dim B

type Ones = ℝ[batch: B, model: 5]
type Acc  = (Ones, key)

module Two {
  param g : ℝ[]  init = ones
  fn apply(s : Acc, o : Ones) -> Acc uses Rand =
    let (x, k) = s
    let (now, k) = split_key(k)
    let (a, b) = split_key(now)
    (4 * x + dropout(0.5, a, g * o) / 2 + dropout(0.5, b, o), k)
}

module One {
  param g : ℝ[]  init = ones
  fn apply(s : Acc, o : Ones) -> Acc uses Rand =
    let (x, k) = s
    let (a, k) = split_key(k)
    (2 * x + dropout(0.5, a, o * g) / 2, k)
}

module Nets {
  use flat   : stack{3}(Two)
  use nested : stack{2}(stack{3}(One))
  fn rows(key : key, o : Ones) -> Ones uses Rand =
    let (x, _) = flat.apply((0 * o, key), o)
    x
  fn squares(key : key, o : Ones) -> Ones uses Rand =
    let (x, _) = nested.apply((0 * o, key), o)
    x
}

module Tokens {
  param score : ℝ[4]  init = normal(std = 1.0)
  fn apply(s : Acc, o : Ones) -> Acc uses Rand =
    let (x, k) = s
    let (a, k) = split_key(k)
    (4 * x + real(sample(a, ein[batch, model, score](o * (score : ℝ[score: 4])))), k)
}

module Writer {
  use layers : stack{3}(Tokens)
  fn apply(key : key, o : Ones) -> Ones uses Rand =
    let (x, _) = layers.apply((0 * o, key), o)
    x
}

fn rows(θ : params Nets, key : key, o : Ones) -> Ones uses Rand = Nets.rows(θ, key, o)

fn squares(θ : params Nets, key : key, o : Ones) -> Ones uses Rand = Nets.squares(θ, key, o)

fn rows_back(θ : params Nets, key : key, o : Ones) -> Ones uses Rand = grad(λ o. sum(rows(θ, key, o)))(o)

fn squares_back(θ : params Nets, key : key, o : Ones) -> Ones uses Rand = grad(λ o. sum(squares(θ, key, o)))(o)

fn written(θ : params Writer, key : key, o : Ones) -> Ones uses Rand = Writer.apply(θ, key, o)

fn words(key : key, o : Ones) -> (idx[5][batch: B], idx[5][batch: B]) uses Rand =
  let (a, b) = split_key(key)
  (sample(a, o), sample(b, o))
"""
DIMS = {"B": 3}
DTYPES: tuple[Dtype, ...] = ("f64", "f32", "bf16")


@cache
def session(folder: Path, unrolled: bool, remat: Any = "store") -> Session:
    path = folder / "draws.psk"
    path.write_text(SOURCE, encoding="utf-8")
    return Session(str(path), mode="training", unroll_stack=unrolled, remat=remat)


def given(entry: str) -> dict[str, Any]:
    return {"o": np.ones((3, 5), dtype=int)}


def numbers(value: Value) -> list[list[Any]]:
    found: list[list[Any]] = []
    for _, leaf in leaves(value):
        assert isinstance(leaf, Tensor | IndexTensor)
        data = leaf.data.text.astype(float) if isinstance(leaf.data, Rounded) else np.asarray(leaf.data, dtype=float)
        found.append(data.ravel().tolist())
    return found


def on_torch(s: Session, entry: str, dtype: Dtype, *, optimize: bool, unroll: bool) -> list[list[Any]]:
    program = s.optimized(entry, DIMS).program if optimize else s.flat(entry)
    bound, values = prepare(program, entry, given(entry), DIMS, 4)
    compiled = compile_entry(program, entry, bound.env, dtype, unroll=unroll)
    return numbers(run_torch(compiled, {p.name: v for p, v in zip(bound.fn.params, values, strict=True)}))


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("entry", ["rows", "squares", "rows_back", "squares_back", "written", "words"])
def test_draws_are_the_exact_executors(entry: str, optimize: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    request = Request(given(entry), DIMS, 4, optimize=False)
    expected = numbers(session(folder, False).run_exact(entry, request, Options(bits=64)).value)
    assert len({x for leaf in expected for x in leaf}) > 2
    for dtype, unrolled, unroll in product(DTYPES, (False, True), (False, True)):
        s = session(folder, unrolled)
        assert on_torch(s, entry, dtype, optimize=optimize, unroll=unroll) == expected, (dtype, unrolled, unroll)


@pytest.mark.parametrize("way", ["rows", "squares"])
def test_the_backward_pass_has_the_masks_of_the_forward_pass(
    way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The functions are linear: their gradients at 1 are their values, whichever way residuals are kept."""
    folder = tmp_path_factory.getbasetemp()
    request = Request(given(way), DIMS, 4, optimize=False)
    options = Options(bits=64)
    value = numbers(session(folder, False).run_exact(way, request, options).value)
    for remat in ("store", "recompute"):
        assert numbers(session(folder, False, remat).run_exact(f"{way}_back", request, options).value) == value


def test_every_layer_draws_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The digits of the layers differ: none draws from the key of another."""
    s = session(tmp_path_factory.getbasetemp(), False)
    for entry, base in (("rows", 2), ("squares", 2), ("written", 4)):
        (found,) = numbers(s.run_exact(entry, Request(given(entry), DIMS, 4, optimize=False), Options(bits=64)).value)
        digits = {tuple(int(x) // base**k % base for x in found) for k in range(6 if base == 2 else 3)}
        assert len(digits) == (6 if base == 2 else 3)
