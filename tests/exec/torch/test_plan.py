"""The plan of a run: what becomes one kernel, what becomes none, and which memory serves again."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import presk_rel
from presk_rel.exec.torch import plan
from presk_rel.exec.torch.dispatch import dispatched

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"V": 7, "D": 8, "H": 2, "L": 2}
IMPORTED = {f"m.{k}": n for k, n in SMALL.items()}


def launched(handle: Any) -> list[str]:
    """The kernels of a bound call on drawn arguments, which gives what the unbound one gives."""
    given = {p.name: handle.example(p.name) for p in handle.function.params}
    expected = handle(**given)
    found = handle.bind(**given)()
    for a, b in zip(_leaves(expected), _leaves(found), strict=True):
        assert a.allclose(b, rtol=1e-9, atol=1e-12)
    seen = dispatched(handle.launch)
    assert len(seen) == handle.kernels
    return seen


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict | tuple):
        return [x for v in (tree.values() if isinstance(tree, dict) else tree) for x in _leaves(v)]
    return [tree]


def compiled(text: str, folder: Path, entry: str, **dims: int) -> Any:
    path = folder / "program.psk"
    path.write_text(text, encoding="utf-8")
    return presk_rel.load(path).compile(entry, dims, dtype="f64", tier="emit")


def source(handle: Any) -> str:
    found = handle.compiled.emitted.plan
    assert found is not None
    return found.source


# ---------------------------------------------------------------------------------------------------- one for several

WEIGHTS = """
module Three {
  param a, b, c : ℝ[4, 4]  init = xavier_uniform
  fn apply(x : ℝ[batch: B, n: 4]) -> ℝ[batch: B, n: 4] = tanh(x · a) * tanh(x · b) + tanh(x · c)
}
dim B
fn apart(x : ℝ[batch: B, n: 4], a : ℝ[4, 4], b : ℝ[4, 4], c : ℝ[4, 4]) -> ℝ[batch: B, n: 4] =
  tanh(x · a) * tanh(x · b) + tanh(x · c)
"""


def test_products_of_one_operand_with_a_trees_weights_are_one(tmp_path: Path):
    assert sorted(launched(compiled(WEIGHTS, tmp_path, "Three.apply", B=3))) == ["addcmul", "bmm", "tanh"]


def test_weights_that_lie_anywhere_are_multiplied_one_by_one(tmp_path: Path):
    seen = launched(compiled(WEIGHTS, tmp_path, "apart", B=3))
    assert seen.count("mm") == 3
    assert seen.count("tanh") == 3


def test_q_k_and_v_are_one_product_and_their_gradients_are():
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", IMPORTED)
    loss = launched(program.compile("loss", {"B": 2, "T": 3}, dtype="f64", tier="emit", unroll=True))
    assert loss.count("baddbmm") >= SMALL["L"]
    assert loss.count("addmm") == 3 * SMALL["L"]  # wo, l1, l2


OF_X = """
fn g(θ : params Three, x : ℝ[batch: B, n: 4]) -> ℝ[batch: B, n: 4] = grad(λ x. sum(Three.apply(θ, x)))(x)
"""


def test_products_that_are_added_up_are_one(tmp_path: Path):
    seen = launched(compiled(WEIGHTS + OF_X, tmp_path, "g", B=3))
    assert len([s for s in seen if s in ("mm", "addmm", "bmm", "addbmm")]) == 2


@pytest.mark.parametrize("layers", [1, 3])
def test_what_is_done_to_every_leaf_is_done_once(layers: int):
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", {**IMPORTED, "m.L": layers})
    step = program.compile("adamw.step", {"T": 3}, dtype="f64", tier="emit")
    assert step.kernels < 50
    text = source(step)
    assert len(re.findall(r"\bdot\(", text)) == 1
    assert step.compiled.emitted.plan.over[0][0] == 0  # the new parameters may be written over the old ones


# ------------------------------------------------------------------------------------------------------ none for some


def test_what_is_stacked_is_computed_in_the_stack(tmp_path: Path):
    text = "fn f(x : ℝ[a: 3]) -> ℝ[a: 6] = concat(axis a, tanh(x), exp(x))\n"
    assert sorted(launched(compiled(text, tmp_path, "f"))) == ["exp", "tanh"]


def test_results_that_are_inputs_are_copied(tmp_path: Path):
    text = "fn f(x : ℝ[a: 3]) -> (ℝ[a: 3], ℝ[a: 3]) = (x, x)\n"
    assert launched(compiled(text, tmp_path, "f")) == ["copy_", "copy_"]


# ------------------------------------------------------------------------------------------------------------- memory


def test_buffers_serve_again(tmp_path: Path):
    chain = "x"
    for _ in range(12):
        chain = f"sin(cos({chain}))"
    handle = compiled(f"fn f(x : ℝ[a: 50]) -> ℝ[] = sum({chain})\n", tmp_path, "f")
    launched(handle)
    assert len(re.findall(r"^    p\d+ = torch.empty", source(handle), re.MULTILINE)) == 2


def test_without_a_plan_the_file_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "LIMIT", 5)
    grad = presk_rel.load(EXAMPLES / "mlp.psk").compile("mse_grad", {"B": 2, "D": 4}, dtype="f64", tier="emit")
    assert grad.compiled.emitted.plan is None
    launched(grad)
    assert grad.flats == ()


def test_bf16_runs_by_the_plan():
    program = presk_rel.load(EXAMPLES / "mlp.psk")
    grad = program.compile("mse_grad", {"B": 2, "D": 4}, dtype="bf16", tier="emit")
    given = {p.name: grad.example(p.name) for p in grad.function.params}
    found = grad.bind(**given)()
    assert found["l1"]["w"].dtype == torch.bfloat16
    exact = program.compile("mse_grad", {"B": 2, "D": 4}, dtype="f64", tier="emit")(**given)
    assert (found["l1"]["w"].double() - exact["l1"]["w"]).abs().max() < 0.05


def test_products_are_added_up_in_bf16_too(tmp_path: Path):
    (tmp_path / "of_x.psk").write_text(WEIGHTS + OF_X, encoding="utf-8")
    program = presk_rel.load(tmp_path / "of_x.psk")
    handle = program.compile("g", {"B": 3}, dtype="bf16", tier="emit")
    assert "addbmm" in launched(handle)
    given = {p.name: handle.example(p.name) for p in handle.function.params}
    exact = program.compile("g", {"B": 3}, dtype="f64", tier="emit")(**given)
    assert (handle(**given).double() - exact).abs().max() < 0.05 * max(1, exact.abs().max())


def test_a_stack_of_constants_is_there_before_the_run(tmp_path: Path):
    """A second derivative has stacks of zeros: slices of constants, which the file makes beside its functions."""
    text = """
const L : nat = 3
dim B

module Step {
  param w : ℝ[2]  init = ones
  fn apply(x : ℝ[batch: B, model: 2], a : ℝ[batch: B, model: 2]) -> ℝ[batch: B, model: 2] = x + tanh(exp(a) * w) + a * x
}

module Steps {
  use steps : stack{L}(Step)
  fn apply(x : ℝ[batch: B, model: 2], a : ℝ[batch: B, model: 2]) -> ℝ[batch: B, model: 2] = steps.apply(x, a)
}

fn slope(θ : params Steps, x : ℝ[batch: B, model: 2], a : ℝ[batch: B, model: 2]) -> ℝ[batch: B, model: 2] =
  grad(λ a. mean(Steps.apply(θ, x, a)^2))(a)

fn mixed(θ : params Steps, x : ℝ[batch: B, model: 2], a : ℝ[batch: B, model: 2]) -> ℝ[batch: B, model: 2] =
  grad(λ x. sum(slope(θ, x, a)^2))(x)
"""
    handle = compiled(text, tmp_path, "mixed", B=2)
    assert "= torch.unbind(c" in handle.source
    assert launched(handle)
