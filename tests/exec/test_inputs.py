"""Arguments: literals, files, dims, synthesis; every refusal names the argument."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from presk_rel.core.initializers import initializers
from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.diagnostics.catalogue import CATALOGUE
from presk_rel.exec import inputs, keys
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.inputs import prepare
from presk_rel.exec.memory import memory_limit
from presk_rel.exec.render import to_arrays, to_json
from presk_rel.exec.values import IndexTensor, MaskTensor, Tensor, TreeValue, leaves

from .programs import MLP, program

IDENTITY = "fn f{N}(x : ℝ[N]) -> ℝ[N] {\n  return x\n}"
MIXED = """
fn f{N V}(x : ℝ[batch: N], t : idx[V][batch: N], m : bool[N], k : key, p : (ℝ[], key), n : nat) -> ℝ[batch: N] {
  return x
}
"""
BOUNDED = "dim T <= 8\nfn f{T}(x : ℝ[T]) -> ℝ[T] {\n  return x\n}"
HALVES = "fn f{D}(x : ℝ[D / 2]) -> ℝ[] {\n  y : ℝ[] = sum x\n  return y\n}"


def refused(text: str, nodes: dict[str, Any] | None = None, entry: str = "f", **dims: int) -> PreskError:
    with pytest.raises(PreskError) as raised:
        run_exact(program(text), entry, nodes or {}, dims)
    assert raised.value.diagnostics[0].code in CATALOGUE
    return raised.value


def code(error: PreskError) -> str:
    return error.diagnostics[0].code


def message(error: PreskError) -> str:
    return error.diagnostics[0].message


# --------------------------------------------------------------------------------------------------- shapes and values


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_real_number_is_refused_with_its_place(bad: float):
    error = refused(IDENTITY, {"x": np.array([1.0, bad])})
    assert code(error) == "E7013"
    assert "[1]" in message(error)
    assert "`x`" in message(error)


@pytest.mark.parametrize(
    "node",
    [
        Fraction(1),
        [[Fraction(1)]],
        [Fraction(1), [Fraction(2)]],
        [True],
        np.array([True]),
        ["a"],
        {"y": 1, "z": 2},
        "1",
    ],
)
def test_wrong_shapes_and_kinds_are_refused(node: Any):
    error = refused(IDENTITY, {"x": node})
    assert code(error) == "E7013"
    assert "`x`" in message(error)


MIXED_ARGS: dict[str, Any] = {"n": Fraction(3), "t": [Fraction(0), Fraction(4)]}


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("t", [Fraction(0), Fraction(5)]), ("t", [Fraction(-1), Fraction(0)]), ("t", [Fraction(1, 2)] * 2),
        ("t", np.array([0.0, 1.0])), ("m", [Fraction(1), Fraction(0)]), ("m", np.array([1, 0])), ("k", Fraction(-1)),
        ("k", "zz"), ("p", [Fraction(1)]), ("n", Fraction(-1)), ("n", Fraction(1, 2)), ("n", [Fraction(1)]),
        ("n", True),
        ("t", [Fraction(2**70), Fraction(0)]),
    ],
)  # fmt: skip
def test_other_arguments_are_refused_by_name(name: str, node: Any):
    error = refused(MIXED, {**MIXED_ARGS, name: node}, V=5)
    assert code(error) == "E7013"
    assert f"`{name}`" in message(error)


def test_all_kinds_of_arguments_are_accepted():
    nodes = {
        **MIXED_ARGS, "m": [True, False], "k": Fraction(7), "p": [Fraction(1, 3), "ab" * 32], "x": np.array([1, 2]),
    }  # fmt: skip
    bound, args = prepare(program(MIXED), "f", nodes, {"V": 5}, 0)
    assert bound.env.dims == {"N": 2, "V": 5}
    assert to_json(args[3])["data"] == keys.master(7).hex()


def test_missing_fields_and_extra_fields_of_a_tree():
    linear = {"w": np.ones((2, 8)), "b": np.ones(8)}
    for node, word in [
        ({"l1": linear}, "l2"),
        ({"l1": linear, "l2": {"w": np.ones((8, 2))}}, "b"),
        ({"l1": linear, "l2": linear, "l3": linear}, "l3"),
        ([1], "named"),
        ({"l1": np.ones(2), "l1.w": np.ones(2)}, "l1"),
    ]:
        error = refused(MLP, {"θ": node}, entry="mse", B=1, D=2)
        assert code(error) == "E7013"
        assert word in message(error)


# ----------------------------------------------------------------------------------------------------------------- dims


def test_dims_come_from_shapes_and_options():
    x = np.ones((3, 5))
    result = run_exact(program(MLP), "mse", {"x": x}, {})
    assert result.dims == {"B": 3, "D": 5}


def test_dims_are_solved_through_linear_forms():
    text = "fn f{N}(x : ℝ[4*N + 1]) -> ℝ[4*N + 1] {\n  return x\n}"
    assert run_exact(program(text), "f", {"x": np.ones(9)}, {}).dims == {"N": 2}
    error = refused(text, {"x": np.ones(8)})
    assert code(error) == "E7015"
    assert "4*N + 1 = 8" in message(error)


def test_contradictions_say_where_each_value_comes_from():
    error = refused(MLP, {"x": np.ones((2, 3)), "y": np.ones((2, 4))}, entry="mse")
    assert code(error) == "E7015"
    assert "axis 1 of `y`" in message(error)
    assert "axis 1 of `x`" in (error.diagnostics[0].help or "")
    error = refused(IDENTITY, {"x": np.ones(3)}, N=4)
    assert code(error) == "E7015"
    assert "--dim N=4" in (error.diagnostics[0].help or "")


def test_unbound_unknown_and_impossible_dims():
    unbound = refused(MLP, {}, entry="mse", B=2)
    assert (code(unbound), "--dim D=N" in (unbound.diagnostics[0].help or "")) == ("E7016", True)
    assert code(refused(IDENTITY, {}, M=2)) == "E7010"
    assert code(refused(IDENTITY, {"z": 1}, N=2)) == "E7010"
    assert code(refused(BOUNDED, {}, T=9)) == "E7017"
    assert code(refused(BOUNDED, {}, T=-1)) == "E7017"
    assert code(refused(HALVES, {}, D=5)) == "E7017"
    assert code(refused("fn f{V}(t : idx[V][2]) -> ℝ[2] {\n  y : ℝ[2] = real t\n  return y\n}", {}, V=0)) == "E7003"
    assert code(refused("fn f{N}(x : ℝ[N]) -> ℝ[] {\n  y : ℝ[] = mean x\n  return y\n}", {}, N=0)) == "E7003"


def test_no_such_entry_suggests_names():
    error = refused(MLP, {}, entry="mse_grd", B=2, D=2)
    assert (code(error), error.exit_status) == ("E7018", 2)
    assert "`mse_grad`" in (error.diagnostics[0].help or "")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (10**6, "exact reals at its peak: about 2"),
        (10**9, "a tensor of 1,000,000,000 · 4,000,000,000 entries"),
        (2**60, "beyond 2^57"),
    ],
)
def test_what_cannot_fit_is_refused_with_the_numbers_before_anything_is_made(size: int, words: str):
    error = refused(MLP, {}, entry="mse_grad", B=2, D=size)
    assert (code(error), error.exit_status) == ("E7006", 3)
    assert words in message(error)


FILLED = """
fn f{N M}(x : ℝ[]) -> ℝ[] {
  a : ℝ[N, M] = ones
  b : ℝ[M, N] = ones
  c : ℝ[N, N] = dot a, b
  y : ℝ[] = sum c
  return y
}
fn g{N M}(x : ℝ[]) -> ℝ[N, M] {
  a : ℝ[N, M] = zeros
  return a
}
fn step(acc : nat) -> nat {
  y : nat = mul acc, acc
  return y
}
fn h{N M}(n : nat) -> nat {
  y : nat = fold N step(stacked ; acc n)
  return y
}
fn p{N M}(n : nat) -> nat {
  y : nat = pow 1000000000 n
  return y
}
"""


@pytest.mark.parametrize("entry", ["f", "g"])
@pytest.mark.parametrize("size", [10**6, 10**9, 2**61])
def test_tensors_that_repeat_one_entry_are_refused_where_they_are_written_out(entry: str, size: int):
    error = refused(FILLED, {}, entry=entry, N=size, M=size)
    assert (code(error), error.exit_status) == ("E7006", 3)


def test_hyperparameters_do_not_grow_without_end():
    assert code(refused(FILLED, {"n": Fraction(3)}, entry="h", N=10**12, M=1)) == "E7006"
    assert code(refused(FILLED, {"n": Fraction(3)}, entry="p", N=1, M=1)) == "E7006"


def test_a_limit_of_memory_may_be_given():
    with pytest.raises(PreskError) as raised:
        run_exact(program(MLP), "mse", {}, {"B": 2, "D": 4}, options=Options(memory=1000))
    assert code(raised.value) == "E7006"
    assert memory_limit() > 2**20


@pytest.mark.parametrize("ty", ["ℝ[N]", "idx[7][N]", "(ℝ[], ℝ[N])"])
def test_what_does_not_fit_in_memory_is_not_drawn(ty: str):
    """At 8 µs for each entry, drawing until memory ends would take days."""
    text = f"fn f{{N}}(x : {ty}) -> {ty} {{\n  return x\n}}"
    for entries in (10**10, 10**15):
        with pytest.raises(PreskError, match=r"drawing the .* entries of `x.* takes .*iB, of .*iB allowed") as raised:
            prepare(program(text), "f", {}, {"N": entries}, 0)
        assert (code(raised.value), raised.value.exit_status) == ("E7006", 3)


def test_what_just_fits_in_memory_is_drawn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inputs, "memory_limit", lambda: 10 * inputs.DRAWN)
    text = "fn f{N}(x : ℝ[N]) -> ℝ[N] {\n  return x\n}"
    _, (x,) = prepare(program(text), "f", {}, {"N": 10}, 0)
    assert isinstance(x, Tensor)
    assert x.data.shape == (10,)
    with pytest.raises(PreskError, match="drawing the 11 entries"):
        prepare(program(text), "f", {}, {"N": 11}, 0)


# ------------------------------------------------------------------------------------------------------------ synthesis


def test_missing_arguments_are_drawn_one_key_per_parameter_in_order():
    _, args = prepare(program(MIXED), "f", {"n": Fraction(1)}, {"N": 4, "V": 9}, 42)
    own = keys.split(keys.master(42), 6)
    x, t, m, k, p = args[:5]
    assert isinstance(x, Tensor)
    assert isinstance(t, IndexTensor)
    assert isinstance(m, MaskTensor)
    assert (x.data == keys.standard_normal(own[0], 4)).all()
    assert (t.data == keys.below(own[1], 4, 9)).all()
    assert m.data.all()
    assert to_json(k)["data"] == own[3].hex()
    assert to_json(p.items[1])["data"] == keys.split(own[4], 2)[1].hex()  # type: ignore[union-attr]


def test_a_given_argument_does_not_change_the_others():
    mlp = program(MLP)
    _, drawn = prepare(mlp, "mse", {}, {"B": 2, "D": 3}, 7)
    _, some = prepare(mlp, "mse", {"x": np.ones((2, 3))}, {}, 7)
    assert (drawn[2].data == some[2].data).all()  # type: ignore[union-attr]


def test_a_hyperparameter_has_to_be_given():
    error = refused(MIXED, {}, N=1, V=1)
    assert (code(error), "`n`" in message(error)) == ("E7014", True)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range(seed: int):
    with pytest.raises(PreskError) as raised:
        run_exact(program(IDENTITY), "f", {}, {"N": 1}, seed)
    assert (code(raised.value), raised.value.exit_status) == ("E7020", 2)


def test_parameters_are_what_the_modules_init_gives():
    mlp: Program = program(MLP)
    dims = {"D": 2, "hidden": 8}
    _, args = prepare(mlp, "mse", {}, {"B": 1, "D": 2}, 3)
    first = keys.split(keys.master(3), 3)[0]
    made = run_exact(mlp, "MLP.init", {"key": first.hex()}, dims).value
    assert isinstance(args[0], TreeValue)
    arrays = to_arrays(made)
    for path, leaf in leaves(args[0]):
        assert isinstance(leaf, Tensor)
        assert (arrays[path] == leaf.data).all()


STACKS = """
module Linear{In Out} {
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]  init = normal(std = 0.02)
}
module Tower{D} {
  param scale : ℝ[]  init = xavier_uniform
  use layers : stack{3}(Linear{D, D})
  use none : stack{0}(Linear{D, D})
  use both : Linear{D, 2} ∘ Linear{4, D}
  param shift : ℝ[D]  init = ones
}
fn f{D}(θ : params Tower{D}) -> params Tower{D} {
  return θ
}
"""


def test_stacks_and_compositions_are_what_the_lowered_init_gives():
    """The initializer that lowering writes as PSK-Core, and the tree that is synthesized, draw the same numbers."""
    read = program(STACKS)
    with_inits = Program(read.modules, {**read.functions, **initializers(read.modules)})
    _, (tree,) = prepare(with_inits, "f", {}, {"D": 2}, 9)
    key = keys.split(keys.master(9), 1)[0]
    made = to_arrays(run_exact(with_inits, "Tower.init", {"key": key.hex()}, {"D": 2}).value)
    drawn = {path: leaf.data for path, leaf in leaves(tree) if isinstance(leaf, Tensor)}
    assert list(made) == list(drawn)
    for path, array in made.items():
        assert array.shape == drawn[path].shape
        assert (array == drawn[path]).all()
    assert made["layers.w"].shape == (3, 2, 2)
    assert (made["layers.w"][0] != made["layers.w"][1]).any()


# ------------------------------------------------------------------------------------- axes before any number of others

OPEN = """
fn same{L D}(h : ℝ[L, ..., D], x : ℝ[..., D]) -> (ℝ[L, ..., D], ℝ[..., D]) {
  y : (ℝ[L, ..., D], ℝ[..., D]) = (h, x)
  return y
}
"""


@pytest.mark.parametrize("lead", [(), (2,), (2, 1)])
def test_a_stack_of_any_number_of_leading_axes_says_its_count_and_these(lead: tuple[int, ...]) -> None:
    result = run_exact(program(OPEN), "same", {"h": np.ones((3, *lead, 2))}, {})
    assert dict(result.dims) == {"L": 3, "D": 2}
    assert [leaf.axes for _, leaf in leaves(result.value) if isinstance(leaf, Tensor)] == [
        tuple((None, n) for n in (3, *lead, 2)),
        tuple((None, n) for n in (*lead, 2)),
    ]


def test_a_stack_with_too_few_axes_or_other_leading_ones_is_refused() -> None:
    assert "at least 2 axes" in message(refused(OPEN, {"h": np.ones(3)}, "same"))
    error = refused(OPEN, {"h": np.ones((3, 4, 2)), "x": np.ones((5, 2))}, "same")
    assert code(error) == "E7015"
    assert "`...` stands for [4] and for [5]" in message(error)
