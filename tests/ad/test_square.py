"""Folds of functions whose accumulator and result have one type only where they are folded."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.ad.reverse import differentiate
from presk_rel.core.ir import Fold
from presk_rel.core.shapes import compatible_types
from presk_rel.core.verify import verify
from presk_rel.session import Session
from tests.cli.harness import presk

DIMS = """
const L : nat = 2
module Linear{In Out : dim} {
  param w : ℝ[In, Out]  init = xavier_uniform
  fn apply(x : ℝ[..., In]) -> ℝ[..., Out] = tanh(x · w)
}
module Net{D : dim} {
  use tower : stack{L}(Linear{D, D})
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = tower.apply(x)
}
model M = Net{3}
fn f(θ : params M, x : ℝ[batch: 2, 3]) -> params M = grad(λ θ. sum(M.apply(θ, x)^2))(θ)
"""
LEADS = """
const L : nat = 2
module Row{N M : dim} {
  param v : ℝ[batch: 2, M]  init = xavier_uniform
  fn apply(x : ℝ[..., N]) -> ℝ[batch: 2, M] = tanh(v * sum(x) + v^2)
}
module Net{D : dim} {
  use tower : stack{L}(Row{D, D})
  fn apply(x : ℝ[batch: 2, D]) -> ℝ[batch: 2, D] = tower.apply(x)
}
model M = Net{3}
fn f(θ : params M, x : ℝ[batch: 2, 3]) -> params M = grad(λ θ. sum(M.apply(θ, x)^2))(θ)
"""
TUPLES = """
const L : nat = 2
module Step{A B C : dim} {
  param w : ℝ[A, C]  init = xavier_uniform
  fn apply(s : (ℝ[..., A], ℝ[B], key), y : ℝ[..., 2*A]) -> (ℝ[..., C], ℝ[C], key) uses Rand =
    let (x, u, k)  = s
    let (k1, next) = split_key(k)
    (dropout(0.3, k1, x · w) * mean(u) + mean(y), sum(w) * (1 + positions_(u)), next)
  fn positions_(u : ℝ[B]) -> ℝ[C] = mean(u) * (real(positions(c: C)) : ℝ[C])
}
module Net{D : dim} {
  use deep : stack{2}(stack{L}(Step{D, D, D}))
  fn apply(x : ℝ[b: 2, D], y : ℝ[b: 2, 2*D], k : key) -> ℝ[b: 2, D] uses Rand =
    let (a, b, _) = deep.apply((x, (real(positions(c: D)) : ℝ[D]), k), y)
    a * b
}
model M = Net{3}
fn f(θ : params M, x : ℝ[b: 2, 3], y : ℝ[b: 2, 6], k : key) -> params M uses Rand =
  grad(λ θ. sum(M.apply(θ, x, y, k)^2))(θ)
"""
SECOND = DIMS.replace("fn f(", "fn g(") + (
    "fn f(θ : params M, x : ℝ[batch: 2, 3], v : params M) -> params M = jvp(λ θ. g(θ, x))(θ, v)\n"
)


@pytest.mark.parametrize("text", [DIMS, LEADS, TUPLES, SECOND], ids=["dims", "leads", "tuples", "second"])
@pytest.mark.parametrize("remat", ["store", "recompute"])
def test_their_gradients_are_those_of_the_calls(text: str, remat: str, tmp_path: Path) -> None:
    path = tmp_path / "p.psk"
    path.write_text(text, encoding="utf-8")
    run = ("run", str(path), "--entry", "f", "--mode", "training", "--bits", "96", "--remat", remat)
    folded = presk(*run)
    assert (folded.status, folded.err) == (0, "")
    assert folded.out == presk(*run, "--unroll-stack").out


def test_each_place_that_folds_has_a_version_in_its_own_dims(tmp_path: Path) -> None:
    path = tmp_path / "p.psk"
    path.write_text(DIMS, encoding="utf-8")
    program = differentiate(Session(str(path)).core)
    verify(program, "differentiate")
    folds = [b.op for f in program.functions.values() for b in f.bindings if isinstance(b.op, Fold)]
    assert "Linear.apply.at0" in {f.body for f in folds}
    for fold in folds:
        body = program.functions[fold.body]
        assert compatible_types(body.params[len(fold.stacked)].type, body.result), fold.body
