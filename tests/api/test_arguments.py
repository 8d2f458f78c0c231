"""What a compiled function takes for an argument, and what it says of anything else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import presk_rel
from presk_rel.api.handle import Handle
from presk_rel.api.program import Program
from presk_rel.diagnostics import PreskError

TEXT = """
const V : nat = 5
dim B
module M {
  param w : ℝ[V, 2]  init = normal(std = 1.0)
}
fn table(w : ℝ[V, 2], t : idx[V][b: B]) -> ℝ[b: B, 2] = embed(w, t)
fn number(t : idx[V][b: B]) -> ℝ[b: B] = real(t)
fn place(t : idx[B][b: B]) -> ℝ[b: B] = real(t)
fn entropy_grad(x : ℝ[b: B, V], t : idx[V][b: B]) -> ℝ[b: B, V] = grad(λ x. sum(cross_entropy(x, t)))(x)
fn soft(x : ℝ[b: B, v: V], m : bool[v: V]) -> ℝ[b: B, v: V] = softmax(axis v, x, where = m)
fn drop(k : key, x : ℝ[b: B]) -> ℝ[b: B] uses Rand = dropout(0.5, k, x)
fn scale(x : ℝ[b: B], n : nat, i : int, a : f64) -> ℝ[b: B] = x * real(n) + real(i) + real(a)
fn loss(θ : params M, t : idx[V][b: B]) -> ℝ[] = sum(embed(θ.w, t)^2)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("arguments") / "p.psk"
    path.write_text(TEXT, encoding="utf-8")
    return presk_rel.load(path)


def compiled(program: Program, entry: str, **options: Any) -> Handle:
    return program.compile(entry, dims={"B": 2}, dtype="f64", **options)


OTHERS: dict[str, tuple[Any, ...]] = {
    "table": (torch.ones(5, 2),),
    "number": (),
    "place": (),
    "entropy_grad": (torch.ones(2, 5),),
}


@pytest.mark.parametrize("entry", OTHERS)
@pytest.mark.parametrize("bad", [-1, 7, -100])
def test_an_index_outside_its_bound_is_refused(program: Program, entry: str, bad: int) -> None:
    last = 1 if entry == "place" else 4
    with pytest.raises(ValueError, match=f"`t` : idx.* holds indices from 0 to {last}, not {bad}"):
        compiled(program, entry)(*OTHERS[entry], torch.tensor([0, bad]))


def test_a_module_refuses_it_too_and_torch_func_does_not_look(program: Program) -> None:
    module = compiled(program, "loss").to_torch()
    with pytest.raises(ValueError, match="holds indices from 0 to 4, not 5"):
        module(torch.tensor([5, 0]))
    found = torch.vmap(module)(torch.tensor([[0, 1], [4, 4]]))
    assert torch.allclose(found, torch.stack([module(torch.tensor(t)) for t in ([0, 1], [4, 4])]), rtol=1e-14)


@pytest.mark.parametrize("bad", [torch.tensor([0.0, 1.0]), [0, 1.7], np.array([0.0, 1.0], dtype=np.float32)])
def test_an_index_is_an_integer_whatever_a_float_holds(program: Program, bad: Any) -> None:
    with pytest.raises(TypeError, match=r"`t` : idx\[5\]\[b: B\] holds integers, not float"):
        compiled(program, "number")(bad)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.int64])
def test_an_index_is_any_integer(program: Program, kind: torch.dtype) -> None:
    assert compiled(program, "number")(torch.tensor([4, 0], dtype=kind)).tolist() == [4.0, 0.0]


def test_a_mask_is_truth_values_or_integers_that_stand_for_them(program: Program) -> None:
    soft, x = compiled(program, "soft"), torch.zeros(2, 5)
    assert soft(x, torch.tensor([1, 0, 1, 0, 0]))[0].tolist() == [0.5, 0.0, 0.5, 0.0, 0.0]
    with pytest.raises(TypeError, match="holds truth values, not float32"):
        soft(x, torch.tensor([0.5, 0, 0, 0, 0]))


def test_a_key_is_a_seed_of_any_integer_type_or_its_bytes(program: Program) -> None:
    drop, x = compiled(program, "drop", mode="training"), torch.ones(2)
    assert torch.equal(drop(3, x), drop(np.int64(3), x))
    assert torch.equal(drop(3, x), drop(torch.tensor(3), x))
    for bad in ("x", 1.5, None, [1, 2]):
        with pytest.raises(TypeError, match="`k` : key is a seed, a natural below 2\\^64, or 32 bytes, not a "):
            drop(bad, x)
    with pytest.raises(ValueError, match="a key has 32 bytes, not 3"):
        drop(b"abc", x)
    with pytest.raises(ValueError, match="a seed is a natural below 2\\^64, not -1"):
        drop(-1, x)


@pytest.mark.parametrize("a", [0.5, "0.5", Fraction(1, 2), np.float32(0.5), torch.tensor(0.5)])
def test_a_hyperparameter_is_any_number(program: Program, a: Any) -> None:
    scale = compiled(program, "scale", like={"n": 0, "i": 0, "a": 0.0})
    assert scale([1.0, 2.0], np.int64(3), -1, a).tolist() == [2.5, 5.5]


@pytest.mark.parametrize(
    ("n", "i", "a", "kind"),
    [(-1, 0, 0, ValueError), (2.5, 0, 0, ValueError), (1, 0.5, 0, ValueError), (1, 0, float("nan"), ValueError),
     (1, 0, float("inf"), ValueError), (None, 0, 0, TypeError), (1, 0, [1], TypeError), (1, "x", 0, ValueError)],
)  # fmt: skip
def test_a_hyperparameter_of_another_kind_is_refused(
    program: Program, n: Any, i: Any, a: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=r"`[nia]` : "):
        compiled(program, "scale", like={"n": 0, "i": 0, "a": 0.0})([1.0, 2.0], n, i, a)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "train"}, "mode is inference or training, not 'train'"),
        ({"tier": "fast"}, "tier is auto, emit or inductor, not 'fast'"),
        ({"dtype": torch.float32}, "dtype is f64, f32 or bf16, not torch.float32"),
        ({"dims": {"B": 2.5}}, "the dim B is a natural, not 2.5"),
        ({"dims": {"B": "2"}}, "the dim B is a natural, not '2'"),
    ],
)
def test_an_option_that_is_none_is_wrong_usage(program: Program, options: Any, said: str) -> None:
    with pytest.raises(PreskError) as refused:
        program.compile("number", **{"dims": {"B": 2}, **options})
    (found,) = refused.value.diagnostics
    assert (found.code, found.message, refused.value.exit_status) == ("E7000", said, 2)


@pytest.mark.parametrize("options", [{"mode": "train"}, {"engine": "fast"}])
def test_load_says_it_before_anything_is_read(options: Any) -> None:
    with pytest.raises(PreskError) as refused:
        presk_rel.load("nothing.psk", **options)
    assert refused.value.diagnostics[0].code == "E7000"


def test_a_dim_is_any_integer(program: Program) -> None:
    assert program.compile("number", dims={"B": np.int64(2)}).dims == {"B": 2}


@pytest.mark.parametrize("of", [copy.copy, copy.deepcopy, pickle.dumps])
def test_handles_and_programs_are_not_copied(program: Program, of: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="compile the entry again"):
        of(compiled(program, "number"))
    with pytest.raises(TypeError, match="load the file again"):
        of(program)


def test_a_module_that_cannot_move_stays_what_it_was(program: Program) -> None:
    module, t = compiled(program, "loss").to_torch(), torch.tensor([0, 3])
    before = module(t)
    with pytest.raises(TypeError, match="not in float16"):
        module.half()
    assert {p.dtype for p in module.parameters()} == {torch.float64}
    assert torch.equal(module(t), before)


def test_a_module_shows_its_function_and_the_shapes_of_its_trees(program: Program) -> None:
    text = repr(compiled(program, "loss").to_torch())
    assert "loss{B}(θ : params M, t : idx[5][b: B]) -> ℝ[]" in text
    assert "(w): (5, 2)" in text
