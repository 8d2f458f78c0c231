"""Spec, "Dimensions" and "Facts and assertions"."""

from __future__ import annotations

import pytest

from tests.types.programs import accepted, check


@pytest.mark.parametrize(
    ("dim", "form"),
    [
        ("4*D", "4*D"),
        ("D + E", "D + E"),
        ("2*D - 1", "2*D - 1"),
        ("D*3 / 3", "D"),
        ("12*D / 4", "3*D"),
        ("D - E + E", "D"),
    ],
)
def test_a_dimension_is_a_linear_form(dim: str, form: str) -> None:
    checked = accepted(f"dim D\ndim E\nfn f(x : ℝ[{dim}]) -> ℝ[{dim}] = x\n")
    assert checked.result("f") == f"ℝ[{form}]"


def test_equal_forms_are_one_type_however_they_are_written() -> None:
    accepted("dim D\nfn f(x : ℝ[2*D + D]) -> ℝ[3*D] = x\n")


@pytest.mark.parametrize("dim", ["D*E", "D*D", "4 / D", "D / E"])
def test_products_and_quotients_of_symbols_are_outside_the_fragment(dim: str) -> None:
    assert check(f"dim D\ndim E\nfn f(x : ℝ[{dim}]) -> ℝ[] = sum(x)\n").codes == ["E1007"]


def test_a_division_needs_to_be_exact_for_all_values() -> None:
    checked = check("dim D\nfn f(x : ℝ[D / 12]) -> ℝ[] = sum(x)\n")
    assert checked.codes == ["E1030"]
    assert checked.only.counterexample == (("D", 1),)


@pytest.mark.parametrize("dim", ["2 - 3", "7 / 2", "1 / 0"])
def test_a_length_is_a_natural_number(dim: str) -> None:
    assert check(f"fn f(x : ℝ[{dim}]) -> ℝ[] = sum(x)\n").codes == ["E1028"]


@pytest.mark.parametrize("dim", ["D % 2", "0.5", "f", "D == D", '"a"'])
def test_other_expressions_are_no_dimensions(dim: str) -> None:
    assert check(f"dim D\nfn f(x : ℝ[{dim}]) -> ℝ[] = sum(x)\n").codes == ["E1026"]


def test_numbers_end_at_ten_to_the_eighteenth() -> None:
    assert check("fn f(x : ℝ[" + "9" * 5000 + "]) -> ℝ[] = sum(x)\n").codes == ["E1029"]
    text = "const A = 10 * 100000000000000000\n" + "".join(
        f"const A{i} = {'A' if i == 0 else f'A{i - 1}'} * 1000\n" for i in range(9)
    )
    assert check(text).codes == ["E1029"]


def test_no_argument_is_the_length_of_another() -> None:
    found = check("fn f(n : nat, x : ℝ[n]) -> ℝ[n] = x\n").only
    assert (found.code, found.help) == (
        "E1026",
        "make it a dimension, {n : dim}, which its uses as a number may read too",
    )
    assert accepted("fn f{n : dim}(x : ℝ[n]) -> ℝ[n] = x * real(n)\n").result("f") == "ℝ[n]"


def test_an_undeclared_dimension_of_a_signature_is_implicit() -> None:
    checked = check("fn f(x : ℝ[batch: N, model: M]) -> ℝ[batch: N] = sum(axis model, x)\n")
    assert checked.codes == ["W0001", "W0001"]
    assert checked.fn("f").dims == ("N", "M")
    assert checked.text_at(checked.diagnostics[0]) == "N"


def test_an_undeclared_dimension_of_a_module_is_an_error() -> None:
    checked = check("module M {\n  param w : ℝ[N]\n  fn apply(x : ℝ[3]) -> ℝ[3] = x\n}\n")
    assert len(checked.codes) == 1 and checked.codes[0].startswith("E")


def test_dims_of_a_function_are_its_parameters_then_the_file_dims_in_order_of_appearance() -> None:
    checked = accepted("dim A\ndim B\nfn f{E : dim, D : dim}(x : ℝ[B, D], y : ℝ[A, E]) -> ℝ[] = sum(x) + sum(y)\n")
    assert checked.fn("f").dims == ("E", "D", "B", "A")


def test_a_type_parameter_does_not_capture_the_dim_that_an_alias_mentions() -> None:
    text = "dim D\ntype Acts = ℝ[model: D]\nfn f{D : dim}(x : Acts, y : ℝ[other: D]) -> ℝ[model: D] = x\n"
    assert check(text).codes == ["E2003"]


# ------------------------------------------------------------------------------------------------------ assertions


@pytest.mark.parametrize(
    "condition", ["D + 1 > D", "2*D >= D", "T <= 1024", "T < 1025", "D == D", "6*D % 3 == 0", "768 % 12 == 0", "2 <= 3"]
)
def test_a_true_assertion_is_silent(condition: str) -> None:
    accepted(f"dim D\ndim T <= 1024\nstatic assert {condition}\n")


@pytest.mark.parametrize(
    ("condition", "example"),
    [
        ("D % 12 == 0", {"D": 1}),
        ("D <= 3", {"D": 4}),
        ("D < 3", {"D": 3}),
        ("D > 0", {"D": 0}),
        ("D == 4*D", {"D": 1}),
        ("T <= 1000", {"T": 1001}),
        ("D + T >= 1", {"D": 0, "T": 0}),
    ],
)
def test_a_false_assertion_shows_the_smallest_counterexample(condition: str, example: dict[str, int]) -> None:
    checked = check(f"dim D\ndim T <= 1024\nstatic assert {condition}\n")
    assert checked.codes == ["E1004"]
    assert dict(checked.only.counterexample or ()) == example
    assert checked.text_at(checked.only) == condition


def test_a_false_assertion_on_constants() -> None:
    checked = check("const D = 768\nstatic assert D % 7 == 0\n")
    assert checked.codes == ["E1004"]
    assert checked.only.counterexample is None


@pytest.mark.parametrize("condition", ["D", "D + 1", "D % D == 0", "D % 0 == 0", "D % 2 == 1", "D % 2 < 1"])
def test_other_assertions_are_refused(condition: str) -> None:
    assert check(f"dim D\nstatic assert {condition}\n").codes == ["E1040"]


def test_an_assertion_adds_no_fact() -> None:
    assert check("dim D\nstatic assert D % 12 == 0\nfn f(x : ℝ[D / 12]) -> ℝ[] = sum(x)\n").codes == ["E1004", "E1030"]


def test_dims_of_a_member_function_are_the_modules_parameters_its_own_and_the_file_dims() -> None:
    text = (
        "dim T\nmodule M{D : dim} {\n  param w : ℝ[T, D]\n"
        "  fn apply{E : dim}(x : ℝ[E, T]) -> ℝ[E, D] = x · w\n}\n"
        "fn f(θ : params N, x : ℝ[5, T]) -> ℝ[5, 2] = M{2}.apply(θ, x)\nmodel N = M{2}\n"
    )
    checked = accepted(text)
    assert checked.fn("M.apply").dims == ("D", "E", "T")
    call = checked.fn("f").body
    assert [(n, str(d)) for n, d in call.dim_args] == [("D", "2"), ("E", "5"), ("T", "T")]  # type: ignore[union-attr]
