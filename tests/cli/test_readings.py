"""`--mode` and `--unroll-stack`: two readings of one program, and two forms of one stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.harness import presk, presk_json

SOURCE = """\
const D = 2
dim B
type Acc = (ℝ[batch: B, model: D], key)

module Layer {
  param w : ℝ[model: D, D]  init = xavier_uniform
  fn apply(s : Acc) -> Acc uses Rand =
    let (x, k) = s
    let (k1, k2) = split_key(k)
    (x + dropout(0.5, k1, x · w), k2)
}

module Net {
  use layers : stack{3}(Layer)
  fn apply(x : ℝ[batch: B, model: D], k : key) -> ℝ[batch: B, model: D] uses Rand =
    let (y, k2) = layers.apply((x, k))
    y
}

fn loss(θ : params Net, x : ℝ[batch: B, model: D], k : key) -> ℝ[] uses Rand =
  mean(Net.apply(θ, x, k)^2)

fn gradient(θ : params Net, x : ℝ[batch: B, model: D], k : key) -> params Net uses Rand =
  grad(λ θ. loss(θ, x, k))(θ)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "net.psk"
    file.write_text(SOURCE, encoding="utf-8")
    return str(file)


def run(path: str, *options: str) -> object:
    return presk_json("run", path, "--entry", "gradient", "--dim", "B=2", "--digits", "12", *options).document["result"]


def test_dump_prints_either_reading(path: str) -> None:
    inference, training = (presk("dump", path, "--stage", "core", "--mode", m).out for m in ("inference", "training"))
    assert presk("dump", path, "--stage", "core").out == inference
    assert "dropout_mask" not in inference
    assert "dropout_mask 0.5 k1, " in training


def test_dump_prints_either_form_of_a_stack(path: str) -> None:
    folded, unrolled = (presk("dump", path, "--stage", "core", *o).out for o in ((), ("--unroll-stack",)))
    assert folded.count("fold 3 Layer.apply") == 1 and "slice_params" not in folded
    assert unrolled.count("call Layer.apply") == 3 and "fold" not in unrolled


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_both_forms_give_the_same_numbers(path: str, mode: str) -> None:
    folded = run(path, "--no-opt", "--mode", mode)
    assert folded == run(path, "--no-opt", "--mode", mode, "--unroll-stack")


def test_the_readings_differ(path: str) -> None:
    assert run(path, "--no-opt", "--mode", "training") != run(path, "--no-opt")


def test_effects_are_those_of_the_program_as_written(tmp_path: Path) -> None:
    file = tmp_path / "f.psk"
    file.write_text("fn f(x : ℝ[], k : key) -> ℝ[] =\n  dropout(0.1, k, x)\n", encoding="utf-8")
    checked = presk_json("check", str(file))
    assert [d["code"] for d in checked.document["diagnostics"]] == ["E4001"]
