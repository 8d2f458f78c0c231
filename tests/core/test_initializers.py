"""`M.init`, the initializer of every module (spec: "Initializers")."""

from __future__ import annotations

import pytest

from presk_rel.core.initializers import MAX_LAYERS, initializer_problem, initializers
from presk_rel.core.inline import inline_entry
from presk_rel.core.ir import Program
from presk_rel.core.printer import print_function
from presk_rel.core.verify import problems
from presk_rel.elab.ty import Applied, Composed, Init, Instance, ModuleDef, ParamField, Stacked, UseField
from presk_rel.smt.linear import Linear, constant, symbol
from tests.core.typed import LINEAR, MLP, D, real


def program(*modules: ModuleDef) -> Program:
    table = {m.name: m for m in modules}
    out = Program(table, initializers(table))
    assert problems(out) == []
    return out


def text(name: str, *modules: ModuleDef) -> str:
    out = program(*modules)
    return print_function(out.functions[f"{name}.init"], out)


def module(name: str, *instances: Instance) -> ModuleDef:
    return ModuleDef(name, ("D",), 1, tuple(UseField(f"m{i}", m) for i, m in enumerate(instances)))


CELL = Applied("Linear", (D, D))
NORM = ModuleDef("Norm", ("D",), 1, (ParamField("γ", real(D), Init("ones")), ParamField("β", real(D), Init("zeros"))))


def test_splits_the_key_once_per_field_in_order() -> None:
    assert (
        text("MLP", LINEAR, MLP)
        == """\
fn MLP.init{D hidden}(key : key) -> params MLP{D, hidden} uses Rand {
  %1 : (key, key) = split_key 2 key
  %2 : key = %1.0
  l1 : params Linear{D, hidden} = call Linear.init{In = D, Out = hidden}(%2)
  %4 : key = %1.1
  l2 : params Linear{hidden, D} = call Linear.init{In = hidden, Out = D}(%4)
  %6 : params MLP{D, hidden} = record l1, l2
  return %6
}"""
    )


def test_a_field_that_draws_nothing_still_has_its_place_in_the_split() -> None:
    first = ModuleDef(
        "F", ("D",), 1, (ParamField("b", real(D), Init("zeros")), ParamField("w", real(D), Init("normal", "0.02")))
    )
    assert (
        text("F", first)
        == """\
fn F.init{D}(key : key) -> params F{D} uses Rand {
  %1 : (key, key) = split_key 2 key
  b : ℝ[D] = zeros
  %3 : key = %1.1
  w : ℝ[D] = normal 0.02 %3
  %5 : params F{D} = record b, w
  return %5
}"""
    )


def test_without_a_random_initializer_nothing_is_split() -> None:
    assert (
        text("Two", NORM, module("Two", Applied("Norm", (D,))))
        == """\
fn Two.init{D}(key : key) -> params Two{D} {
  m0 : params Norm{D} = call Norm.init{D = D}(key)
  %2 : params Two{D} = record m0
  return %2
}"""
    )


def test_a_stack_splits_its_key_once_per_layer() -> None:
    assert (
        text("S", LINEAR, module("S", Stacked(constant(2), CELL)))
        == """\
fn S.init{D}(key : key) -> params S{D} uses Rand {
  %1 : (key) = split_key 1 key
  %2 : key = %1.0
  %3 : (key, key) = split_key 2 %2
  %4 : key = %3.0
  %5 : params Linear{D, D} = call Linear.init{In = D, Out = D}(%4)
  %6 : key = %3.1
  %7 : params Linear{D, D} = call Linear.init{In = D, Out = D}(%6)
  m0 : params stack{2}(Linear{D, D}) = stack_params %5, %7
  %9 : params S{D} = record m0
  return %9
}""".replace("(key) =", "(key,) =")
    )


def test_a_stack_of_none_has_leaves_of_length_0() -> None:
    assert "  m0 : params stack{0}(Linear{D, D}) = stack_params\n" in text(
        "S", LINEAR, module("S", Stacked(constant(0), CELL))
    )


def test_a_composition_initializes_both() -> None:
    out = program(LINEAR, module("C", Composed(CELL, Stacked(constant(1), CELL))))
    flat = inline_entry(out, "C.init")
    assert problems(flat) == []
    assert "record" in print_function(flat.functions["C.init"], flat)


def test_a_deep_chain_of_modules() -> None:
    chain = [LINEAR, *(module(f"M{i}", Applied(f"M{i - 1}", (D,)) if i else CELL) for i in range(3000))]
    table = {m.name: m for m in chain}
    assert initializers(table)["M2999.init"].uses == ("Rand",)


class TestE5002:
    @pytest.mark.parametrize("count", [symbol("L"), constant(MAX_LAYERS + 1)])
    def test_a_stack_that_cannot_be_counted_has_no_initializer(self, count: Linear) -> None:
        tower = ModuleDef("Tower", ("D", "L"), 2, (UseField("layers", Stacked(count, CELL)),))
        user = ModuleDef("User", ("D", "L"), 2, (UseField("tower", Applied("Tower", (D, symbol("L")))),))
        table = {m.name: m for m in (LINEAR, tower, user)}
        assert list(initializers(table)) == ["Linear.init"]
        for name in ("Tower", "User"):
            found = initializer_problem(table, Applied(name, (D, symbol("L"))))
            assert found is not None and found.code == "E5002"
            assert f"stack{{{count}}}" in found.message
        assert initializer_problem(table, CELL) is None

    def test_an_instance_can_be_the_stack(self) -> None:
        found = initializer_problem({"Linear": LINEAR}, Stacked(symbol("L"), CELL))
        assert found is not None and "stack{L}" in found.message
