"""presk from Python: check, compile, bind, parameters, `to_torch` in a training loop, and how things show."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import presk_rel
from presk_rel.diagnostics import PreskError
from presk_rel.exec.torch.dispatch import dispatched

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMS = {"B": 2, "D": 4}
SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}


def mlp() -> presk_rel.Program:
    return presk_rel.load(EXAMPLES / "mlp.psk")


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, presk_rel; print([m for m in ('torch', 'numpy', 'egglog', 'z3', 'lark') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_gradient():
    grad = mlp().compile("mse_grad", DIMS, dtype="f64")
    x, y = grad.example("x"), grad.example("y")
    found = grad(grad.params["θ"], x, y=y)
    assert {k: list(v) for k, v in found.items()} == {"l1": ["w", "b"], "l2": ["w", "b"]}
    assert found["l1"]["w"].shape == (4, 16)
    assert grad.grads is found
    assert grad.bind(θ=grad.params["θ"], x=x)(y=y)["l1"]["b"].equal(found["l1"]["b"])


def test_a_tree_may_be_given_flat():
    value = mlp().compile("mse", DIMS)
    tree = value.params["θ"]
    flat = {f"{a}.{b}": t for a, part in tree.items() for b, t in part.items()}
    x, y = value.example("x"), value.example("y")
    assert value(flat, x, y).equal(value(tree, x, y))


def test_parameters_are_views_of_one_arena():
    value = mlp().compile("mse", DIMS).bind()
    tree, arena = value.params["θ"], value.arena("θ")
    value.bind(θ=tree, x=value.example("x"), y=value.example("y"))
    assert arena.numel() == 4 * 16 + 16 + 16 * 4 + 4
    before = value().clone()
    arena.zero_()
    assert tree["l2"]["w"].abs().sum() == 0
    assert not value().equal(before)


def test_a_bound_call_writes_where_it_wrote_before():
    grad = mlp().compile("mse_grad", DIMS, dtype="f64")
    θ, x, y = grad.params["θ"], grad.example("x"), grad.example("y")
    expected = grad(θ, x, y)
    found = grad.bind(θ=θ, x=x, y=y)()
    assert all(found[a][b].allclose(expected[a][b], rtol=1e-12) for a, part in expected.items() for b in part)
    assert [f.numel() for f in grad.flats] == [148]
    assert grad.flats[0][:64].view(4, 16).equal(found["l1"]["w"])
    before = found["l1"]["w"].clone()
    grad.bind(x=2 * x)
    assert grad() is found
    assert not found["l1"]["w"].equal(before)
    assert found["l1"]["w"].allclose(grad(θ, 2 * x, y)["l1"]["w"], rtol=1e-12)
    assert found["l1"]["w"].data_ptr() != grad(θ, x, y)["l1"]["w"].data_ptr()


def test_trees_in_one_flat_tensor_are_shared_and_others_copied():
    value = mlp().compile("mse", DIMS)
    x, y = value.example("x"), value.example("y")
    own = {a: {b: t.clone() for b, t in part.items()} for a, part in value.params["θ"].items()}
    copied = value.bind(θ=own, x=x, y=y)().clone()
    own["l1"]["w"].zero_()
    assert value().equal(copied)
    value.bind(θ=value.params["θ"])()
    value.arena("θ").zero_()
    assert value().allclose((y**2).mean())


@pytest.mark.parametrize(
    ("dtype", "tier", "far"), [("f64", "auto", 1e-12), ("f64", "emit", 1e-12), ("bf16", "emit", 1e-2)]
)
def test_an_optimizer_advances_its_parameters_and_state(dtype: Any, tier: Any, far: float):
    """Written over them by a plan, where only results are rounded to what they are kept in, too."""
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", {f"m.{k}": n for k, n in SMALL.items()})
    step = program.compile("adamw.step", {"T": 3}, dtype=dtype, tier=tier)
    grad = program.compile("loss_grad", {"B": 2, "T": 3}, dtype=dtype, tier=tier)
    θ, batch = grad.params["θ"], grad.example("batch")
    g = grad.bind(θ=θ, batch=batch)()
    zero = tuple(_mapped(θ, torch.zeros_like) for _ in range(2))
    expected = step(θ, zero, g, 1, 100)
    step.bind(θ=θ, s=zero, g=g, t=1, total=100).advance()
    assert θ["head"].allclose(expected[0]["head"], rtol=far)
    second = step(θ, expected[1], grad(), 2, 100)
    step.bind(t=2).advance()
    assert θ["tok"].allclose(second[0]["tok"], rtol=far)
    bound, _, copies = step._advance
    assert bool(copies) == (tier == "auto")
    assert len(dispatched(bound.launch)) == step.kernels


def test_an_optimizer_in_bf16_converts_trees_not_leaves():
    """Four trees come in, three go out; what is between is as in f32."""
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", {f"m.{k}": n for k, n in SMALL.items()})
    kernels = {d: program.compile("adamw.step", {"T": 3}, dtype=d, tier="emit").kernels for d in ("f32", "bf16")}
    assert kernels["bf16"] == kernels["f32"] + 7


def _mapped(tree: Any, f: Any) -> Any:
    return {k: _mapped(v, f) for k, v in tree.items()} if isinstance(tree, dict) else f(tree)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"x": torch.zeros(3, 4)}, ValueError, r"`x` : ℝ\[batch: B, model: D\] has shape \[2, 4\], not \[3, 4\]"),
        ({"x": None}, TypeError, r"`x` : ℝ\[batch: B, model: D\] cannot be a NoneType"),
        ({"x": torch.zeros(2, 4) * 1j}, TypeError, r"`x` : ℝ\[batch: B, model: D\] cannot be complex"),
        ({"z": torch.zeros(())}, TypeError, "no parameter `z`"),
        ({"θ": {"l1": {}}}, TypeError, r"no part `l1.w`"),
    ],
)
def test_wrong_arguments_are_refused_by_name(change: dict[str, Any], error: type[Exception], words: str):
    value = mlp().compile("mse", DIMS)
    given = {"θ": value.params["θ"], "x": value.example("x"), "y": value.example("y"), **change}
    with pytest.raises(error, match=words):
        value(**given)


def test_numbers_are_doubles_and_arrays_lie_as_they_like(tmp_path: Path):
    path = tmp_path / "same.psk"
    path.write_text("fn same(x : ℝ[3]) -> ℝ[3] = x\n", encoding="utf-8")
    same = presk_rel.load(path).compile("same", dtype="f64")
    assert same([0.1, 0.2, 0.3]).tolist() == [0.1, 0.2, 0.3]
    assert same(np.array([0.1, 0.2, 0.3])[::-1]).tolist() == [0.3, 0.2, 0.1]
    assert same(torch.tensor([1, 2, 3])).tolist() == [1.0, 2.0, 3.0]


def test_a_refused_binding_changes_nothing():
    value = mlp().compile("mse", DIMS, dtype="f64")
    value.bind(**{name: value.example(name) for name in ("θ", "x", "y")})
    before = value().clone()
    with pytest.raises(ValueError):
        value.bind(x=torch.ones(2, 4), y=torch.ones(3, 4))
    assert value().equal(before)


def test_a_call_returns_its_own_value_among_others():
    """Another thread calls the handle between computing and returning."""
    value = mlp().compile("mse", DIMS, dtype="f64")
    θ, x, y = value.params["θ"], value.example("x"), value.example("y")
    expected = value(θ, x, y)
    assert not expected.equal(value(θ, x + 1, y))

    def calls(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not type(value).__call__.__code__:
            return None
        if event == "line" and value.result is not None:
            value.result = None
        return calls

    sys.settrace(calls)
    try:
        found = value(θ, x, y)
    finally:
        sys.settrace(None)
    assert found.equal(expected)


def test_nothing_is_drawn_before_it_is_asked_for():
    """A normal draw takes 8 µs, and who compiles mostly has data."""
    handle = mlp().compile("mse_grad", {"B": 10**10, "D": 4})
    assert handle.params["θ"]["l1"]["w"].shape == (4, 16)
    with pytest.raises(PreskError, match="drawing the 40,000,000,000 entries of `x`"):
        handle.example("x")


def test_a_missing_argument_is_refused():
    with pytest.raises(TypeError, match="`θ` is missing"):
        mlp().compile("mse", DIMS)()


def test_a_program_with_errors_says_so(tmp_path: Path):
    path = tmp_path / "wrong.psk"
    path.write_text("fn f(x : ℝ[a: 2]) -> ℝ[a: 3] = x\n", encoding="utf-8")
    program = presk_rel.load(path)
    assert [d.severity for d in program.check()] == ["error"]
    with pytest.raises(PreskError):
        program.compile("f")
    assert "1 error" in repr(program)


# ------------------------------------------------------------------------------------------------------------ training


def test_a_training_loop_learns():
    torch.manual_seed(0)
    module = mlp().compile("mse", {"B": 16, "D": 4}).to_torch()
    x = torch.randn(16, 4)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    losses: list[float] = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = module(x, x.roll(1, 1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_gradients_are_those_of_autograd_on_the_same_code():
    value = mlp().compile("mse", DIMS, dtype="f64")
    module = value.to_torch()
    x = value.example("x").requires_grad_()
    y = value.example("y")
    (3 * module(x, y)).backward()
    tree = {a: {b: t.clone().requires_grad_() for b, t in p.items()} for a, p in value.params["θ"].items()}
    x2 = value.example("x").requires_grad_()
    inputs = [t for name, v in (("θ", tree), ("x", x2), ("y", y)) for t in value.leaves(name, v)]
    (3 * value.compiled.generated(tuple(inputs))[0]).backward()
    assert torch.allclose(module.θ.l1.w.grad, tree["l1"]["w"].grad, rtol=1e-12, atol=1e-14)
    assert torch.allclose(x.grad, x2.grad, rtol=1e-12, atol=1e-14)


def test_a_tensor_valued_function_under_autograd():
    program = mlp()
    module = program.compile(
        "MLP.apply", {"D": 3, "hidden": 5}, like={"x": torch.zeros(2, 2, 3)}, dtype="f64"
    ).to_torch()
    x = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module, (x,))


TWO = """
fn both(x : ℝ[a: 3], w : ℝ[a: 3]) -> (ℝ[a: 3], ℝ[]) = (exp(x) * w, sum(x * x * w))
"""


def test_results_that_nothing_is_made_of_have_no_cotangent(tmp_path: Path):
    path = tmp_path / "two.psk"
    path.write_text(TWO, encoding="utf-8")
    module = presk_rel.load(path).compile("both", dtype="f64").to_torch()
    x, w = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    first, second = module(x, w)
    first.sum().backward(retain_graph=True)
    assert x.grad.allclose((x.exp() * w).detach())
    second.backward()
    assert x.grad.allclose((x.exp() * w + 2 * x * w).detach())
    assert torch.autograd.gradcheck(module, (x, w))


def test_the_gradient_does_not_compute_the_value_again(tmp_path: Path):
    path = tmp_path / "two.psk"
    path.write_text(TWO, encoding="utf-8")
    module = presk_rel.load(path).compile("both", dtype="f64").to_torch()
    x, w = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    found = module(x, w)
    backward = dispatched(lambda: torch.autograd.backward(found, [torch.ones_like(f) for f in found]))
    assert "exp" not in backward
    assert "exp" in dispatched(lambda: module(x, w))
    with torch.no_grad():
        assert not module(x, w)[0].requires_grad


def test_a_function_may_be_lowered_in_another_way():
    program = presk_rel.load(EXAMPLES / "gpt.psk", SMALL)
    folded, unrolled = (program.compile("loss", {"B": 1, "T": 3}, unroll=u) for u in (False, True))
    assert "for " in folded.source
    assert "for " not in unrolled.source
    training = program.compile("loss", {"B": 1, "T": 3}, mode="training")
    assert "support.dropout_mask" in training.source
    assert "support.dropout_mask" not in folded.source


def test_a_gpt_with_dropout_draws_from_its_key():
    program = presk_rel.load(EXAMPLES / "gpt.psk", SMALL, mode="training")
    loss = program.compile("loss", {"B": 1, "T": 3}, dtype="f64")
    module = loss.to_torch()
    batch = loss.example("batch")
    first, again, other = (module(k, batch) for k in (1, 1, 2))
    assert first.equal(again)
    assert not first.equal(other)
    first.backward()
    assert module.θ.blocks.attn.wq.w.grad.abs().sum() > 0


# ------------------------------------------------------------------------------------------------------------- showing


def test_how_a_handle_shows():
    grad = mlp().compile("mse_grad", DIMS)
    assert repr(grad) == (
        "mse_grad{D B}(θ : params MLP{D, 4*D}, x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D]) "
        "-> params MLP{D, 4*D}\n  C∞ in θ, C∞ in x, C∞ in y\n  10 kernels in f32 on cpu, B = 2, D = 4"
    )
    page = grad._repr_html_()
    assert "<th>kernels</th><td>10 in f32 on cpu</td>" in page
    assert "&lt;" not in page or "<script" not in page
    assert "C∞ in θ" in mlp()._repr_html_()


def test_the_source_runs_alone():
    value = mlp().compile("mse", DIMS)
    namespace: dict[str, Any] = {}
    exec(value.source, namespace)
    inputs = [t for n in ("θ", "x", "y") for t in value.leaves(n, value.example(n))]
    found = value(value.params["θ"], value.example("x"), value.example("y"))
    assert torch.allclose(namespace["entry"](tuple(inputs))[0], found, rtol=1e-6)
