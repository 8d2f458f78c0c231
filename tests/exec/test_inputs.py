"""Arguments: literals, files, dims, synthesis; every refusal names the argument."""

import json
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.diagnostics.catalogue import CATALOGUE
from presk_rel.exec import keys
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.exact.sizes import memory_limit
from presk_rel.exec.inputs import prepare
from presk_rel.exec.literals import argument, arguments, literal, number
from presk_rel.exec.render import store, to_arrays, to_json, to_text
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


# ------------------------------------------------------------------------------------------------------------- literals


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)), ("-3", Fraction(-3)), ("+.5", Fraction(1, 2)), ("2.", Fraction(2)),
        ("1e-3", Fraction(1, 1000)), ("12.5E2", Fraction(1250)),
    ],
)  # fmt: skip
def test_numbers_are_exact(text: str, value: Fraction):
    assert number(text) == value
    assert literal("x", text) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20))
def test_every_decimal_is_read_exactly(d: Any):
    assert number(str(d)) == Fraction(d)


def test_lists_tuples_and_truth_values():
    assert literal("x", "[[1, 2], [3, 4,],]") == [[1, 2], [3, 4]]
    assert literal("x", "(1, [true, false])") == [1, [True, False]]
    assert literal("x", "[]") == []
    assert argument("ŷ = 2") == ("ŷ", 2)
    assert argument("x̂=2")[0] == "x̂"


@pytest.mark.parametrize(
    "text",
    ["", "1 2", "[1", "1]", "[1)", "()", ",", "[,1]", "[1,,2]", "1e99999", "0x10", "nan", "inf", "[1] [2]", "true1", "1/3",
     "[" * 40 + "]" * 40, "9" * 4001, "1e-10001", "..", "1.2.3", "@", "'a'", "١"],
)  # fmt: skip
def test_what_is_no_literal_is_refused_by_name(text: str):
    with pytest.raises(PreskError) as raised:
        argument(f"weights={text}")
    assert code(raised.value) in ("E7011", "E7012")
    assert "`weights`" in message(raised.value)


@settings(max_examples=200)
@given(st.text(max_size=30))
def test_no_text_gives_anything_but_a_value_or_a_diagnostic(text: str):
    try:
        argument("x=" + text)
    except PreskError as error:
        assert code(error) in ("E7011", "E7012")


def test_a_literal_of_a_million_digits_is_refused_at_once():
    for text in ("9" * 1_000_000, "[" * 1_000_000, "[" + "1," * 5_000_000 + "]" * 2, "0." + "1" * 1_000_000):
        with pytest.raises(PreskError):
            literal("x", text * (20 if text.startswith("[1") else 1))


def test_an_argument_is_given_once_and_has_a_name():
    for texts in (["x=1", "x=2"], ["x"], ["=1"]):
        with pytest.raises(PreskError) as raised:
            arguments(texts)
        assert code(raised.value) == "E7011"


# ---------------------------------------------------------------------------------------------------------------- files


def from_file(path: Path) -> Any:
    return argument(f"x=@{path}")[1]


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_floats_of_files_are_taken_exactly(tmp_path: Path, dtype: str):
    array = np.array([0.1, -2.5, 1e-7, 6e4], dtype=dtype)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", x=array, other=array)
    for name in ("a.npy", "a.npz"):
        result = run_exact(program(IDENTITY), "f", {"x": from_file(tmp_path / name)}, {}, options=Options(bits=300))
        assert [Fraction(t) for t in to_json(result.value)["data"]] == [Fraction(float(v)) for v in array]


def test_safetensors_and_bfloat16(tmp_path: Path):
    from safetensors.numpy import save_file

    save_file({"x": np.array([0.1, 2.0], dtype=np.float32)}, tmp_path / "a.safetensors")
    assert from_file(tmp_path / "a.safetensors")["x"].tolist() == [float(np.float32(0.1)), 2.0]
    header = json.dumps({"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    bf16 = struct.pack("<Q", len(header)) + header + bytes.fromhex("c03f00c0")
    (tmp_path / "b.safetensors").write_bytes(bf16)
    assert from_file(tmp_path / "b.safetensors")["x"].tolist() == [1.5, -2.0]


def test_json_numbers_are_exact_and_results_can_be_read_back(tmp_path: Path):
    (tmp_path / "a.json").write_text("[0.1, 1e-3, 7]")
    assert from_file(tmp_path / "a.json") == [Fraction(1, 10), Fraction(1, 1000), 7]
    first = run_exact(program(MLP), "mse_grad", {}, {"B": 1, "D": 2})
    (tmp_path / "g.json").write_text(json.dumps(to_json(first.value)))
    again = run_exact(program(MLP), "mse", {"θ": argument(f"θ=@{tmp_path / 'g.json'}")[1]}, {"B": 1})
    assert again.dims == {"B": 1, "D": 2}


def test_parameter_trees_come_from_named_arrays(tmp_path: Path):
    mlp = program(MLP)
    made = run_exact(mlp, "MLP.init", {}, {"D": 2, "hidden": 8})
    for name in ("p.npz", "p.safetensors"):
        store(made.value, tmp_path / name)
        node = argument(f"θ=@{tmp_path / name}")[1]
        given_tree = run_exact(mlp, "mse", {"θ": node}, {"B": 2})
        assert given_tree.dims["D"] == 2
        (_, (θ, _, _)) = prepare(mlp, "mse", {"θ": node}, {"B": 2}, 0)
        assert {path for path, _ in leaves(θ)} == {"l1.w", "l1.b", "l2.w", "l2.b"}
        for path, array in to_arrays(made.value).items():
            leaf = dict(leaves(θ))[path]
            assert isinstance(leaf, Tensor)
            assert (leaf.data == array).all()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.npy", b"not an array"), ("a.npz", b"not an archive"), ("a.safetensors", b"\xff" * 20), ("a.json", b"[1, "),
        ("a.json", b"NaN"), ("a.json", b"[" * 100_000), ("a.json", b"\xff\xfe"), ("a.txt", b"1"), ("a.npy", b""),
        ("a.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }   \n"),
        ("a.json", b"1e999999"), ("a.json", b"[" + b"9" * 5000 + b"]"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read_are_refused_by_name(tmp_path: Path, name: str, content: bytes):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PreskError) as raised:
        from_file(tmp_path / name)
    assert code(raised.value) == "E7012"
    assert "`x`" in message(raised.value)


def test_a_missing_file_and_an_object_array_are_refused(tmp_path: Path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "c.npy", np.array([1j]))
    for name in ("none.npy", "o.npy", "c.npy"):
        with pytest.raises(PreskError) as raised:
            from_file(tmp_path / name)
        assert code(raised.value) == "E7012"


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
        ("k", "zz"), ("p", [Fraction(1)]), ("n", Fraction(-1)), ("n", Fraction(1, 2)), ("n", [Fraction(1)]), ("n", True),
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
    assert code(refused(HALVES, {}, D=5)) == "E7017"
    assert code(refused("fn f{V}(t : idx[V][2]) -> ℝ[2] {\n  y : ℝ[2] = real t\n  return y\n}", {}, V=0)) == "E7003"
    assert code(refused("fn f{N}(x : ℝ[N]) -> ℝ[] {\n  y : ℝ[] = mean x\n  return y\n}", {}, N=0)) == "E7003"


def test_no_such_entry_suggests_names():
    error = refused(MLP, {}, entry="mse_grd", B=2, D=2)
    assert (code(error), error.exit_status) == ("E7018", 2)
    assert "`mse_grad`" in (error.diagnostics[0].help or "")


@pytest.mark.parametrize("dims", [{"B": 2, "D": 10**9}, {"B": 2, "D": 10**6}, {"B": 2, "D": 2**62 // 4}])
def test_what_cannot_fit_is_refused_with_the_numbers_before_anything_is_made(dims: dict[str, int]):
    error = refused(MLP, {}, entry="mse_grad", **dims)
    assert (code(error), error.exit_status) == ("E7006", 3)
    assert "exact reals at its peak" in message(error)
    assert "allowed" in message(error)


def test_a_limit_of_memory_may_be_given():
    with pytest.raises(PreskError) as raised:
        run_exact(program(MLP), "mse", {}, {"B": 2, "D": 4}, options=Options(memory=1000))
    assert code(raised.value) == "E7006"
    assert memory_limit() > 2**20


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


# --------------------------------------------------------------------------------------------------------------- results


def test_results_as_json():
    document = to_json(run_exact(program(MIXED.replace("return x", "return x")), "f", MIXED_ARGS, {"V": 5}).value)
    assert document["type"] == "ℝ[batch: 2]"
    assert document["axes"] == ["batch"]
    assert document["shape"] == [2]
    assert set(document) == {"type", "shape", "axes", "data", "error_bound", "zeros_below"}
    index = "fn f{V N}(t : idx[V][N], m : bool[a: N]) -> (idx[V][N], bool[a: N]) {\n"
    index += "  r : (idx[V][N], bool[a: N]) = (t, m)\n  return r\n}"
    node = {"t": [Fraction(1), Fraction(0)], "m": [True, False]}
    indices, mask = to_json(run_exact(program(index), "f", node, {"V": 5}).value)
    assert (indices["type"], indices["data"]) == ("idx[5][2]", [1, 0])
    assert (mask["type"], mask["data"]) == ("bool[a: 2]", [True, False])


def test_results_as_text_are_shortened_in_the_middle():
    result = run_exact(program(IDENTITY), "f", {"x": np.arange(2000)}, {}).value
    assert to_text(result) == "ℝ[2000]  (error ≤ 0) =\n  [0, 1, 2, …, 1997, 1998, 1999]"
    small = run_exact(program(IDENTITY), "f", {"x": [Fraction(1, 2), Fraction(1, 3)]}, {}, options=Options(digits=3))
    assert to_text(small.value) == "ℝ[2]  (error ≤ 5e-4) =\n  [0.5, 0.333]"


def test_results_are_stored(tmp_path: Path):
    result = run_exact(program(IDENTITY), "f", {"x": np.array([0.1, 0.2])}, {}).value
    store(result, tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as loaded:
        assert loaded["value"].tolist() == [0.1, 0.2]
    for path in (tmp_path / "r.txt", tmp_path / "no" / "r.npz"):
        with pytest.raises(PreskError) as raised:
            store(result, path)
        assert code(raised.value) == "E7012"
