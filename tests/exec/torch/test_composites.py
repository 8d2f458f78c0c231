"""Composite primitives on torch against torch's own functions and their autograd: what they are called is what they
compute, at f64 to 1e-12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from presk_rel.core.reader import read_program
from presk_rel.core.verify import verify
from presk_rel.diagnostics import Diagnostics
from presk_rel.exec.exact.run import Options, run_exact
from tests.exec.torch.against import agrees, on_torch

QK = "[batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2]"
AV = "[batch heads seq seq2, batch heads seq2 hd -> batch heads seq hd]"
BACK_K = "[batch heads seq2 seq, batch heads seq2 hd -> batch heads seq hd]"
BACK_V = "[batch heads seq2 hd, batch heads seq2 seq -> batch heads seq hd]"
X, HEADS = "ℝ[b: 3, a: 4]", "ℝ[batch: 2, heads: 2, seq: 5, hd: 3]"
NORM = "axis a 0.00001"
Reference = Callable[..., Any]


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)


CASES: dict[str, tuple[str, str, tuple[str, ...], Reference, int | None]] = {
    "standardize": (f"standardize {NORM} x", X, (X,), lambda x: F.layer_norm(x, (4,)), None),
    "standardize_vjp": (f"standardize_vjp {NORM} ct, x", X, (X,), lambda x: F.layer_norm(x, (4,)), 0),
    "layer_norm": (
        f"layer_norm {NORM} x, y, z", X, (X, "ℝ[4]", "ℝ[4]"), lambda x, y, z: F.layer_norm(x, (4,), y, z), None,
    ),
    "layer_norm_vjp": (f"layer_norm_vjp {NORM} ct, x, y", X, (X, "ℝ[4]"), lambda x, y: F.layer_norm(x, (4,), y), 0),
    "layer_norm_vjp_scale": (
        f"layer_norm_vjp_scale {NORM} ct, x, y", "ℝ[4]", (X, "ℝ[4]"), lambda x, y: F.layer_norm(x, (4,), y), 1,
    ),
    "gelu_vjp": ("gelu_vjp ct, x", X, (X,), F.gelu, 0),
    "relu_vjp": ("relu_vjp ct, x", X, (X,), F.relu, 0),
    "linear": ("linear x, y, z", "ℝ[b: 3, 2]", (X, "ℝ[4, 2]", "ℝ[2]"), lambda x, y, z: F.linear(x, y.mT, z), None),
    "log_softmax": ("log_softmax axis a x", X, (X,), lambda x: F.log_softmax(x, -1), None),
    "logsumexp": ("logsumexp axis a x", "ℝ[b: 3]", (X,), lambda x: torch.logsumexp(x, -1), None),
    "mse": ("mse x, y", "ℝ[]", (X, X), F.mse_loss, None),
    "mse_vjp": ("mse_vjp ct, x, y, x", X, (X, X), F.mse_loss, 0),
}  # fmt: skip


def program(text: str) -> Any:
    diagnostics = Diagnostics()
    found = read_program(text, "test.core", diagnostics)
    assert found is not None, diagnostics.items
    verify(found, "test")
    return found


def expected(reference: Reference, given: list[Any], ct: Any, wrt: int | None) -> Any:
    inputs = [torch.tensor(x, requires_grad=True) for x in given]
    value = reference(*inputs)
    if wrt is None:
        return value.detach().numpy()
    return torch.autograd.grad(value, inputs[wrt], torch.tensor(ct))[0].numpy()


def drawn(rng: np.random.Generator, ty: str) -> Any:
    sizes = [int(part.split(":")[-1]) for part in ty[2:-1].split(",") if part]
    return rng.standard_normal(sizes)


@pytest.mark.parametrize("name", CASES)
def test_is_what_torch_computes(name: str) -> None:
    operation, result, types, reference, wrt = CASES[name]
    rng = np.random.default_rng(3)
    given = [drawn(rng, t) for t in types]
    of_value = reference(*(torch.tensor(x) for x in given))
    ct_type = {(): "ℝ[]", (3, 4): X}.get(tuple(of_value.shape), result)
    ct = rng.standard_normal(of_value.shape)
    params = ", ".join(f"{n} : {t}" for n, t in zip("xyz", types)) + f", ct : {ct_type}"
    found = program(f"fn f({params}) -> {result} {{\n  out : {result} = {operation}\n  return out\n}}")
    nodes: dict[str, Any] = dict(zip("xyz", given)) | {"ct": ct}
    wanted = expected(reference, given, ct, wrt)
    ran = on_torch(found, "f", {}, nodes).value
    assert np.allclose(np.asarray(ran.data, dtype=float), wanted, rtol=0, atol=1e-12)  # type: ignore[union-attr]
    agrees(found, "f", {}, nodes)


@pytest.mark.parametrize("wrt", [None, "q", "k", "v"])
def test_attention_is_what_torch_computes(wrt: str | None) -> None:
    """And its parts by one call on the CPU, the written-out form elsewhere."""
    spec = {"q": f"{QK} {QK} {AV}", "k": f"{QK} {QK} {BACK_K}", "v": f"{QK} {BACK_V}"}
    operands = "ct, q, k, c, m" if wrt == "v" else "ct, q, k, v, c, m"
    text = f"""fn f(q : {HEADS}, k : {HEADS}, v : {HEADS}, ct : {HEADS}) -> {HEADS} {{
  c : ℝ[] = const 2
  m : bool[seq: 5, seq2: 5] = causal_mask
  out : {HEADS} = attention_masked {QK} {AV} axis seq2 q, k, v, c, m
"""
    if wrt is not None:
        text += f"  d : {HEADS} = attention_vjp_{wrt}_masked {spec[wrt]} axis seq2 {operands}\n"
        text += f"  both : {HEADS} = add d, out\n"
    found = program(text + f"  return {'out' if wrt is None else 'both'}\n}}")
    rng = np.random.default_rng(4)
    q, k, v, ct = (drawn(rng, HEADS) for _ in range(4))
    nodes = {"q": q, "k": k, "v": v, "ct": ct}
    wanted = expected(attention, [q, k, v], ct, None)
    if wrt is not None:
        wanted = wanted + expected(attention, [q, k, v], ct, "qkv".index(wrt))
    ran = on_torch(found, "f", {}, nodes)
    assert "_scaled_dot_product_flash_attention_for_cpu" in ran.source
    assert np.allclose(np.asarray(ran.value.data, dtype=float), wanted, rtol=0, atol=1e-12)  # type: ignore[union-attr]
    exact = run_exact(found, "f", nodes, {}, options=Options(bits=96))
    assert exact.precision >= 96
    agrees(found, "f", {}, nodes)


def test_what_does_not_line_up_is_written_out() -> None:
    """A norm along an axis that is not the last."""
    found = program(
        "fn f(x : ℝ[a: 3, b: 4]) -> ℝ[a: 3, b: 4] {\n  y : ℝ[a: 3, b: 4] = standardize axis a 0.1 x\n  return y\n}"
    )
    nodes = {"x": np.random.default_rng(5).standard_normal((3, 4))}
    assert "native_layer_norm" not in on_torch(found, "f", {}, nodes).source
    agrees(found, "f", {}, nodes)


def test_a_norm_s_adjoints_are_one_call_whichever_scale_they_name():
    """Of the scale its own adjoint takes the shape only: the optimizer may name another layer's."""
    text = f"""fn f(ct : {X}, x : {X}, w : ℝ[4], other : ℝ[4]) -> ({X}, ℝ[4]) {{
  s : ℝ[4] = layer_norm_vjp_scale {NORM} ct, x, other
  d : {X} = layer_norm_vjp {NORM} ct, x, w
  both : ({X}, ℝ[4]) = tuple d, s
  return both
}}"""
    rng = np.random.default_rng(0)
    given = {n: rng.normal(size=s) for n, s in (("ct", (3, 4)), ("x", (3, 4)), ("w", 4), ("other", 4))}
    found = program(text)
    assert on_torch(found, "f", {}, given).source.count("layer_norm_backward(") == 1
    agrees(found, "f", {}, given)
