"""Products of matrices after optimization: never more arithmetic than before, nor than backward passes derived by
hand, both counted by `torch.utils.flop_counter` while they run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from presk_rel.core.ir import Program
from presk_rel.exec.inputs import prepare
from presk_rel.exec.torch.run import at, compile_entry, to_torch
from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[3] / "examples"
V, D, H, L, B, T = 11, 8, 2, 2, 2, 5
FILES = sorted(p for folder in ("field", "tour") for p in (EXAMPLES / folder).glob("*.psk"))
SAMPLE = ("deep", "vae", "huber", "gru", "contrastive")


def flops(run: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def compiled_flops(program: Program, entry: str, dims: dict[str, int]) -> int:
    drawn, values = prepare(program, entry, {}, dims, 0)
    compiled = compile_entry(program, entry, drawn.env, "f64", planned=False)
    args = dict(zip((p.name for p in drawn.fn.params), values, strict=True))
    inputs = tuple(to_torch(torch, compiled, at(args[i.parameter], i)) for i in compiled.emitted.inputs)
    return flops(lambda: compiled.generated(inputs))


def real(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64) / 4


# ------------------------------------------------------------------------------------------ derived by hand: MLP


def gelu_slope(z: torch.Tensor) -> torch.Tensor:
    return 0.5 * (1 + torch.erf(z / math.sqrt(2))) + z * torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def mlp(x: torch.Tensor, p: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    z = x @ p["w1"] + p["b1"]
    h = torch.nn.functional.gelu(z)
    return h @ p["w2"] + p["b2"], {"x": x, "z": z, "h": h}


def rows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, x.shape[-1])


def mlp_backward(
    ct: torch.Tensor, p: dict[str, torch.Tensor], kept: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    dz = (ct @ p["w2"].T) * gelu_slope(kept["z"])
    grads = {
        "w2": rows(kept["h"]).T @ rows(ct),
        "b2": rows(ct).sum(0),
        "w1": rows(kept["x"]).T @ rows(dz),
        "b1": rows(dz).sum(0),
    }
    return dz, grads


def mlp_parameters() -> dict[str, torch.Tensor]:
    return {"w1": real(D, 4 * D), "b1": real(4 * D), "w2": real(4 * D, D), "b2": real(D)}


def mse_gradient(x: torch.Tensor, y: torch.Tensor, p: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    out, kept = mlp(x, p)
    return mlp_backward(2 * (out - y) / out.numel(), p, kept)[1]


def test_the_multilayer_perceptron_takes_no_more_than_by_hand():
    x, y, p = real(B, D), real(B, D), mlp_parameters()
    leaves = {k: v.clone().requires_grad_() for k, v in p.items()}
    ((mlp(x, leaves)[0] - y) ** 2).mean().backward()
    for k, g in mse_gradient(x, y, p).items():
        assert torch.allclose(g, leaves[k].grad)
    by_hand = flops(lambda: mse_gradient(x, y, p))
    session = Session(str(EXAMPLES / "mlp.psk"))
    ours = compiled_flops(session.optimized("mse_grad", {"B": B, "D": D}).program, "mse_grad", {"B": B, "D": D})
    assert by_hand / 2 < ours <= by_hand


# ------------------------------------------------------------------------------------------ derived by hand: GPT


def layer_norm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    sigma = torch.sqrt(((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True) + 1e-5)
    unit = (x - x.mean(-1, keepdim=True)) / sigma
    return unit * g + b, (unit, sigma)


def layer_norm_backward(
    ct: torch.Tensor, g: torch.Tensor, kept: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    unit, sigma = kept
    c = ct * g
    dx = (c - c.mean(-1, keepdim=True) - unit * (c * unit).mean(-1, keepdim=True)) / sigma
    return dx, rows(ct * unit).sum(0), rows(ct).sum(0)


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(B, T, H, D // H).transpose(1, 2)


def merged(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).reshape(B, T, D)


PROJECTIONS = ("q", "k", "v")
Parameters = dict[str, Any]


def attention(x: torch.Tensor, p: Parameters) -> tuple[torch.Tensor, Parameters]:
    q, k, v = (heads(x @ p[f"w{n}"] + p[f"b{n}"]) for n in PROJECTIONS)
    mask = torch.ones(T, T).tril().bool()
    a = torch.softmax((q @ k.mT / math.sqrt(D // H)).masked_fill(~mask, -math.inf), -1)
    o = merged(a @ v)
    return o @ p["wo"] + p["bo"], {"x": x, "q": q, "k": k, "v": v, "a": a, "o": o}


def attention_backward(ct: torch.Tensor, p: Parameters, kept: Parameters) -> tuple[torch.Tensor, Parameters]:
    grads = {"wo": rows(kept["o"]).T @ rows(ct), "bo": rows(ct).sum(0)}
    do = heads(ct @ p["wo"].T)
    a = kept["a"]
    da = do @ kept["v"].mT
    ds = a * (da - (da * a).sum(-1, keepdim=True)) / math.sqrt(D // H)
    each = {"q": ds @ kept["k"], "k": ds.mT @ kept["q"], "v": a.mT @ do}
    dx = torch.zeros_like(ct)
    for n in PROJECTIONS:
        d = merged(each[n])
        grads |= {f"w{n}": rows(kept["x"]).T @ rows(d), f"b{n}": rows(d).sum(0)}
        dx = dx + d @ p[f"w{n}"].T
    return dx, grads


def forward(θ: Parameters, ids: torch.Tensor) -> tuple[torch.Tensor, list[Any]]:
    x, kept = θ["tok"][ids] + θ["pos"], list[Any]()
    for p in θ["blocks"]:
        n, one = layer_norm(x, p["g1"], p["c1"])
        a, two = attention(n, p)
        x = x + a
        n, three = layer_norm(x, p["g2"], p["c2"])
        m, four = mlp(n, p)
        x = x + m
        kept.append((one, two, three, four))
    n, last = layer_norm(x, θ["g"], θ["c"])
    return n @ θ["head"], [*kept, (n, last)]


def gradient(θ: Parameters, ids: torch.Tensor, y: torch.Tensor) -> Parameters:
    logits, kept = forward(θ, ids)
    ct = (torch.softmax(logits, -1) - torch.nn.functional.one_hot(y, V)) / y.numel()
    n, last = kept.pop()
    grads: Parameters = {"head": rows(n).T @ rows(ct), "blocks": []}
    dx, grads["g"], grads["c"] = layer_norm_backward(ct @ θ["head"].T, θ["g"], last)
    for p, (one, two, three, four) in zip(reversed(θ["blocks"]), reversed(kept), strict=True):
        dz, own = mlp_backward(dx, p, four)
        d, own["g2"], own["c2"] = layer_norm_backward(dz @ p["w1"].T, p["g2"], three)
        dx = dx + d
        dn, more = attention_backward(dx, p, two)
        d, own["g1"], own["c1"] = layer_norm_backward(dn, p["g1"], one)
        dx = dx + d
        grads["blocks"].insert(0, own | more)
    grads["pos"] = dx.sum(0)
    grads["tok"] = torch.zeros_like(θ["tok"]).index_add(0, ids.reshape(-1), rows(dx))
    return grads


def parameters() -> Parameters:
    def block() -> Parameters:
        square = {f"w{n}": real(D, D) for n in (*PROJECTIONS, "o")} | {f"b{n}": real(D) for n in (*PROJECTIONS, "o")}
        norms = {f"{n}{i}": real(D) for n in "gc" for i in (1, 2)}
        return square | norms | mlp_parameters()

    ends = {"tok": real(V, D), "pos": real(T, D), "g": real(D), "c": real(D), "head": real(D, V)}
    return ends | {"blocks": [block() for _ in range(L)]}


def tracked(θ: Any) -> Any:
    if isinstance(θ, torch.Tensor):
        return θ.clone().requires_grad_()
    return {k: tracked(v) for k, v in θ.items()} if isinstance(θ, dict) else [tracked(v) for v in θ]


def leaves(θ: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], torch.Tensor]:
    if isinstance(θ, torch.Tensor):
        return {path: θ}
    parts = θ.items() if isinstance(θ, dict) else enumerate(θ)
    return {p: t for k, v in parts for p, t in leaves(v, (*path, k)).items()}


@pytest.mark.parametrize("unroll", [True, False], ids=["unrolled", "folded"])
def test_the_transformer_takes_no_more_than_by_hand(unroll: bool):
    torch.manual_seed(0)
    θ, ids, y = parameters(), torch.randint(V, (B, T)), torch.randint(V, (B, T))
    known = tracked(θ)
    torch.nn.functional.cross_entropy(forward(known, ids)[0].reshape(-1, V), y.reshape(-1)).backward()
    expected = leaves(known)
    for path, g in leaves(gradient(θ, ids, y)).items():
        assert torch.allclose(g, expected[path].grad), path
    by_hand = flops(lambda: gradient(θ, ids, y))
    sizes = {"m.V": V, "m.D": D, "m.H": H, "m.L": L}
    session = Session(str(EXAMPLES / "train_minigpt.psk"), sizes, unroll_stack=unroll)
    dims = {"B": B, "T": T}
    ours = compiled_flops(session.optimized("loss_grad", dims).program, "loss_grad", dims)
    assert by_hand / 2 < ours <= by_hand


# ------------------------------------------------------------------------------------------ before and after


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=() if p.stem in SAMPLE else pytest.mark.slow, id=p.stem) for p in FILES]
)
def test_no_more_than_before(path: Path):
    session = Session(str(path))
    for name, function in session.core.functions.items():
        if name.endswith("_grad"):
            dims = dict.fromkeys(function.dims, 3)
            report = session.optimized(name, dims).report
            assert report.after.contracting <= report.before.contracting, name
            assert report.after.kernels <= report.before.kernels, name


@pytest.mark.slow
def test_no_more_than_before_in_gpt():
    """The whole model in training mode, six layers unrolled: 2.1 billion operations."""
    session = Session(str(EXAMPLES / "gpt.psk"), mode="training", unroll_stack=True)
    report = session.optimized("loss_grad", {"B": 2, "T": 16}).report
    assert report.after.flops <= report.before.flops
    assert report.gap < 0.01
