"""`presk conform` compares the exported file too, in f64, at the same inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from presk_rel.session import Session
from tests.cli.harness import MLP, presk, presk_json

SHAPES = ("--dim", "B=2", "--dim", "D=3")

PROGRAM = """
const V : nat = 4
module Lin{D : dim} {
  param w : ℝ[D, D]  init = xavier_uniform
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = tanh(x · w)
  fn energy(x : ℝ[..., D]) -> ℝ[] = sum(apply(x)^2)
}
module Net{D : dim} {
  use deep : stack{2}(stack{3}(Lin{D}))
  use none : stack{0}(Lin{D})
  use both : Lin{D} ∘ Lin{D}
  fn apply(x : ℝ[..., D]) -> ℝ[..., D] = none.apply(deep.apply(both.apply(x)))
}
dim N
fn trees{D : dim}(net : Net{D}, θ : params net, x : ℝ[n: N, D], k : key, a : f64 = 0.5)
    -> (params net, (idx[V][N], bool[n: N, D]), key, f64) =
  (grad(λ θ. sum(net.apply(θ, x)^2))(θ), (argmax(pad(x)), x > 0), k, a)
fn pad{D : dim}(x : ℝ[n: N, D]) -> ℝ[n: N, V] = ein[n, v]((x : ℝ[n: N, d: D]) * (table(x) : ℝ[d: D, v: V]))
fn table{D : dim}(x : ℝ[n: N, D]) -> ℝ[D, V] =
  ein[d, v]((mean(axis n, x) : ℝ[d: D]) * (real(positions(v: V)) : ℝ[v: V]))
fn draws(k : key, x : ℝ[n: N, V]) -> idx[V][n: N] uses Rand = sample(k, x)
fn drops(k : key, x : ℝ[n: N, V]) -> ℝ[n: N, V] uses Rand = dropout(0.5, k, x)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.psk"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def test_the_line_says_how_far_both_are() -> None:
    said = presk("conform", MLP, "--entry", "mse_grad", *SHAPES).out
    assert said.startswith("conforms: mse_grad on cpu in f64")
    assert "; the exported file within " in said


@pytest.mark.parametrize("dtype", ["f64", "f32", "bf16"])
def test_the_export_runs_in_f64_whatever_the_type(dtype: str) -> None:
    found = presk_json("conform", MLP, "--entry", "mse_grad", *SHAPES, "--dtype", dtype).document["export"]
    assert found["conforms"] is True
    assert found["bound"] == 1e-12
    assert found["relative"] < 1e-15


def test_trees_tuples_stacks_and_functions_of_modules(program: str) -> None:
    ran = presk_json("conform", program, "--all", "--dim", "N=3")
    assert ran.status == 0
    found = {r["entry"]: r["export"] for r in ran.document["all"]}
    compared = {n for n, e in found.items() if e["conforms"]}
    assert {"Lin.apply", "Lin.energy", "Net.apply", "trees", "pad", "table", "drops"} <= compared
    assert found["draws"]["reason"] == "PyTorch draws by its own generator"
    assert found["Net.init"]["reason"] == "the exported file has no such function"


def test_what_drops_is_not_compared_in_training(program: str) -> None:
    ran = presk_json("conform", program, "--entry", "drops", "--dim", "N=3", "--mode", "training")
    assert ran.document["export"]["conforms"] is None


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("ŷ - y", "ŷ + y", "; the exported file within "),
        ("ŷ - y", "ŷ - z", "; the exported file fails: NameError: name 'z' is not defined"),
        (".mean()", ".mean(dim=0)", "; the exported file fails: "),
        ("ŷ - y", "(ŷ - y) / 0", "; the exported file differs: at "),
    ],
)
def test_an_exported_file_that_is_wrong_does_not_conform(
    was: str, now: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = Session.exported

    def wrong(session: Session) -> object:
        made = exported(session)
        assert was in made.source
        return replace(made, source=made.source.replace(was, now))

    monkeypatch.setattr(Session, "exported", wrong)
    ran = presk("conform", MLP, "--entry", "mse", *SHAPES)
    assert ran.status == 1
    assert ran.out.startswith("does NOT conform: mse")
    assert said in ran.out


def test_one_function_or_all_of_them() -> None:
    assert presk("conform", MLP, "--all", "--entry", "mse").status == 2


def test_a_dim_that_no_function_has_is_refused_with_all() -> None:
    ran = presk_json("conform", MLP, "--all", "--dim", "Q=3", "--arg", "z=1")
    assert [d["code"] for d in ran.document["diagnostics"]] == ["E7010", "E7010"]
    assert ran.status == 1
