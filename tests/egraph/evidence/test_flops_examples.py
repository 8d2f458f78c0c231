"""Products of matrices in the optimized gradients of examples: no more than in backward passes derived by hand, which
autograd confirms. Both are counted by `torch.utils.flop_counter` while they run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from presk_rel.session import Session
from tests.egraph.evidence.test_flops import (
    EXAMPLES,
    compiled_flops,
    flops,
    layer_norm,
    layer_norm_backward,
    mlp,
    mlp_backward,
    real,
    rows,
)

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Hand:
    """A loss of parameters, and its gradient derived by hand; `dims` of the example."""

    dims: dict[str, int]
    parameters: Tensors
    loss: Callable[[Tensors], torch.Tensor]
    gradient: Callable[[Tensors], Tensors]
    unroll: bool = False


def rnn() -> Hand:
    B, D, H = 3, 4, 5
    x, h = real(B, 3, D), real(B, H)

    def states(θ: Tensors) -> list[torch.Tensor]:
        found = [h]
        for k in range(3):
            found.append(torch.tanh(x[:, k] @ θ["wx"] + found[-1] @ θ["wh"]))
        return found

    def gradient(θ: Tensors) -> Tensors:
        hs = states(θ)
        grads = {n: torch.zeros_like(w) for n, w in θ.items()}
        ct = 2 * hs[3] / hs[3].numel()
        for k in (2, 1, 0):
            dz = ct * (1 - hs[k + 1] ** 2)
            grads["wx"] = grads["wx"] + x[:, k].T @ dz
            grads["wh"] = grads["wh"] + hs[k].T @ dz
            ct = dz @ θ["wh"].T if k else ct
        return grads

    θ = {"wx": real(D, H), "wh": real(H, H)}
    return Hand({"B": B, "D": D, "H": H}, θ, lambda θ: (states(θ)[3] ** 2).mean(), gradient)


def gru() -> Hand:
    B, D, H, S = 3, 4, 5, 3
    x, h0 = real(B, S, D), real(B, H)

    def gate(θ: Tensors, n: str, now: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return now @ θ[f"x{n}"] + h @ θ[f"h{n}"] + θ[f"b{n}"]

    def steps(θ: Tensors) -> tuple[torch.Tensor, list[Tensors]]:
        h, kept = h0, list[Tensors]()
        for k in range(S):
            z, r = (torch.sigmoid(gate(θ, f"{n}{k}", x[:, k], h)) for n in "zr")
            n = torch.tanh(gate(θ, f"n{k}", x[:, k], r * h))
            kept.append({"h": h, "z": z, "r": r, "n": n})
            h = (1 - z) * n + z * h
        return h, kept

    def gradient(θ: Tensors) -> Tensors:
        last, kept = steps(θ)
        grads: Tensors = {}
        ct = 2 * last / last.numel()
        for k in reversed(range(S)):
            h, z, r, n = (kept[k][name] for name in "hzrn")
            dn = ct * (1 - z) * (1 - n**2)
            drh = dn @ θ[f"hn{k}"].T
            dz, dr = ct * (h - n) * z * (1 - z), drh * h * r * (1 - r)
            for name, d, state in (("z", dz, h), ("r", dr, h), ("n", dn, r * h)):
                grads |= {f"x{name}{k}": x[:, k].T @ d, f"h{name}{k}": state.T @ d, f"b{name}{k}": d.sum(0)}
            if k:
                ct = ct * z + drh * r + dz @ θ[f"hz{k}"].T + dr @ θ[f"hr{k}"].T
        return grads

    shapes = {"x": (D, H), "h": (H, H), "b": (H,)}
    θ = {f"{p}{n}{k}": real(*shape) for p, shape in shapes.items() for n in "zrn" for k in range(S)}
    return Hand({"B": B, "D": D, "H": H}, θ, lambda θ: (steps(θ)[0] ** 2).mean(), gradient, unroll=True)


def lora() -> Hand:
    B, In, Out = 3, 8, 9
    x, y, frozen = real(B, In), real(B, Out), real(In, Out)

    def gradient(θ: Tensors) -> Tensors:
        h = x @ (θ["a"] + θ["b"])
        out = x @ frozen + 0.5 * h @ θ["up"]
        ct = (out - y) / out.numel()
        down = x.T @ (ct @ θ["up"].T)
        return {"a": down, "b": down, "up": h.T @ ct}

    def loss(θ: Tensors) -> torch.Tensor:
        return ((x @ frozen + 0.5 * (x @ θ["a"] @ θ["up"] + x @ θ["b"] @ θ["up"]) - y) ** 2).mean()

    θ = {"a": real(In, 2), "b": real(In, 2), "up": real(2, Out)}
    return Hand({"B": B, "In": In, "Out": Out}, θ, loss, gradient)


def vae() -> Hand:
    B, D, Z = 3, 7, 4
    x, noise = real(B, D), real(B, Z)

    def parts(θ: Tensors) -> tuple[torch.Tensor, ...]:
        μ, s = x @ θ["wm"] + θ["bm"], x @ θ["wl"] + θ["bl"]
        z = μ + torch.exp(0.5 * s) * noise
        return μ, s, z, z @ θ["wd"] + θ["bd"]

    def loss(θ: Tensors) -> torch.Tensor:
        μ, s, _, out = parts(θ)
        return ((out - x) ** 2).mean() + 0.5 * (torch.exp(s) + μ**2 - 1 - s).mean()

    def gradient(θ: Tensors) -> Tensors:
        μ, s, z, out = parts(θ)
        ct = 2 * (out - x) / out.numel()
        dz = ct @ θ["wd"].T
        dμ = dz + μ / μ.numel()
        ds = dz * noise * 0.5 * torch.exp(0.5 * s) + 0.5 * (torch.exp(s) - 1) / s.numel()
        grads = {"wd": z.T @ ct, "bd": ct.sum(0)}
        return grads | {"wm": x.T @ dμ, "bm": dμ.sum(0), "wl": x.T @ ds, "bl": ds.sum(0)}

    θ = {"wm": real(D, Z), "bm": real(Z), "wl": real(D, Z), "bl": real(Z), "wd": real(Z, D), "bd": real(D)}
    return Hand({"B": B, "D": D, "Z": Z}, θ, loss, gradient)


def cross_attention() -> Hand:
    B, T, S, D = 2, 3, 4, 5
    x, memory = real(B, T, D), real(B, S, D)

    def parts(θ: Tensors) -> tuple[torch.Tensor, ...]:
        q, k, v = x @ θ["wq"], memory @ θ["wk"], memory @ θ["wv"]
        a = torch.softmax(q @ k.mT / math.sqrt(D), -1)
        return q, k, v, a, x + a @ v

    def gradient(θ: Tensors) -> Tensors:
        q, k, v, a, out = parts(θ)
        ct = 2 * out / out.numel()
        da = ct @ v.mT
        ds = a * (da - (da * a).sum(-1, keepdim=True)) / math.sqrt(D)
        sides = {"wq": (x, ds @ k), "wk": (memory, ds.mT @ q), "wv": (memory, a.mT @ ct)}
        return {n: rows(operand).T @ rows(d) for n, (operand, d) in sides.items()}

    θ = {n: real(D, D) for n in ("wq", "wk", "wv")}
    return Hand({"B": B, "T": T, "S": S, "D": D}, θ, lambda θ: (parts(θ)[-1] ** 2).mean(), gradient)


def mlp_mixer() -> Hand:
    B, P, C, K, L = 2, 4, 4, 3, 2
    x, y = real(B, P, C), torch.randint(K, (B,))
    zero = torch.zeros(C, dtype=torch.float64)

    def block(θ: Tensors, k: int, name: str) -> Tensors:
        return {n: θ[f"{name}{n}{k}"] for n in ("w1", "b1", "w2", "b2")}

    def forward(θ: Tensors) -> tuple[torch.Tensor, list[Any]]:
        at, kept = x, list[Any]()
        for k in range(L):
            n1, one = layer_norm(at, θ[f"g1{k}"], zero)
            out, two = mlp(n1.mT, block(θ, k, "p"))
            at = at + out.mT
            n2, three = layer_norm(at, θ[f"g2{k}"], zero)
            out, four = mlp(n2, block(θ, k, "c"))
            at = at + out
            kept.append((one, two, three, four))
        n, last = layer_norm(at, θ["g"], zero)
        pooled = n.mean(1)
        return pooled @ θ["w"] + θ["b"], [*kept, (pooled, last)]

    def gradient(θ: Tensors) -> Tensors:
        logits, kept = forward(θ)
        ct = (torch.softmax(logits, -1) - torch.nn.functional.one_hot(y, K)) / B
        pooled, last = kept.pop()
        grads: Tensors = {"w": pooled.T @ ct, "b": ct.sum(0)}
        spread = ((ct @ θ["w"].T) / P).unsqueeze(1).expand(B, P, C)
        dx, grads["g"], _ = layer_norm_backward(spread, θ["g"], last)
        for k in reversed(range(L)):
            one, two, three, four = kept[k]
            dz, own = mlp_backward(dx, block(θ, k, "c"), four)
            d, grads[f"g2{k}"], _ = layer_norm_backward(dz @ θ[f"cw1{k}"].T, θ[f"g2{k}"], three)
            grads |= {f"c{n}{k}": g for n, g in own.items()}
            dx = dx + d
            dz, own = mlp_backward(dx.mT, block(θ, k, "p"), two)
            d, grads[f"g1{k}"], _ = layer_norm_backward((dz @ θ[f"pw1{k}"].T).mT, θ[f"g1{k}"], one)
            grads |= {f"p{n}{k}": g for n, g in own.items()}
            dx = dx + d
        return grads

    θ: Tensors = {"w": real(C, K), "b": real(K), "g": real(C)}
    for k in range(L):
        θ |= {f"g{i}{k}": real(C) for i in (1, 2)}
        for name, width, hidden in (("p", P, 2 * P), ("c", C, 4 * C)):
            shapes = {"w1": (width, hidden), "b1": (hidden,), "w2": (hidden, width), "b2": (width,)}
            θ |= {f"{name}{n}{k}": real(*shape) for n, shape in shapes.items()}
    return Hand({"B": B}, θ, lambda θ: torch.nn.functional.cross_entropy(forward(θ)[0], y), gradient)


@pytest.mark.parametrize("make", [rnn, gru, lora, vae, cross_attention, mlp_mixer], ids=lambda f: f.__name__)
def test_no_more_than_by_hand(make: Callable[[], Hand]):
    torch.manual_seed(0)
    hand = make()
    known = {n: w.clone().requires_grad_() for n, w in hand.parameters.items()}
    hand.loss(known).backward()
    found = hand.gradient(hand.parameters)
    assert found.keys() == known.keys()
    for n, g in found.items():
        assert torch.allclose(g, known[n].grad), n
    by_hand = flops(lambda: hand.gradient(hand.parameters))
    session = Session(str(EXAMPLES / f"field/{make.__name__}.psk"), unroll_stack=hand.unroll)
    ours = compiled_flops(session.optimized("loss_grad", hand.dims).program, "loss_grad", hand.dims)
    assert by_hand / 2 < ours <= by_hand
