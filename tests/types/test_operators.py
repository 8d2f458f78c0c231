"""Spec, "Operators" and "Literals": what mixes, what does not, and what a literal is."""

from __future__ import annotations

import pytest

from presk_rel.types.tree import TLiteral, TPrim
from tests.types.programs import Checked, check


def body(expr: str, **params: str) -> Checked:
    signature = ", ".join(f"{n} : {t}" for n, t in params.items())
    return check(f"const N = 64\ndim D\nfn f({signature}) =\n  {expr}\n")


def result(expr: str, **params: str) -> str:
    checked = body(expr, **params)
    assert not checked.diagnostics, checked.said()
    return checked.result("f")


# --------------------------------------------------------------------------------------------------- hyperparameters


@pytest.mark.parametrize(
    ("expr", "ty"),
    [
        ("n + n", "nat"),
        ("n * n", "nat"),
        ("n - n", "int"),
        ("n / n", "int"),
        ("-n", "int"),
        ("n ^ 2", "nat"),
        ("i + i", "int"),
        ("i - i", "int"),
        ("i / i", "int"),
        ("-i", "int"),
        ("x + x", "f64"),
        ("x - x", "f64"),
        ("x / x", "f64"),
        ("x ^ 3", "f64"),
        ("-x", "f64"),
        ("r * r", "rat"),
        ("n + 1", "nat"),
        ("1 + n", "nat"),
        ("x * 2", "f64"),
        ("2 * x", "f64"),
        ("0.5 * x", "f64"),
        ("7 / 2", "int"),
        ("2 + 3", "nat"),
        ("2 * 0.5", "f64"),
        ("N", "nat"),
        ("D", "nat"),
        ("D + 1", "nat"),
        ("D - 1", "int"),
        ("3", "nat"),
        ("0.5", "f64"),
        ("-3", "int"),
    ],
)
def test_numbers_of_one_type_stay_in_it(expr: str, ty: str) -> None:
    assert result(expr, n="nat", i="int", x="f64", r="rat") == ty


@pytest.mark.parametrize("expr", ["n + x", "n + i", "x * r", "n + 0.5", "0.5 * n", "k + k", "b + b", "(n, n) * n"])
def test_numbers_of_two_types_do_not_mix(expr: str) -> None:
    checked = body(expr, n="nat", i="int", x="f64", r="rat", k="key", b="bool")
    assert checked.codes == ["E2005"], checked.said()


@pytest.mark.parametrize("expr", ["n * x", "x + n", "N * x", "D * x", "i * x", "m + x", "x * t", "(7 / i) * x"])
def test_a_tensor_does_not_mix_with_what_is_not_real(expr: str) -> None:
    checked = body(expr, n="nat", i="int", x="ℝ[D]", m="bool[D]", t="idx[3][D]")
    assert checked.codes == ["E2005"], checked.said()
    assert checked.only.help is not None


@pytest.mark.parametrize(
    "expr", ["real(n) * x", "(n : ℝ) * x", "x / sqrt(N : ℝ)", "real(D) * x", "real(t) + x", "real(7 / 2) * x"]
)
def test_what_is_injected_does(expr: str) -> None:
    assert result(expr, n="nat", x="ℝ[D]", t="idx[3][D]") == "ℝ[D]"


# ----------------------------------------------------------------------------------------------------------- literals


@pytest.mark.parametrize(
    "expr",
    [
        "x + 1",
        "1 + x",
        "x * 0.5",
        "1 / 2 * x",
        "x * (1 / 2)",
        "2 * 3 * x",
        "2^3 * x",
        "-1 * x",
        "x + -1",
        "1e-5 + x",
        "1 - x - 2 / 3",
        "x * (1 + 2 * 3)",
        "(1 - 0.1) * x + 0.1 * x",
        "gelu(1) + x",
        "x - mean(2)",
        "x ^ 2 * 3",
        "(2 : ℝ) * x",
    ],
)
def test_a_literal_is_real_where_its_context_is(expr: str) -> None:
    assert result(expr, x="ℝ[D]") == "ℝ[D]"


def test_a_quotient_of_literals_is_real_division_in_a_real_context_and_an_integer_elsewhere() -> None:
    fn = body("x * (7 / 2)", x="ℝ[D]").fn("f").body
    assert isinstance(fn, TPrim) and str(fn.args[1].type) == "ℝ[]"
    injected = body("real(7 / 2)").fn("f").body
    assert isinstance(injected, TPrim) and str(injected.args[0].type) == "int"


def test_a_literal_bound_by_let_is_what_its_use_takes() -> None:
    assert result("let ε = 1e-5\n  x + ε", x="ℝ[D]") == "ℝ[D]"
    assert result("let n = 2\n  let m = n + N\n  m") == "nat"
    assert result("let half = 0.5\n  half * y", y="f64") == "f64"
    assert body("let c = 2\n  real(c) + c * x", x="ℝ[D]").codes == ["E2005"]


def test_a_declared_result_says_what_a_literal_is() -> None:
    for ty in ("ℝ[]", "ℝ", "nat", "f64", "int", "rat"):
        checked = check(f"fn f() -> {ty} = 1\n")
        assert not checked.diagnostics, checked.said()
    assert check("fn f() -> nat = 0.5\n").codes == ["E2003"]
    assert check("fn f() -> ℝ[3] = 0.5\n").codes == ["E2003"]


def test_literals_are_exact() -> None:
    literal = check("fn f() -> ℝ[] = 0.1\n").fn("f").body
    assert isinstance(literal, TLiteral) and literal.value.as_integer_ratio() == (1, 10)


def test_a_constant_is_a_literal_of_type_nat() -> None:
    literal = check("const N = 64\nfn f() = N\n").fn("f").body
    assert isinstance(literal, TLiteral) and (literal.value, str(literal.type)) == (64, "nat")


@pytest.mark.parametrize("text", ["1e999999999", "1" * 5000, "0." + "1" * 5000, "1e-99999"])
def test_numbers_beyond_reason_are_refused(text: str) -> None:
    assert body(f"x + {text}", x="ℝ[]").codes == ["E1029"]


# ------------------------------------------------------------------------------------------------- power, minus, others


@pytest.mark.parametrize("exponent", ["2", "0", "N", "1"])
def test_an_exponent_is_a_natural(exponent: str) -> None:
    assert result(f"x ^ {exponent}", x="ℝ[D]") == "ℝ[D]"


@pytest.mark.parametrize(
    ("exponent", "value"), [("2^3", 8), ("2^3^0", 2), ("(N / 32 + 1)", 3), ("(2 * 3 - 4)", 2), ("(-1)^500 ", 1)]
)
def test_an_exponent_is_put_together_of_naturals_and_constants(exponent: str, value: int) -> None:
    tree = body(f"x^{exponent}", x="ℝ[D]").fn("f").body
    assert isinstance(tree, TPrim) and (tree.op, tree.attrs) == ("pow", (value,))


@pytest.mark.parametrize(
    "exponent", ["-1", "0.5", "D", "n", "x", "(1, 2)", "(1 / 2)", "2^-1", "2^n", "(1 - 2)", "(1 / 0)"]
)
def test_other_exponents_are_refused(exponent: str) -> None:
    assert body(f"x ^ {exponent}", x="ℝ[D]", n="nat").codes == ["E2017"]


@pytest.mark.parametrize(
    ("base", "exponent"), [("x", "1000001"), ("n", "1001"), ("x", "9" * 30), ("x", "9^9^9^9"), ("x", "2^30")]
)
def test_exponents_beyond_reason_are_refused(base: str, exponent: str) -> None:
    assert body(f"{base} ^ {exponent}", x="ℝ[D]", n="nat").codes == ["E2017"]


@pytest.mark.parametrize("expr", ["t ^ 2", "-t", "m ^ 2", "-k"])
def test_power_and_minus_are_of_reals_and_numbers(expr: str) -> None:
    assert body(expr, t="idx[3][D]", m="bool[D]", k="key").codes == ["E2005"]


def test_minus_binds_looser_than_power() -> None:
    tree = body("-x^2", x="ℝ[D]").fn("f").body
    assert isinstance(tree, TPrim) and tree.op == "neg"


@pytest.mark.parametrize("op", ["⊗", "∘", "|"])
def test_operators_of_configuration_are_not_operators_of_values(op: str) -> None:
    assert body(f"x {op} x", x="ℝ[D]").codes == ["E2020"]


def test_trees_combine_leaf_by_leaf() -> None:
    text = "module M {\n  param w : ℝ[3]\n}\nfn step(θ : params M, g : params M) -> params M = θ - 0.1 * g\n"
    checked = check(text)
    assert not checked.diagnostics, checked.said()
    assert check(text.replace("θ - 0.1 * g", "θ * g")).codes == ["E2005"]


def test_strings_and_quantities_are_no_values() -> None:
    assert body('"a"').codes == ["E2025"]
    assert body("5ms").codes == ["E2025"]
