"""Literals and files of arguments: what is read exactly, and what is refused by name."""

import json
import struct
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.diagnostics import PreskError
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.inputs import prepare
from presk_rel.exec.literals import argument, arguments, literal, number
from presk_rel.exec.render import store, to_arrays, to_json
from presk_rel.exec.values import Tensor, leaves

from .programs import MLP, program
from .test_inputs import IDENTITY, code, message

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
    ["", "1 2", "[1",
     "1]", "[1)", "()", ",", "[,1]", "[1,,2]", "1e99999", "0x10", "nan", "inf", "[1] [2]", "true1", "1/3",
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
    assert "pickle" not in message(raised.value)


def test_a_missing_file_and_an_object_array_are_refused(tmp_path: Path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "c.npy", np.array([1j]))
    for name in ("none.npy", "o.npy", "c.npy"):
        with pytest.raises(PreskError) as raised:
            from_file(tmp_path / name)
        assert code(raised.value) == "E7012"


def _header(path: Path, text: str, version: bytes = b"\x01\x00") -> Path:
    body = text.encode() + b" " * 8 + b"\n"
    path.write_bytes(b"\x93NUMPY" + version + len(body).to_bytes(2, "little") + body + bytes(16))
    return path


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (print('run'),)}", "its header does not describe an array"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (lambda: 0,)}", "its header does not describe an array"),
        ("\\{{{{", "its header does not describe an array"),
        ("{'descr': '<f8', 'shape': (2,)}", "its header does not describe an array"),
        ("{'descr': 'O', 'fortran_order': False, 'shape': (2,)}", "it holds Python objects"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}", "its header says the shape [-2]"),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,)}",
            "its header says the shape [99999999999], of",
        ),
    ],
)
def test_a_header_of_numpy_that_is_none_is_said_in_words(header: str, said: str, tmp_path: Path, capsys: Any):
    """Neither run nor shown with the address that Python's parser puts in its message; in an archive likewise."""
    for path in (_header(tmp_path / "h.npy", header), tmp_path / "h.npz"):
        if path.suffix == ".npz":
            with zipfile.ZipFile(path, "w") as archive:
                archive.write(tmp_path / "h.npy", "x.npy")
        with pytest.raises(PreskError) as raised:
            arguments([f"x=@{path}"])
        assert f"cannot be read: {said}" in raised.value.diagnostics[0].message
        assert "0x" not in raised.value.diagnostics[0].message
    assert not capsys.readouterr().out


def test_other_versions_of_numpys_format_are_refused(tmp_path: Path):
    with pytest.raises(PreskError, match=r"version 9\.0 of numpy's format"):
        arguments([f"x=@{_header(tmp_path / 'v.npy', '{}', version=bytes([9, 0]))}"])
