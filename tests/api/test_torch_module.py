"""`to_torch()` in the rest of PyTorch: second derivatives, `torch.func`, `torch.compile`, other types and devices."""

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

import presk_rel
from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import arguments
from presk_rel.exec.values import Tensor
from presk_rel.session import Request
from tests.api.test_api import DIMS, EXAMPLES, SMALL, mlp


def scored() -> tuple[Any, Any, Any]:
    """A scalar's module, and its arguments."""
    torch.manual_seed(0)
    module = mlp().compile("mse", DIMS, dtype="f64").to_torch()
    x, y = (torch.randn(2, 4, dtype=torch.float64) for _ in range(2))
    return module, x.requires_grad_(), y


def plainly(module: Any, x: Any, y: Any) -> Any:
    """The same value as torch's own operations."""
    hidden = torch.nn.functional.gelu(x @ module.θ.l1.w + module.θ.l1.b)
    return (hidden @ module.θ.l2.w + module.θ.l2.b - y).pow(2).mean()


@pytest.fixture(scope="module")
def smooth(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("smooth") / "smooth.psk"
    text = "fn f(x : ℝ[a: 3], w : ℝ[a: 3]) -> ℝ[] = sum(exp(x * w) * x)\n"
    path.write_text(text + "fn g(x : ℝ[a: 3], w : ℝ[a: 3]) -> ℝ[a: 3] = exp(x * w) * x\n", encoding="utf-8")
    return presk_rel.load(path)


@pytest.mark.parametrize("entry", ["f", "g"])
def test_modules_are_differentiated_again(smooth: Any, entry: str):
    torch.manual_seed(1)
    module = smooth.compile(entry, dtype="f64").to_torch()
    x, w = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradgradcheck(module, (x, w))

    def plain(x: Any, w: Any) -> Any:
        found = torch.exp(x * w) * x
        return found.sum() if entry == "f" else found

    def third(f: Any) -> Any:
        found = f(x, w).sum()
        for _ in range(2):
            (found,) = torch.autograd.grad(found, x, create_graph=True)
            found = found.square().sum()
        return torch.autograd.grad(found, w)[0]

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.randn_like(x))
        pushed = [forward_ad.unpack_dual(f(dual, w)).tangent for f in (module, plain)]
    assert torch.allclose(*pushed, rtol=1e-12)

    expected = third(plain)
    assert torch.allclose(third(module), expected, rtol=1e-11)


def test_a_gradient_penalty():
    """Of a norm of the slope: its gradient goes through presk's second derivative."""
    module, x, y = scored()
    found: list[list[Any]] = []
    for f in (module, lambda x, y: plainly(module, x, y)):
        (slope,) = torch.autograd.grad(f(x, y), x, create_graph=True)
        penalty = (slope.norm() - 1).square()
        found.append(list(torch.autograd.grad(penalty, [*module.parameters()], allow_unused=True)))
    for mine, theirs in zip(*found, strict=True):
        assert torch.allclose(mine, torch.zeros_like(mine) if theirs is None else theirs, rtol=1e-11, atol=1e-13)


def test_modules_under_torch_func():
    module, x, y = scored()
    x = x.detach()
    parameters = {n: p.detach() for n, p in module.named_parameters()}

    def loss(parameters: Any, x: Any) -> Any:
        return torch.func.functional_call(module, parameters, (x, y))

    found = torch.func.grad(loss)(parameters, x)
    for name, p in module.named_parameters():
        assert torch.allclose(found[name], torch.autograd.grad(module(x, y), p)[0], rtol=1e-12)
    xs = torch.randn(3, 2, 4, dtype=torch.float64)
    each = torch.vmap(torch.func.grad(loss, argnums=1), in_dims=(None, 0))(parameters, xs)
    assert torch.allclose(each, torch.stack([torch.func.grad(loss, argnums=1)(parameters, a) for a in xs]))
    assert torch.vmap(lambda a: module(a, y))(xs).shape == (3,)
    hessian = torch.func.jacrev(torch.func.grad(lambda a: module(a, y)))(x)
    expected = torch.autograd.functional.hessian(lambda a: plainly(module, a, y), x)
    assert torch.allclose(hessian, expected, rtol=1e-11, atol=1e-13)
    assert torch.allclose(torch.func.hessian(lambda a: module(a, y))(x), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.timeout(300)
def test_modules_under_torch_compile(smooth: Any):
    """`fullgraph`: a call is one operator; keys are numbers or bytes."""
    module, x, y = scored()
    compiled = torch.compile(lambda x: module(2 * x, y) * 3, fullgraph=True, backend="aot_eager")
    found, expected = (
        torch.autograd.grad(f(x), [x, *module.parameters()]) for f in (compiled, lambda x: module(2 * x, y) * 3)
    )
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))

    several = smooth.compile("g", dtype="f64").to_torch()
    u, w = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    compiled = torch.compile(several, fullgraph=True, backend="aot_eager")
    found, expected = (torch.autograd.grad(f(u, w).sin().sum(), [u, w]) for f in (compiled, several))
    assert all(torch.allclose(a, b, rtol=1e-13) for a, b in zip(found, expected, strict=True))

    program = presk_rel.load(EXAMPLES / "gpt.psk", SMALL, mode="training")
    loss = program.compile("loss", {"B": 1, "T": 3}, dtype="f64")
    drawing, batch = loss.to_torch(), loss.example("batch")
    compiled = torch.compile(drawing, fullgraph=True, backend="aot_eager")
    chosen = (1, 2, 3, bytes(range(32)))
    assert [compiled(k, batch).item() for k in chosen] == [drawing(k, batch).item() for k in chosen]


def test_a_module_is_moved_copied_and_saved():
    module, x, y = scored()
    value = module(x, y)
    twin = copy.deepcopy(module)
    with torch.no_grad():
        for p in twin.parameters():
            p.mul_(2)
    assert module(x, y).equal(value)
    assert not twin(x, y).equal(value)
    twin.load_state_dict(module.state_dict())
    assert twin(x, y).equal(value)

    single = twin.float()
    low = single(x, y)
    low.backward()
    assert (low.dtype, single.handle.dtype, single.θ.l1.w.grad.dtype) == (torch.float32, "f32", torch.float32)
    assert abs(low.item() - value.item()) < 1e-6
    assert single.double()(x, y).dtype == torch.float64
    with pytest.raises(TypeError, match="not in float16"):
        single.half()
    with pytest.raises(TypeError, match="state_dict"):
        pickle.dumps(module)
    with pytest.raises(TypeError, match="takes 2 arguments besides its trees, not 3"):
        module(x, y, y)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_autocast_does_not_reach_into_a_module(dtype: Any):
    """Neither the value, its gradient, nor a handle changes a bit, and their types stay."""
    small = {"m.V": 7, "m.D": 4, "m.H": 2, "m.L": 2}
    program = presk_rel.load(EXAMPLES / "train_minigpt.psk", small)
    loss, grad = (program.compile(f, {"B": 2, "T": 3}, dtype=dtype, tier="emit") for f in ("loss", "loss_grad"))
    module, batch = loss.to_torch(), loss.example("batch")
    found: list[list[torch.Tensor]] = []
    for on in (False, True):
        module.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
            value = module(batch)
            value.backward()
            θ = grad.params["θ"]
            bound = grad.bind(θ=θ, batch=batch)()
            called = grad(θ, batch)
        found.append([value.detach(), *(p.grad for p in module.parameters()), called["head"], bound["head"].clone()])
    assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(*found, strict=True))
    assert {x.dtype for x in found[1]} == {loss.compiled.dtype}


@pytest.mark.parametrize("compiled", [False, True])
def test_every_seed_gives_the_exact_executors_draws_or_is_refused(compiled: bool, tmp_path: Path):
    """Those from 2⁶³ on too, which torch has no integers for."""
    torch.compiler.reset()
    path = tmp_path / "draws.psk"
    text = "fn f(k : key, x : ℝ[a: 8]) -> ℝ[a: 8] uses Rand = dropout(0.5, k, x)\n"
    path.write_text(text, encoding="utf-8")
    program = presk_rel.load(path, mode="training")
    module = program.compile("f", {}, dtype="f64", tier="emit").to_torch()
    call = torch.compile(module, fullgraph=True) if compiled else module
    x = torch.arange(1.0, 9.0, dtype=torch.float64)
    for seed in (2**63 - 1, 2**63, 2**64 - 1):
        given = arguments([f"k={seed}", f"x={x.tolist()}"])
        proven = program.session.run_exact("f", Request(given), Options(bits=64)).value
        assert isinstance(proven, Tensor)
        assert call(seed, x).tolist() == [float(t) for t in proven.data.text]
    for seed in (-1, 2**64, 10**30):
        with pytest.raises(Exception, match=r"a seed is a natural below 2\^64, not"):
            call(seed, x)
