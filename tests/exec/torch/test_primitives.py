"""Every primitive of PSK-Core on torch, against its proven value."""

import numpy as np
import pytest

from presk_rel.core.prims import PRIMS
from presk_rel.exec.torch.ops import HYPER, ROWS, WRITTEN_OUT
from presk_rel.exec.torch.structure import STRUCTURE

from ..programs import program
from .against import agrees, on_torch

SQUARE = "x : ℝ[a: A, b: B], y : ℝ[a: A, b: B], v : ℝ[b: B], u : ℝ[a: A], s : ℝ[]"
LOGITS = "l : ℝ[batch: A, seq: B, V], t : idx[V][batch: A, seq: B], k : key, w : ℝ[V, B]"
HEADS = "q : ℝ[batch: A, heads: 2, seq: B, hd: 3], p : ℝ[batch: A, heads: 2, seq2: B, hd: 3]"
HYPERS = "n : nat, m : nat, r : rat"
STACKS = "z : ℝ[3, b: B], x : ℝ[b: B], k : key"

CASES: dict[str, tuple[str, str, str]] = {
    **{op: (SQUARE, "ℝ[a: A, b: B]", f"{op} x") for op in ("gelu", "relu", "tanh", "sigmoid", "sin", "cos", "abs")},
    **{op: (SQUARE, "ℝ[a: A, b: B]", f"{op} x") for op in ("gelu'", "normal_pdf", "heaviside", "sign", "exp", "neg")},
    **{op: (SQUARE, "ℝ[a: A, b: B]", f"{op} x, y") for op in ("add", "sub", "mul", "div", "max", "min")},
    **{f"{op} last": (SQUARE, "ℝ[a: A, b: B]", f"{op} x, v") for op in ("add", "sub", "mul", "div", "max", "min")},
    **{f"{op} first": (SQUARE, "ℝ[a: A, b: B]", f"{op} u, x") for op in ("add", "sub", "mul", "max")},
    **{f"{op} scalar": (SQUARE, "ℝ[a: A, b: B]", f"{op} s, x") for op in ("add", "sub", "mul", "div", "min")},
    **{op: (SQUARE, "bool[a: A, b: B]", f"{op} x, v") for op in ("lt", "le", "gt", "ge", "eq")},
    **{f"{op} hyper": (HYPERS, "bool", f"{op} n, m") for op in ("lt", "le", "gt", "ge", "eq")},
    **{f"{op} hyper": (HYPERS, "nat", f"{op} n, m") for op in ("add", "mul")},
    "div hyper": (HYPERS, "int", "div n, m"),
    "sub hyper": (HYPERS, "int", "sub n, m"),
    "neg hyper": (HYPERS, "int", "neg n"),
    "pow hyper": (HYPERS, "rat", "pow 3 r"),
    "real hyper": (HYPERS, "ℝ[]", "real r"),
    "real idx": (LOGITS, "ℝ[batch: A, seq: B]", "real t"),
    "pow": (SQUARE, "ℝ[a: A, b: B]", "pow 3 x"),
    "square": (SQUARE, "ℝ[a: A, b: B]", "pow 2 x"),
    "dot": (SQUARE, "ℝ[a: A]", "dot x, v"),
    "dot_vjp_l": (SQUARE, "ℝ[a: A, b: B]", "dot_vjp_l u, v"),
    "dot_vjp_r": (SQUARE, "ℝ[b: B, B]", "dot_vjp_r x, y"),
    "mean": (SQUARE, "ℝ[]", "mean x"),
    "mean axis": (SQUARE, "ℝ[b: B]", "mean axis a x"),
    "sum": (SQUARE, "ℝ[]", "sum x"),
    "sum axis": (SQUARE, "ℝ[a: A]", "sum axis b x"),
    "mean_vjp": (SQUARE, "ℝ[a: A, b: B]", "mean_vjp s, x"),
    "mean_vjp axis": (SQUARE, "ℝ[a: A, b: B]", "mean_vjp axis b u, x"),
    "broadcast_like": (SQUARE, "ℝ[a: A, b: B]", "broadcast_like u, x"),
    "broadcast_like axis": (SQUARE, "ℝ[a: A, b: B]", "broadcast_like axis a v, x"),
    "sum_to": (SQUARE, "ℝ[a: A]", "sum_to x, u"),
    "zeros_like": (SQUARE, "ℝ[a: A, b: B]", "zeros_like x"),
    "ones_like": (SQUARE, "ℝ[a: A, b: B]", "ones_like x"),
    "zeros": (SQUARE, "ℝ[a: A, b: B]", "zeros"),
    "ones": (SQUARE, "ℝ[a: A, b: B]", "ones"),
    "const": (SQUARE, "ℝ[]", "const 0.1"),
    "pi": (SQUARE, "ℝ[]", "pi"),
    "sum_squares": (SQUARE, "ℝ[]", "sum_squares x"),
    "dim": (SQUARE, "nat", "dim 2*A + B"),
    "softmax": (SQUARE, "ℝ[a: A, b: B]", "softmax axis a x"),
    "softmax last": (SQUARE, "ℝ[a: A, b: B]", "softmax axis b x"),
    "embed": (LOGITS, "ℝ[batch: A, seq: B, B]", "embed w, t"),
    "one_hot": (LOGITS, "ℝ[batch: A, seq: B, V]", "one_hot t"),
    "cross_entropy": (LOGITS, "ℝ[batch: A, seq: B]", "cross_entropy l, t"),
    "argmax": (LOGITS, "idx[V][batch: A, seq: B]", "argmax l"),
    "sample": (LOGITS, "idx[V][batch: A, seq: B]", "sample k, l"),
    "dropout_mask": (LOGITS, "ℝ[batch: A, seq: B, V]", "dropout_mask 0.3 k, l"),
    "normal": (LOGITS, "ℝ[batch: A, seq: B]", "normal 0.02 k"),
    "xavier_uniform": (LOGITS, "ℝ[V, B]", "xavier_uniform k"),
    "split_key": (LOGITS, "(key, key)", "split_key 2 k"),
    "positions": (SQUARE, "idx[A][seq: A]", "positions"),
    "causal_mask": (SQUARE, "bool[seq: A, seq2: A]", "causal_mask"),
    "index": (LOGITS, "ℝ[batch: A, V]", "index seq: -1 l"),
    "index place": (LOGITS, "idx[V][seq: B]", "index 0: 1 t"),
    "slice": (LOGITS, "ℝ[batch: A, seq: B - 1, V]", "slice seq: 1..B l"),
    "split": ("x : ℝ[a: A, b: 6, c: B]", "ℝ[a: A, m: 2, n: 3, c: B]", "split axis b m: 2 n: 3 x"),
    "merge": ("x : ℝ[c: A, a: 2, b: 3]", "ℝ[c: A, 6]", "merge axis a axis b x"),
    "reshape_like": ("x : ℝ[c: A, a: 2, b: 3], y : ℝ[c: A, 6]", "ℝ[c: A, 6]", "reshape_like x, y"),
    "split_heads": ("x : ℝ[a: A, seq: B, 6]", "ℝ[a: A, heads: 2, seq: B, hd: 3]", "split_heads 2x3 x"),
    "merge_heads": (HEADS, "ℝ[batch: A, seq: B, 6]", "merge_heads 2x3 q"),
    "concat": (SQUARE, "ℝ[a: 2*A, b: B]", "concat a x, y"),
    "slice_params": (STACKS, "ℝ[b: B]", "slice_params 2 z"),
    "scatter_params": (STACKS, "ℝ[3, b: B]", "scatter_params 1 x, z"),
    "set_slice": (STACKS, "ℝ[3, b: B]", "set_slice 0 z, x"),
    "stack_params": (STACKS, "ℝ[2, b: B]", "stack_params x, x"),
    "stack_params of keys": (STACKS, "key[2]", "stack_params k, k"),
    "ein scores": (
        HEADS,
        "ℝ[batch: A, heads: 2, seq: B, seq2: B]",
        "ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq seq2] q, p",
    ),
    "ein transposed": (
        HEADS,
        "ℝ[batch: A, heads: 2, seq2: B, seq: B]",
        "ein [batch heads seq hd, batch heads seq2 hd -> batch heads seq2 seq] q, p",
    ),
    "ein sums": (HEADS, "ℝ[heads: 2, seq: B]", "ein [batch heads seq hd -> heads seq] q"),
    "ein of three": (SQUARE, "ℝ[b: B]", "ein [a b, a b, a -> b] x, y, u"),
}
DIMS = {"A": 3, "B": 4, "V": 5}


@pytest.mark.parametrize("case", CASES)
def test_primitive(case: str):
    params, result, text = CASES[case]
    dims = {d: n for d, n in DIMS.items() if d in params + result + text}
    found = program(
        f"fn f{{{' '.join(dims)}}}({params}) -> {result}{_effect(text)} {{\n  out : {result} = {text}\n  return out\n}}"
    )
    given = {"n": 7, "m": 2, "r": 0.375} if params == HYPERS else {}
    agrees(found, "f", dims, given)


def _effect(text: str) -> str:
    drawn = ("sample", "dropout_mask", "normal 0", "xavier_uniform", "split_key")
    return " uses Rand" if text.startswith(drawn) else ""


COMPOUND = """
module Linear{In Out} {
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]  init = normal(std = 1)
}
fn adjoints{A B V}(l : ℝ[batch: A, seq: B, V], t : idx[V][batch: A, seq: B], w : ℝ[V, B])
    -> (ℝ[V, B], ℝ[batch: A, seq: B, V], ℝ[batch: A, seq: B, V], ℝ[batch: A, seq: B, V]) {
  %3 : ℝ[batch: A, seq: B, B] = embed w, t
  %4 : ℝ[V, B] = embed_vjp %3, t, w
  %5 : ℝ[batch: A, seq: B] = cross_entropy l, t
  %6 : ℝ[batch: A, seq: B, V] = cross_entropy_vjp %5, l, t
  %7 : ℝ[batch: A, V] = index seq: 1 l
  %8 : ℝ[batch: A, seq: B, V] = scatter_index seq: 1 %7, l
  %9 : ℝ[batch: A, seq: 2, V] = slice seq: 1..3 l
  %10 : ℝ[batch: A, seq: B, V] = slice_vjp seq: 1..3 %9, l
  %11 : (ℝ[V, B], ℝ[batch: A, seq: B, V], ℝ[batch: A, seq: B, V], ℝ[batch: A, seq: B, V]) = (%4, %6, %8, %10)
  return %11
}
fn masked{A B}(q : ℝ[a: A, seq: B, seq2: B], m : bool[a: A]) -> (ℝ[a: A, seq: B, seq2: B], ℝ[a: A, seq: B, seq2: B]) {
  %2 : bool[seq: B, seq2: B] = causal_mask
  %3 : ℝ[a: A, seq: B, seq2: B] = softmax axis seq2 q, %2
  %4 : ℝ[a: A, seq: B, seq2: B] = softmax axis a q, m
  %5 : (ℝ[a: A, seq: B, seq2: B], ℝ[a: A, seq: B, seq2: B]) = (%3, %4)
  return %5
}
fn learned_positions{A B}(w : ℝ[seq: A, B], ct : ℝ[seq: A, B]) -> (ℝ[seq: A, B], ℝ[seq: A, B]) {
  %2 : idx[A][seq: A] = positions
  %3 : ℝ[seq: A, B] = embed w, %2
  %4 : ℝ[seq: A, B] = embed_vjp ct, %2, w
  %5 : (ℝ[seq: A, B], ℝ[seq: A, B]) = (%3, %4)
  return %5
}
fn trees{A}(θ : params Linear{A, A}, c : ℝ[], k : key)
    -> (ℝ[], params Linear{A, A}, params Linear{A, A}, (params Linear{A, A}, ())) {
  %3 : params Linear{A, A} = mul θ, c
  %4 : params Linear{A, A} = sub %3, θ
  %5 : params Linear{A, A} = pow 2 %4
  %6 : params Linear{A, A} = sqrt %5
  %7 : params Linear{A, A} = add %6, c
  %8 : params Linear{A, A} = div %4, %7
  %9 : ℝ[] = sum_squares %8
  %10 : params Linear{A, A} = neg %8
  %11 : (params Linear{A, A}, key) = (θ, k)
  %12 : (params Linear{A, A}, ()) = zeros_like %11
  %13 : (ℝ[], params Linear{A, A}, params Linear{A, A}, (params Linear{A, A}, ())) = (%9, %8, %10, %12)
  return %13
}
fn prefixed{D}(x : ℝ[..., model: D], y : ℝ[..., model: D]) -> ℝ[..., model: D] {
  %2 : ℝ[...] = mean axis model x
  %3 : ℝ[..., model: D] = sub x, %2
  %4 : ℝ[..., model: D] = mul %3, y
  %5 : ℝ[...] = sum axis model %4
  %6 : ℝ[..., model: D] = mul %5, %3
  %7 : ℝ[..., model: D] = softmax axis model %6
  return %7
}
fn constant{A}(x : ℝ[a: A]) -> (ℝ[a: A], ℝ[]) {
  %1 : ℝ[a: A] = ones
  %2 : ℝ[] = const 0.1
  %3 : ℝ[a: A] = mul %1, %2
  %4 : ℝ[] = sqrt %2
  %5 : ℝ[] = div %4, %2
  %6 : (ℝ[a: A], ℝ[]) = (%3, %5)
  return %6
}
"""


@pytest.mark.parametrize("entry", ["adjoints", "masked", "learned_positions", "trees", "constant"])
def test_several_primitives(entry: str):
    found = program(COMPOUND)
    function = found.functions[entry]
    given = {"m": [True, False, True]} if entry == "masked" else {}
    agrees(found, entry, {d: DIMS[d] for d in function.dims}, given)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 3, 3), (3, 3)])
def test_a_prefix_lines_up_by_its_axes_whatever_their_lengths(shape: tuple[int, ...]):
    x = np.arange(np.prod(shape)).reshape(shape) / 7
    agrees(program(COMPOUND), "prefixed", {}, {"x": np.sin(x), "y": np.cos(x)})


def test_learned_positions_read_their_table_as_it_is():
    found = on_torch(program(COMPOUND), "learned_positions", {"A": 3, "B": 4}, {})
    assert "embedding" not in found.source
    assert found.kernels == 2  # results have memory of their own


def test_every_primitive_has_its_row():
    assert set(PRIMS) == set(ROWS) | HYPER | STRUCTURE | WRITTEN_OUT
