"""Attention on CUDA as torch's calls, if that is asked for: wired as the written-out form computes, both ways, with the
calls' mathematics on a CPU (`fused_attention`); what the calls give has the shapes that torch's own `meta` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import presk_rel
from presk_rel.exec.torch import library
from presk_rel.exec.torch.attention import SWITCH
from presk_rel.exec.torch.calls import CALLS
from presk_rel.exec.torch.inductor_build import exported, spec
from presk_rel.exec.torch.layouts import Array, fresh
from presk_rel.exec.torch.run import Dtype

from .against import on_torch
from .as_on_cuda import all_large, on_cuda
from .fused_attention import Calls, fused
from .test_composites import AV, BACK_K, BACK_V, QK, program

__all__ = ["on_cuda"]

EXAMPLES = Path(__file__).parents[3] / "examples"
WIDE = {"m.V": 11, "m.D": 16, "m.H": 2, "m.L": 1}


@pytest.fixture
def calls(on_cuda: pytest.MonkeyPatch) -> Iterator[Calls]:
    """What is compiled for CUDA has torch's calls, for any number of keys."""
    on_cuda.setenv(SWITCH, "calls")
    on_cuda.setattr(library, "FEW_KEYS", 0)
    with fused() as made:
        yield made


def attention(width: int, queries: int, keys: int, *, causal: bool) -> str:
    """Attention and its three adjoints."""
    q, k, slope = (
        f"ℝ[batch: 2, heads: 2, {n}, hd: {width}]" for n in (f"seq: {queries}", f"seq2: {keys}", f"seq: {keys}")
    )
    m, masked = (", m", "_masked") if causal else ("", "")
    mask = f"  m : bool[seq: {queries}, seq2: {keys}] = causal_mask\n" if causal else ""
    return f"""fn f(q : {q}, k : {k}, v : {k}, ct : {q}) -> ({q}, {q}, {slope}, {slope}) {{
  c : ℝ[] = const 2
{mask}  out : {q} = attention{masked} {QK} {AV} axis seq2 q, k, v, c{m}
  dq : {q} = attention_vjp_q{masked} {QK} {QK} {AV} axis seq2 ct, q, k, v, c{m}
  dk : {slope} = attention_vjp_k{masked} {QK} {QK} {BACK_K} axis seq2 ct, q, k, v, c{m}
  dv : {slope} = attention_vjp_v{masked} {QK} {BACK_V} axis seq2 ct, q, k, c{m}
  all : ({q}, {q}, {slope}, {slope}) = tuple out, dq, dk, dv
  return all
}}"""


def numbers(ran: Any) -> list[Any]:
    return [np.asarray(x.data, dtype=float) for x in ran.value.items]


@pytest.mark.parametrize(
    ("queries", "keys", "causal"), [(5, 5, False), (33, 40, False), (7, 3, False), (5, 5, True), (33, 33, True)]
)
@pytest.mark.parametrize("width", [8, 64, 128])
def test_calls_compute_what_is_written_out(calls: Calls, width: int, queries: int, keys: int, causal: bool):
    found = program(attention(width, queries, keys, causal=causal))
    rng = np.random.default_rng(width)
    sizes = {"q": queries, "k": keys, "v": keys, "ct": queries}
    given = {n: rng.standard_normal((2, 2, s, width)) / 2 for n, s in sizes.items()}
    wanted = numbers(on_torch(found, "f", {}, given))
    assert not calls.names  # there are none for f64
    cases: list[tuple[Dtype, str, float]] = [("f32", "efficient", 1e-5), ("bf16", "flash", 3e-2)]
    for dtype, name, far in cases:
        calls.names.clear()
        ran = on_torch(found, "f", {}, given, dtype)
        assert calls.names == [name, f"{name}_back"]
        for a, b in zip(wanted, numbers(ran), strict=True):
            assert np.abs(a - b).max() <= far * max(np.abs(a).max(), 1)


@pytest.mark.parametrize("width", [4, 12, 136])
def test_heads_that_the_calls_do_not_take_are_written_out(calls: Calls, width: int):
    found = program(attention(width, 3, 3, causal=True))
    rng = np.random.default_rng(0)
    on_torch(found, "f", {}, {n: rng.standard_normal((2, 2, 3, width)) for n in ("q", "k", "v", "ct")}, "f32")
    assert not calls.names


@pytest.mark.parametrize(("dtype", "name", "far"), [("f32", "efficient", 1e-5), ("bf16", "flash", 3e-2)])
def test_a_model_s_gradient_is_that_of_the_written_out_one(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, dtype: Any, name: str, far: float
):
    found: list[Any] = []
    for way in ("written", "calls"):
        monkeypatch.setenv(SWITCH, way)
        handle = presk_rel.load(EXAMPLES / "train_minigpt.psk", WIDE).compile(
            "loss_grad", {"B": 2, "T": 5}, dtype=dtype, tier="emit", unroll=True
        )
        handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
        handle()
        found.append(handle.flats[0].double().clone())
        assert set(calls.names) == ({name, f"{name}_back"} if way == "calls" else set())
        assert ("clone" in handle.source) == (way == "written")  # operands are products: none is copied
    assert float((found[0] - found[1]).abs().max()) <= far * float(found[0].abs().max())


def test_attention_over_few_keys_is_written_out_and_so_is_all_unless_asked_for(on_cuda: pytest.MonkeyPatch):
    model = presk_rel.load(EXAMPLES / "train_minigpt.psk", WIDE)
    for asked, keys, called in (("", 257, False), ("calls", 256, False), ("calls", 257, True)):
        on_cuda.setenv(SWITCH, asked)
        handle = model.compile("loss_grad", {"B": 1, "T": keys}, tier="emit", unroll=True)
        assert ("efficient_attention(" in handle.source) == called


@pytest.mark.parametrize(("dtype", "name"), [("f32", "efficient"), ("bf16", "flash")])
def test_torch_compile_traces_the_code_whole(calls: Calls, monkeypatch: pytest.MonkeyPatch, dtype: Any, name: str):
    """What tier `inductor` compiles on CUDA, products of rounded operands and calls of attention included."""
    all_large(monkeypatch, name)
    model = presk_rel.load(EXAMPLES / "train_minigpt.psk", WIDE)
    handle = model.compile("loss_grad", {"B": 2, "T": 4}, dtype=dtype, tier="emit", unroll=True)
    assert ("out_dtype" in handle.source) == (dtype == "bf16")
    handle.bind(**{p.name: handle.example(p.name) for p in handle.function.params})
    handle()
    given, _ = handle.compiled.parts.prelude(tuple(x for p in handle.function.params for x in handle.bound[p.name]))
    traced = exported(handle.source, [spec(x) for x in given], "cpu")
    called = {str(n.target).removeprefix("aten.") for n in traced.graph.nodes}
    assert {f"_scaled_dot_product_{name}_attention{way}.default" for way in ("", "_backward")} <= called
    assert ("mm.dtype" in called) == (dtype == "bf16")
    calls.names.clear()
    with torch.inference_mode():
        found = torch.compile(traced.module(), fullgraph=True, dynamic=False, backend="aot_eager")(*given)
    assert calls.names == [name, f"{name}_back"]
    both = torch.cat([x.reshape(-1) for x in found]), handle.flats[0]
    assert float((both[0] - both[1]).abs().max()) <= (1e-6 if dtype == "f32" else 1e-2) * float(both[1].abs().max())


@pytest.mark.parametrize(("name", "dtype"), [("efficient", torch.float32), ("flash", torch.bfloat16)])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (32, 40)])
def test_results_have_the_shapes_that_torch_says(name: str, dtype: Any, queries: int, keys: int):
    """As products lay operands out: heads between positions and width."""
    q, k, v, ct = (
        torch.empty(2, n, 3, 16, dtype=dtype, device="meta").transpose(1, 2) for n in (queries, keys, keys, queries)
    )
    call = f"torch.ops.aten._scaled_dot_product_{name}_attention"
    operator = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention")
    back = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention_backward")
    efficient = name == "efficient"
    made = operator(q, k, v, *((None, True, 0.0, False) if efficient else (0.0, False, False)), scale=0.5)
    lengths = (None, None, queries, keys, 0.0, False)
    kept = (None, *made[:4], 0.0, (True, True, True, False)) if efficient else (*made[:2], *lengths, *made[6:8])
    slopes = back(ct, q, k, v, *kept, scale=0.5)
    arrays = [_array(x) for x in (q, k, v, ct)]
    agree(CALLS[call].result(*arrays[:3]), made)
    agree(CALLS[f"{call}_backward"].result(arrays[3], *arrays[:3]), slopes)


def _array(x: Any) -> Array:
    return fresh(x.shape, str(x.dtype).removeprefix("torch.")).viewed(tuple(x.shape), x.stride())


def agree(predicted: tuple[Array | None, ...], made: tuple[Any, ...]) -> None:
    assert len(predicted) == len(made)
    for p, x in zip(predicted, made, strict=True):
        if p is not None:
            assert (p.sizes, p.strides, p.dtype) == (tuple(x.shape), x.stride(), str(x.dtype).removeprefix("torch."))
        else:
            assert not isinstance(x, torch.Tensor)
