"""What PyTorch's users have: the programs of `examples/reference` with the same weights give the same outputs and the
same gradients, of every parameter and input, at f64 to 1e-12, by generated code (plain, optimized) and the export."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import presk_rel

REFERENCE = Path(__file__).parents[2] / "examples" / "reference"
BOUND = 1e-12


# ------------------------------------------------------------------------------------------------ GPT-2, as published


class Conv1D(nn.Module):
    def __init__(self, out: int, inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, out))
        self.bias = nn.Parameter(torch.empty(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            t.view(*t.shape[:-1], self.heads, -1).transpose(1, 2) for t in self.c_attn(x).split(x.size(-1), dim=2)
        )
        weights = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(v.size(-1))
        causal = torch.tril(torch.ones(x.size(1), x.size(1), dtype=torch.bool))
        weights = torch.where(causal, weights, torch.finfo(weights.dtype).min).softmax(dim=-1)
        return self.c_proj(torch.matmul(weights, v).transpose(1, 2).reshape(x.shape))


class MLP(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc = Conv1D(4 * width, width)
        self.c_proj = Conv1D(width, 4 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.c_fc(x)
        gelu_new = 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        return self.c_proj(gelu_new)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-5)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width, eps=1e-5)
        self.mlp = MLP(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


# ------------------------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """`apply(module, *inputs)` is what `forward` of the program computes. The program takes its parameter tree and real
    inputs in one tuple (`packed`) or one by one, then its indices; `backward` takes a cotangent too, unless the result
    is a scalar."""

    file: str
    apply: Callable[..., torch.Tensor]
    dims: dict[str, int]
    shapes: tuple[tuple[int, ...], ...] = ()
    indices: tuple[tuple[int, ...], ...] = ()
    module: Callable[[], nn.Module] | None = None
    entries: tuple[str, str] = ("forward", "backward")
    packed: bool = True


CASES = {
    "nn.TransformerEncoderLayer": Case(
        "encoder_layer",
        lambda m, x: m(x),
        {"B": 2, "T": 3},
        ((2, 3, 8),),
        module=lambda: nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True),
    ),
    "the block of GPT-2": Case(
        "gpt2_block", lambda m, x: m(x), {"B": 2, "T": 3}, ((2, 3, 8),), module=lambda: Block(8, 2)
    ),
    "nn.MultiheadAttention": Case(
        "multihead_attention",
        lambda m, q, k, v: m(q, k, v)[0],
        {"B": 2, "T": 3, "S": 4},
        ((2, 3, 8), (2, 4, 8), (2, 4, 8)),
        module=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    ),
    "nn.LayerNorm": Case(
        "layer_norm", lambda m, x: m(x), {"B": 2, "T": 3}, ((2, 3, 8),), module=lambda: nn.LayerNorm(8)
    ),
    "F.scaled_dot_product_attention": Case(
        "attention",
        lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v),
        {"B": 2, "H": 3, "T": 2, "S": 5},
        ((2, 3, 2, 4), (2, 3, 5, 4), (2, 3, 5, 4)),
    ),
    "F.scaled_dot_product_attention, causal": Case(
        "attention",
        lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        {"B": 2, "H": 3, "T": 4},
        ((2, 3, 4, 4),) * 3,
        entries=("causal", "causal_backward"),
    ),
    "F.cross_entropy": Case(
        "cross_entropy",
        lambda _, logits, y: F.cross_entropy(logits.flatten(0, 1), y.flatten()),
        {"B": 2, "T": 3},
        ((2, 3, 7),),
        ((2, 3),),
        packed=False,
    ),
    "nn.Embedding": Case(
        "embedding",
        lambda m, t: m(t),
        {"B": 2, "T": 5},
        (),
        ((2, 5),),
        module=lambda: nn.Embedding(7, 4),
        packed=False,
    ),
}


@dataclass(frozen=True)
class Drawn:
    """What a case is run on: every parameter and input drawn from a normal distribution."""

    module: nn.Module | None
    reals: tuple[torch.Tensor, ...]
    indices: tuple[torch.Tensor, ...]
    ct: torch.Tensor
    value: torch.Tensor
    gradients: dict[str, torch.Tensor]


def drawn(case: Case) -> Drawn:
    generator = torch.Generator().manual_seed(1)

    def normal(shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    module = None if case.module is None else case.module().double()
    weights = {} if module is None else dict(module.named_parameters())
    for p in weights.values():
        p.data = normal(tuple(p.shape))
    reals = tuple(normal(s).requires_grad_() for s in case.shapes)
    indices = tuple(torch.randint(0, 7, s, generator=generator) for s in case.indices)
    value = case.apply(module, *reals, *indices)
    ct = normal(tuple(value.shape)) if value.dim() else torch.ones((), dtype=torch.float64)
    inputs = {**weights, **{f"input {i}": x for i, x in enumerate(reals)}}
    found = torch.autograd.grad(value, list(inputs.values()), ct)
    return Drawn(module, reals, indices, ct, value.detach(), dict(zip(inputs, found, strict=True)))


def arguments(case: Case, d: Drawn, tree: Any) -> tuple[Any, ...]:
    real = (*(() if d.module is None else (tree,)), *(x.detach() for x in d.reals))
    return (*((real,) if case.packed and len(real) > 1 else real), *d.indices)


def gradients(case: Case, d: Drawn, found: Any) -> dict[str, torch.Tensor]:
    """By name, as the reference has them."""
    parts = list(found) if case.packed else [found]
    out: dict[str, torch.Tensor] = {} if d.module is None else flat(parts.pop(0), "")
    return {**out, **{f"input {i}": x for i, x in enumerate(parts)}}


def nested(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    """A state dict as a parameter tree."""
    tree: dict[str, Any] = {}
    for path, value in state.items():
        *around, last = path.split(".")
        at = tree
        for name in around:
            at = at.setdefault(name, {})
        at[last] = value
    return tree


def flat(tree: Any, front: str) -> dict[str, torch.Tensor]:
    if not isinstance(tree, dict):
        return {front: tree}
    return {p: t for k, v in tree.items() for p, t in flat(v, f"{front}.{k}" if front else k).items()}


def loaded(source: str) -> ModuleType:
    module = ModuleType("exported")
    exec(compile(source, "exported", "exec"), module.__dict__)
    return module


def run(way: str, case: Case, d: Drawn) -> tuple[Any, Any]:
    """The results of the two entries."""
    program = presk_rel.load(REFERENCE / f"{case.file}.psk")
    state = {} if d.module is None else {k: v.detach() for k, v in d.module.named_parameters()}
    ct = (d.ct,) if d.value.dim() else ()
    if way == "export":
        module = loaded(program.export())
        forward, backward = (getattr(module, name) for name in case.entries)
    else:
        optimize = way == "optimized"
        forward, backward = (program.compile(e, case.dims, dtype="f64", optimize=optimize) for e in case.entries)
        state = nested(state)
    args = arguments(case, d, state)
    return forward(*args), backward(*args, *ct)


@pytest.mark.parametrize("way", ["emit", "optimized", "export"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients_are_those_of_pytorch(name: str, way: str) -> None:
    case = CASES[name]
    d = drawn(case)
    value, pulled = run(way, case, d)
    assert float((value - d.value).abs().max()) <= BOUND * max(1.0, float(d.value.abs().max()))
    found = gradients(case, d, pulled)
    assert found.keys() == d.gradients.keys()
    scale = max(float(g.abs().max()) for g in d.gradients.values())
    far = {k: float((found[k] - g).abs().max()) / scale for k, g in d.gradients.items()}
    assert max(far.values()) <= BOUND, far


def test_the_exported_modules_take_the_state_dicts_of_pytorch() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        for name in ("nn.TransformerEncoderLayer", "the block of GPT-2", "nn.MultiheadAttention"):
            case = CASES[name]
            d = drawn(case)
            assert d.module is not None
            made = loaded(presk_rel.load(REFERENCE / f"{case.file}.psk").export())
            ours = getattr(made, type(d.module).__name__.removeprefix("Transformer"))()
            ours.load_state_dict(d.module.state_dict())
            assert float((ours(*d.reals) - d.value).abs().max()) <= BOUND * float(d.value.abs().max())
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("optimize", [False, True])
def test_adamw(optimize: bool) -> None:
    """Thirty steps of training, each on the gradient that presk computes."""
    program = presk_rel.load(REFERENCE / "adamw.psk")
    grad = program.compile("loss_grad", {"B": 4}, dtype="f64", optimize=optimize)
    step = program.compile("adamw.step", dtype="f64", optimize=optimize)
    theirs = {k: nn.Parameter(v.clone()) for k, v in grad.params["θ"].items()}
    optimizer = torch.optim.AdamW(theirs.values(), lr=3e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    θ = {k: v.detach().clone() for k, v in theirs.items()}
    s = tuple({k: torch.zeros_like(v) for k, v in θ.items()} for _ in range(2))
    generator = torch.Generator().manual_seed(2)
    for t in range(1, 31):
        x, y = (torch.randn(4, n, generator=generator, dtype=torch.float64) for n in (3, 2))
        optimizer.zero_grad()
        ((x @ theirs["weight"] + theirs["bias"] - y) ** 2).mean().backward()
        nn.utils.clip_grad_norm_(theirs.values(), 1.0)
        optimizer.step()
        θ, s = step(θ=θ, s=s, g=grad(θ, (x, y)), t=t, total=30)
    for name, value in theirs.items():
        assert float((θ[name] - value).abs().max()) <= BOUND * float(value.abs().max())
