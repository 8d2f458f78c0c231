"""What moves entries, and contractions by name: against numpy on exact fractions."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp

from presk_rel.core.ir import Program
from presk_rel.exec import keys
from presk_rel.exec.exact.run import Options, RunResult, run_exact
from presk_rel.exec.render import to_json
from presk_rel.exec.values import IndexTensor, MaskTensor, Tensor, Value

from .oracle import agree, texts
from .programs import program, single

KERNELS = pytest.mark.parametrize("kernel", ["balls", "mpmath"])


def run(found: Program, dims: Mapping[str, int], kernel: Any = "balls", **given: Any) -> RunResult:
    nodes = {name: np.asarray(value) for name, value in given.items()}
    return run_exact(found, "f", nodes, dims, options=Options(kernel=kernel))


def exact(value: Value) -> Any:
    assert isinstance(value, Tensor)
    return np.vectorize(Fraction, otypes=[object])(value.data)


def same(result: RunResult, expected: Any) -> bool:
    """Every digit of the result is that of an array of fractions of its shape."""
    expected = np.asarray(expected, dtype=object)
    assert isinstance(result.value, Tensor)
    assert result.value.data.text.shape == expected.shape
    with mp.workprec(500):
        return agree(result.value, [mpmath.mpf(q.numerator) / q.denominator for q in expected.ravel()], result.digits)


# --------------------------------------------------------------------------------------------------------------- views

X = "ℝ[batch: 2, seq: T, model: 6]"
VIEWS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "merge axis batch axis seq": ("ℝ[2*T, model: 6]", lambda x: x.reshape(-1, 6)),
    "split axis model a: 2 b: 3": ("ℝ[batch: 2, seq: T, a: 2, b: 3]", lambda x: x.reshape(*x.shape[:2], 2, 3)),
    "split_heads 2x3": (
        "ℝ[batch: 2, heads: 2, seq: T, hd: 3]",
        lambda x: np.stack([x[:, :, 0:3], x[:, :, 3:6]], axis=1),
    ),
    "index seq: -1": ("ℝ[batch: 2, model: 6]", lambda x: x[:, -1]),
    "index 0: 1": ("ℝ[seq: T, model: 6]", lambda x: x[1]),
    "index seq: T - 2": ("ℝ[batch: 2, model: 6]", lambda x: x[:, 1]),
    "slice model: 1..4": ("ℝ[batch: 2, seq: T, model: 3]", lambda x: x[:, :, 1:4]),
    "slice 1: 0..T - 1": ("ℝ[batch: 2, seq: T - 1, model: 6]", lambda x: x[:, :-1]),
    "slice model: 2..2": ("ℝ[batch: 2, seq: T, model: 0]", lambda x: x[:, :, 2:2]),
}  # fmt: skip


@KERNELS
@pytest.mark.parametrize("view", VIEWS)
def test_views(view: str, kernel: Any):
    result, meaning = VIEWS[view]
    ran = run(single(f"x : {X}", result, f"{view} x", "T"), {"T": 3}, kernel)
    assert same(ran, meaning(exact(ran.args[0])))


def test_merge_heads_undoes_split_heads_and_reshape_like_undoes_reshape_like():
    text = """
fn f{T}(x : ℝ[2, seq: T, model: 6]) -> (ℝ[2, seq: T, model: 6], ℝ[2, seq: T, model: 6]) {
  s : ℝ[2, heads: 3, seq: T, hd: 2] = split_heads 3x2 x
  m : ℝ[2, seq: T, model: 6] = merge_heads 3x2 s
  t : ℝ[2*T, 6] = zeros
  r : ℝ[2*T, 6] = reshape_like x, t
  b : ℝ[2, seq: T, model: 6] = reshape_like r, x
  out : (ℝ[2, seq: T, model: 6], ℝ[2, seq: T, model: 6]) = (m, b)
  return out
}"""
    ran = run(program(text), {"T": 4})
    expected = [mpmath.mpf(float(e)) for e in exact(ran.args[0]).ravel()]
    assert agree(ran.value, expected * 2, ran.digits)


def test_selections_of_indices_and_masks():
    found = single("t : idx[9][a: N, b: 3]", "idx[9][a: N]", "index b: -1 t", "N")
    value = run(found, {"N": 2}, t=[[1, 2, 3], [4, 5, 6]]).value
    assert isinstance(value, IndexTensor)
    assert to_json(value)["data"] == [3, 6]
    found = single("m : bool[a: N, b: 3]", "bool[a: N, b: 2]", "slice b: 1..3 m", "N")
    value = run(found, {"N": 1}, m=[[True, False, True]]).value
    assert isinstance(value, MaskTensor)
    assert to_json(value)["data"] == [[False, True]]


def test_a_selection_under_a_prefix_counts_from_behind_it():
    found = single("x : ℝ[..., 2, seq: 3]", "ℝ[..., seq: 3]", "index 0: 1 x")
    x = np.arange(24.0).reshape(4, 2, 3)
    ran = run_exact(found, "f", {"x": x}, {})
    assert same(ran, np.vectorize(Fraction, otypes=[object])(x[:, 1]))


@KERNELS
@pytest.mark.parametrize(("op", "part"), [("scatter_index b: -2", "ℝ[a: 2]"), ("slice_vjp b: 1..3", "ℝ[a: 2, b: 2]")])
def test_adjoints_of_selections_place_into_zeros(op: str, part: str, kernel: Any):
    found = single(f"ct : {part}, x : ℝ[a: 2, b: 4]", "ℝ[a: 2, b: 4]", f"{op} ct, x")
    ran = run(found, {}, kernel)
    expected = np.full((2, 4), Fraction(0))
    expected[:, 2 if op.startswith("scatter") else slice(1, 3)] = exact(ran.args[0])
    assert same(ran, expected)


@KERNELS
def test_concat(kernel: Any):
    found = single("x : ℝ[a: N, b: 2], y : ℝ[a: N, b: 3]", "ℝ[a: N, b: 5]", "concat b x, y", "N")
    ran = run(found, {"N": 3}, kernel)
    assert same(ran, np.concatenate([exact(ran.args[0]), exact(ran.args[1])], axis=1))


# -------------------------------------------------------------------------------------------------------- contractions

CONTRACTIONS = [
    # scores of attention, its product with the values, a matrix product, an outer product, a product entry by entry,
    # sums of axes that occur once, a permutation, a scalar, three operands.
    ("b h s d, b h z d -> b h s z", ["b h s d", "b h z d"]),
    ("b h s z, b h z d -> b h s d", ["b h s z", "b h z d"]),
    ("i k, k j -> i j", ["i k", "k j"]),
    ("i, j -> i j", ["i", "j"]),
    ("i j, i j -> i j", ["i j", "i j"]),
    ("b i, b i -> b", ["b i", "b i"]),
    ("i j, i j ->", ["i j", "i j"]),
    ("i j, k -> j", ["i j", "k"]),
    ("i j k -> k i", ["i j k"]),
    ("i j ->", ["i j"]),
    ("i k, k m, m j -> j i", ["i k", "k m", "m j"]),
    ("i, i, i -> i", ["i", "i", "i"]),
    ("k i b, j b k -> i b j", ["k i b", "j b k"]),
]  # fmt: skip
LENGTHS = {"b": 2, "h": 2, "s": 3, "z": 3, "d": 2, "i": 2, "j": 3, "k": 4, "m": 2}


def contraction(spec: str, operands: list[str]) -> Program:
    params = ", ".join(f"x{i} : {typed(names)}" for i, names in enumerate(operands))
    args = ", ".join(f"x{i}" for i in range(len(operands)))
    return single(params, typed(spec.partition("->")[2]), f"ein [{spec}] {args}")


def typed(names: str) -> str:
    return f"ℝ[{', '.join(f'{n}: {LENGTHS[n]}' for n in names.split())}]"


@KERNELS
@pytest.mark.parametrize(("spec", "operands"), CONTRACTIONS)
def test_ein_is_the_sum_of_products(spec: str, operands: list[str], kernel: Any):
    ran = run(contraction(spec, operands), {}, kernel)
    expected = np.einsum(spec.replace(" ", ""), *(exact(a) for a in ran.args), optimize=False)
    assert same(ran, expected)


def test_a_contraction_over_nothing_is_zero():
    found = single("x : ℝ[i: 2, k: N], y : ℝ[k: N, j: 2]", "ℝ[i: 2, j: 2]", "ein [i k, k j -> i j] x, y", "N")
    assert texts(run(found, {"N": 0}).value) == ["0"] * 4


# ---------------------------------------------------------------------------------------------------------- stacks

STACKED = """
module Pair{{N}} {{
  param u : ℝ[N]  init = zeros
  param v : ℝ[]  init = zeros
}}
fn f{{L N}}(p : params stack{{L}}(Pair{{N}}), q : params Pair{{N}}) -> {result} {{
  out : {result} = {operation}
  return out
}}"""
LAYERS = {"u": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "v": np.array([7.0, 8.0, 9.0])}
LAYER = {"u": np.array([-1.0, -2.0]), "v": np.array(-3.0)}


def stacked(result: str, operation: str) -> Any:
    found = program(STACKED.format(result=result, operation=operation))
    return to_json(run_exact(found, "f", {"p": LAYERS, "q": LAYER}, {}).value)


def test_slices_of_parameter_trees():
    tree = stacked("params Pair{N}", "slice_params 1 p")
    assert (tree["u"]["data"], tree["v"]["data"]) == (["3", "4"], "8")
    tree = stacked("params stack{L}(Pair{N})", "set_slice L - 1 p, q")
    assert (tree["u"]["data"], tree["v"]["data"]) == ([["1", "2"], ["3", "4"], ["-1", "-2"]], ["7", "8", "-3"])
    tree = stacked("params stack{L}(Pair{N})", "scatter_params 0 q, p")
    assert (tree["u"]["data"], tree["v"]["data"]) == ([["-1", "-2"], ["0", "0"], ["0", "0"]], ["-3", "0", "0"])


def test_the_squared_norm_of_a_tree():
    assert stacked("ℝ[]", "sum_squares p")["data"] == str(sum(n * n for n in range(1, 10)))
    assert stacked("ℝ[]", "sum_squares q")["data"] == "14"


TREES = """
module Pair{N} {
  param u : ℝ[N]  init = zeros
  param v : ℝ[]  init = zeros
}
fn f{N}(p : params Pair{N}, s : ℝ[]) -> (params Pair{N}, params Pair{N}, params Pair{N}) {
  a : params Pair{N} = pow 2 p
  b : params Pair{N} = mul s, a
  c : params Pair{N} = sqrt b
  d : params Pair{N} = add p, s
  e : params Pair{N} = div s, p
  out : (params Pair{N}, params Pair{N}, params Pair{N}) = (c, d, e)
  return out
}"""


def test_arithmetic_of_trees_with_a_scalar_and_entry_by_entry():
    given = {"p": {"u": np.array([1.0, 2.0]), "v": np.array(4.0)}, "s": np.array(16.0)}
    trees = to_json(run_exact(program(TREES), "f", given, {}).value)
    assert [t["u"]["data"] for t in trees] == [["4", "8"], ["17", "18"], ["16", "8"]]
    assert [t["v"]["data"] for t in trees] == ["16", "20", "4"]


KEYS = """
fn step(acc : (ℝ[], key), k : ℝ[]) -> (ℝ[], key) uses Rand {
  x : ℝ[] = acc.0
  key : key = acc.1
  pair : (key, key) = split_key 2 key
  first : key = pair.0
  second : key = pair.1
  z : ℝ[] = normal 1 first
  y : ℝ[] = add x, z
  out : (ℝ[], key) = (y, second)
  return out
}
fn f(x : ℝ[], k : key) -> ((ℝ[], key), (ℝ[3], key[3])) uses Rand {
  acc : (ℝ[], key) = (x, k)
  out : ((ℝ[], key), (ℝ[3], key[3])) = fold 3 step(stacked ; acc acc; x) scan
  return out
}"""


def test_keys_are_stacked_as_the_sequence_of_the_layers_keys():
    ran = run_exact(program(KEYS), "f", {"x": Fraction(0)}, {})
    _, history = to_json(ran.value)
    assert len({k["data"] for k in history[1]}) == 3


def test_a_missing_stack_of_keys_is_one_key_split_once_per_layer():
    found = single("k : key[L]", "key", "slice_params 2 k", "L")
    ran = run_exact(found, "f", {}, {"L": 3})
    assert to_json(ran.value)["data"] == keys.split(keys.split(keys.master(0), 1)[0], 3)[2].hex()
