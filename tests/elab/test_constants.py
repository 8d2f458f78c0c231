"""Spec, "Constants": exact, in order of declaration, naturals only, `--const`."""

from __future__ import annotations

import pytest

from presk_rel.diagnostics import PreskError
from tests.types.programs import accepted, check


def constants(text: str, **consts: int) -> dict[str, int]:
    program = accepted(text, consts=consts).program
    assert program is not None
    return program.constants


def test_constants_are_computed_exactly_from_earlier_ones() -> None:
    text = "const D = 768\nconst H : nat = 12\nconst HD = D / H\nconst E = 4*D + 1 - H\n"
    assert constants(text) == {"D": 768, "H": 12, "HD": 64, "E": 3061}


def test_intermediate_values_may_be_fractions() -> None:
    assert constants("const A = 7 / 2 * 2\n") == {"A": 7}


def test_a_quotient_that_is_no_natural_is_refused() -> None:
    checked = check("const D = 768\nconst HD = D / 7\n")
    assert checked.codes == ["E1020"]
    assert checked.text_at(checked.only) == "D / 7"
    assert "768 / 7" in checked.only.message


@pytest.mark.parametrize("value", ["2 - 3", "0.5", "-1"])
def test_only_naturals_are_constants(value: str) -> None:
    assert check(f"const A = {value}\n").codes == ["E1020"]


def test_a_constant_has_the_type_nat() -> None:
    assert check("const A : f64 = 1\n").codes == ["E1021"]


def test_a_constant_is_declared_before_its_use() -> None:
    assert check("const A = B\nconst B = 1\n").codes == ["E1022"]


def test_a_constant_with_an_error_is_silent_where_it_is_used() -> None:
    assert check("const A = 1 / 3\nconst B = A + 1\nfn f(x : ℝ[A]) -> ℝ[B] = x\n").codes == ["E1020"]


def test_a_constant_may_not_depend_on_a_dimension() -> None:
    assert check("dim T\nconst A = T + 1\n").codes == ["E1020"]


def test_const_on_the_command_line_replaces_a_value_before_it_is_used() -> None:
    assert constants("const D = 768\nconst E = 2*D\n", D=4) == {"D": 4, "E": 8}


def test_const_reaches_an_imported_file_by_its_alias() -> None:
    files = {"m.psk": "const V = 10\n"}
    checked = accepted('import "m.psk" as m\nfn f(x : ℝ[m.V]) -> ℝ[m.V] = x\n', files, {"m.V": "64"})
    assert checked.result("f") == "ℝ[64]"


@pytest.mark.parametrize(("name", "value"), [("E", 1), ("D", -1), ("D", "x"), ("m.D", 2), ("D", 10**30)])
def test_a_wrong_const_is_wrong_usage(name: str, value: str | int) -> None:
    with pytest.raises(PreskError) as error:
        check("const D = 1\n", consts={name: value})
    assert error.value.exit_status == 2
    assert error.value.diagnostics[0].code == "E1023"


def test_constants_never_remain_symbolic() -> None:
    checked = accepted("const D = 3\nfn f(x : ℝ[batch: 2*D]) -> ℝ[batch: 6] = x\n")
    assert checked.result("f") == "ℝ[batch: 6]"
