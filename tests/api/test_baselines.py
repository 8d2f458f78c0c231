"""What `bench` compares with computes the same gradients: eager torch, `torch.compile`, and JAX."""

import functools
import importlib
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import presk_rel
from presk_rel.api.baselines import compiled, eager, jitted
from presk_rel.api.bench import BASELINES, bench
from presk_rel.diagnostics import PreskError
from presk_rel.exec.torch.dispatch import generated

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"V": 7, "D": 4, "H": 2, "L": 2}
CASES = [
    ("mlp.psk", "mse_grad", {"B": 2, "D": 3}, {}),
    ("tour/deep.psk", "loss_grad", {"B": 2, "D": 3}, {}),
    ("tour/hinge.psk", "hinge_grad", {"N": 5, "D": 3}, {}),
    ("tour/linear_regression.psk", "loss_grad", {"N": 5, "D": 3}, {}),
    ("train_minigpt.psk", "loss_grad", {"B": 2, "T": 3}, {f"m.{k}": v for k, v in SMALL.items()}),
    ("gpt.psk", "loss_grad", {"B": 1, "T": 3}, SMALL),
]
PLAIN = CASES[:4]


def flat(tree: Any) -> list[torch.Tensor]:
    """The gradients by name; names end the same whoever owns them."""
    if isinstance(tree, dict):
        return [x for k in sorted(tree) for x in flat(tree[k])]
    return [x for part in tree for x in flat(part)] if isinstance(tree, tuple | list) else [tree]


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(np.allclose(x.detach(), y, rtol=1e-11, atol=1e-12) for x, y in zip(a, b))


@pytest.mark.parametrize(("file", "entry", "dims", "consts"), CASES, ids=[c[0] for c in CASES])
def test_torch_compile_takes_the_whole_function(
    file: str, entry: str, dims: dict[str, int], consts: dict[str, int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    program = presk_rel.load(EXAMPLES / file, consts)
    handle = program.compile(entry, dims, dtype="f64", tier="emit")
    assert same(flat(eager(program, handle)()), [x.detach() for x in flat(compiled(program, handle)())])


@pytest.fixture
def numpy_as_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy in JAX's place: the operations of most rows have the same names."""
    erf = np.vectorize(math.erf)
    nn = SimpleNamespace(
        sigmoid=lambda x: 1 / (1 + np.exp(-x)),
        relu=lambda x: np.maximum(x, 0),
        gelu=lambda x, approximate: x * (1 + erf(x / math.sqrt(2))) / 2,
        softmax=None,
        log_softmax=None,
    )
    jax = SimpleNamespace(
        numpy=np,
        nn=nn,
        lax=SimpleNamespace(erf=erf, rsqrt=lambda x: 1 / np.sqrt(x)),
        config=SimpleNamespace(update=lambda *_: None),
        jit=lambda f: f,
        block_until_ready=lambda x: x,
    )
    monkeypatch.setitem(sys.modules, "jax", jax)  # type: ignore[arg-type]


@pytest.mark.parametrize(("file", "entry", "dims", "consts"), PLAIN, ids=[c[0] for c in PLAIN])
def test_the_traced_graph_is_translated(
    file: str, entry: str, dims: dict[str, int], consts: dict[str, int], numpy_as_jax: None
):
    program = presk_rel.load(EXAMPLES / file, consts)
    handle = program.compile(entry, dims, dtype="f64", tier="emit")
    found = list(jitted(program, handle)())
    for x in flat(eager(program, handle)()):
        near = [k for k, y in enumerate(found) if y.shape == tuple(x.shape) and same([x], [y])]
        assert near
        found.pop(near[0])
    assert not found


def refused(against: str) -> str:
    program = presk_rel.load(EXAMPLES / "mlp.psk")
    handle = program.compile("mse_grad", {"B": 2, "D": 3}, tier="emit")
    with pytest.raises(PreskError) as error:
        bench(program, handle, (against,), 1)
    assert error.value.exit_status == 3
    return f"{error.value.diagnostics[0].code} {error.value.diagnostics[0].message}"


def test_what_cannot_be_compared_with_is_said(numpy_as_jax: None, monkeypatch: pytest.MonkeyPatch):
    assert refused("theano") == "E7105 there is no baseline `theano` here; there are eager, compile, jax"
    monkeypatch.setattr("presk_rel.api.jax_baseline.table", lambda _: {})
    assert refused("jax").startswith("E7106 the baseline jax has no translation of add.Tensor, ")
    monkeypatch.setitem(sys.modules, "jax", None)  # type: ignore[arg-type]
    assert refused("jax") == "E7106 the baseline jax needs JAX, which is not installed here"


GENERATED = """
def helper(args):
    cpp_fused_before_0(args)


def call(self, args):
    buf0 = empty_strided_cpu((2, 2), (2, 1), torch.float32)
    # Topologically Sorted Source Nodes: extern_kernels.mm(
    extern_kernels.mm(arg0_1, arg1_1, out=buf0)
    cpp_fused_add_1(buf0, arg2_1)
    buf2 = torch.ops.aten.sort.stable(buf0)
    triton_poi_fused_add_0.run(buf0, 4, stream=stream0)
    assert_size_stride(buf0, (2, 2), (2, 1))
    return (buf0, )
"""


def test_the_kernels_of_compiled_code_are_read_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "code.py"
    path.write_text(GENERATED)
    cache: Any = importlib.import_module("torch._inductor.codecache").PyCodeCache
    modules: list[Any] = []
    monkeypatch.setattr(cache, "modules", modules)
    assert generated(lambda: modules.append(SimpleNamespace(__file__=str(path)))) == 4
    assert generated(lambda: None) is None


TWO_TREES = """
dim N
dim D
module Net{D : dim} {
  param w1 : ℝ[D, D]  init = xavier_uniform
  param w2 : ℝ[D]     init = normal(std = 1)
  fn apply(x : ℝ[n: N, d: D]) -> ℝ[n: N] = tanh((x · w1 : ℝ[n: N, e: D])) · w2
}
model M = Net{D}
fn loss(θ : params M, x : ℝ[n: N, d: D]) -> ℝ[] = mean(M.apply(θ, x)^2)
fn loss_grad(θ : params M, x : ℝ[n: N, d: D]) -> params M = grad(λ θ. loss(θ, x))(θ)
fn along(θ : params M, v : params M, x : ℝ[n: N, d: D]) -> params M = jvp(λ θ. loss_grad(θ, x))(θ, v)
fn sharp(θ : params M, x : ℝ[n: N, d: D]) -> params M = grad(λ θ. sum(loss_grad(θ, x).w2^2))(θ)
"""


@pytest.mark.parametrize("entry", ["along", "sharp"])
def test_the_baseline_of_a_higher_derivative_computes_it(entry: str, tmp_path: Path):
    """Two trees of one module are two; a gradient inside another derivative is differentiated."""
    path = tmp_path / "two.psk"
    path.write_text(TWO_TREES, encoding="utf-8")
    program = presk_rel.load(path)
    handle = program.compile(entry, {"N": 3, "D": 4}, dtype="f64", tier="emit")
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    run = eager(program, handle)
    for _ in range(2):
        assert same(flat(run()), flat(handle()))


def test_what_a_compiler_makes_is_counted_in_the_first_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    path, made, modules = tmp_path / "made.py", list[int](), list[Any]()
    path.write_text(GENERATED)
    monkeypatch.setattr(importlib.import_module("torch._inductor.codecache").PyCodeCache, "modules", modules)

    def run() -> None:
        if not made:
            modules.append(SimpleNamespace(__file__=str(path)))
        made.append(1)

    monkeypatch.setitem(BASELINES, "compile", lambda *_: run)
    program = presk_rel.load(EXAMPLES / "mlp.psk")
    found = bench(program, program.compile("mse", {"B": 2, "D": 3}, tier="emit"), ("compile",), 1)
    assert found.kernels["compile"] == 4


@pytest.mark.parametrize("side", [eager, compiled])
def test_a_function_of_a_module_is_that_of_a_module_that_owns_the_parameters(
    side: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch, "compile", lambda f, **_: f)
    program = presk_rel.load(EXAMPLES / "mlp.psk")
    handle = program.compile("MLP.apply", {"D": 4, "hidden": 3}, dtype="f64", tier="emit")
    expected = handle(*(handle.example(p.name) for p in handle.function.params))
    assert torch.allclose(side(program, handle)(), expected, rtol=1e-14)
