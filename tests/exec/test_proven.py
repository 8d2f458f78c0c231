"""Whole-program correct rounding: ties, zeros, undefined operations, rising precision, what never changes."""

import json
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.exec import inputs
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.rounding import bound_text, round_rational
from presk_rel.exec.exact.run import Options, RunResult, digits_of, run_exact
from presk_rel.exec.exact.untyped import flint_context
from presk_rel.exec.literals import literal
from presk_rel.exec.render import to_json
from presk_rel.exec.values import Rounded, Tensor

from .oracle import agree, texts
from .programs import MLP, program


def scalar(*lines: str, params: str = "x : ℝ[]") -> Program:
    """`fn f(x : ℝ[]) -> ℝ[]` of scalar bindings `y = op …`, the last of which is the result."""
    body = "".join(f"  {line.replace(' = ', ' : ℝ[] = ', 1)}\n" for line in lines)
    last = lines[-1].split(" = ")[0]
    return program(f"fn f({params}) -> ℝ[] {{\n{body}  return {last}\n}}")


def run(found: Program, options: Options | None = None, **given: str) -> RunResult:
    return run_exact(found, "f", {n: literal(n, v) for n, v in given.items()}, {}, options=options)


def value(found: Program, options: Options | None = None, **given: str) -> str:
    return texts(run(found, options, **given).value)[0]


def error(found: Program, options: Options | None = None, **given: str) -> PreskError:
    with pytest.raises(PreskError) as raised:
        run(found, options, **given)
    return raised.value


def code(raised: PreskError) -> str:
    return raised.diagnostics[0].code


# ---------------------------------------------------------------------------------------------------------------- ties

TENTHS = ("a = const 0.1", "b = const 0.2", "s = add a, b", "d = sub x, s")


@pytest.mark.parametrize(("op", "expected"), [("heaviside", "0"), ("sign", "0"), ("relu", "0"), ("sqrt", "0")])
def test_a_tie_of_rationals_is_decided_exactly(op: str, expected: str):
    """0.3 - (0.1 + 0.2) is 0, but no ball around it is."""
    assert value(scalar(*TENTHS, f"y = {op} d", "z = add y, a"), x="0.3") == "0.1"
    assert value(scalar(*TENTHS, f"y = {op} d"), x="0.3") == expected


@pytest.mark.parametrize(("x", "expected"), [("0.30000001", "1"), ("0.29999999", "0")])
def test_near_a_tie_the_sign_is_proven(x: str, expected: str):
    assert value(scalar(*TENTHS, "y = heaviside d"), x=x) == expected


def test_a_jump_at_a_tie_that_is_not_rational_is_an_error_with_its_site():
    pythagoras = ("s = sin x", "c = cos x", "p = pow 2 s", "q = pow 2 c", "r = add p, q", "e = const 1", "d = sub r, e")
    raised = error(scalar(*pythagoras, "step = heaviside d"), Options(bits=64, max_bits=600), x="2")
    assert code(raised) == "E7005"
    message = raised.diagnostics[0].message
    assert "heaviside" in message
    assert "`step` in `f`" in message
    assert "600 bits" in message
    assert raised.diagnostics[0].span is not None
    assert raised.diagnostics[0].span.start.line == 9


def test_an_undecided_jump_that_the_result_does_not_need_is_no_error():
    """0 · heaviside(an undecided 0) is 0 whatever the jump is."""
    pythagoras = ("s = sin x", "c = cos x", "p = pow 2 s", "q = pow 2 c", "r = add p, q", "e = const 1", "d = sub r, e")
    found = scalar(*pythagoras, "step = heaviside d", "zero = const 0", "y = mul zero, step")
    assert value(found, x="2") == "0"


def test_structural_zeros_are_exact():
    assert value(scalar("e = exp x", "d = sub e, e", "y = heaviside d"), x="2") == "0"


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_powers_of_what_is_not_known_to_be_zero(n: int):
    """sin² + cos² - 1 is a ball around 0 at every precision, and so are its powers."""
    lines = ("s = sin x", "c = cos x", "u = mul s, s", "v = mul c, c", "w = add u, v", "i = const 1", "z = sub w, i")
    assert value(scalar(*lines, f"p = pow {n} z"), x="2") == "0"


def test_a_decimal_tie_goes_to_the_even_digit():
    """0.1 + 0.15 is 0.25, in the middle of 0.2 and 0.3; its ball never tells."""
    found = scalar("a = const 0.15", "y = add x, a")
    assert value(found, Options(digits=1), x="0.1") == "0.2"
    assert value(found, Options(digits=1), x="0.2") == "0.4"
    assert value(found, Options(digits=1), x="0.1000001") == "0.3"
    assert value(found, Options(digits=2), x="0.1") == "0.25"


# --------------------------------------------------------------------------------------------------------------- zeros


def test_an_entry_that_is_zero_beyond_proof_is_reported_below_a_floor():
    """sin² + cos² - 1: 0, which no ball shows exactly."""
    pythagoras = ("s = sin x", "c = cos x", "p = pow 2 s", "q = pow 2 c", "r = add p, q", "e = const 1", "d = sub r, e")
    result = run(scalar(*pythagoras), x="2").value
    assert isinstance(result, Tensor)
    assert isinstance(result.data, Rounded)
    assert (result.data.text[()], result.data.zeros_below) == ("0", 1)
    assert Fraction(2) ** -288 <= Fraction(result.data.error_bound or "0") <= 2 * Fraction(2) ** -288
    document = to_json(result)
    assert document["zeros_below"] == 1
    assert document["data"] == "0"


def test_an_exact_zero_has_no_bound():
    document = to_json(run(scalar("y = mul x, x"), x="0").value)
    assert (document["data"], document["error_bound"], document["zeros_below"]) == ("0", "0", 0)


def test_a_tiny_value_has_all_its_digits():
    """exp(-1000) is far below the floor, and proven all the same."""
    with mp.workprec(600):
        assert agree(run(scalar("y = exp x"), x="-1000").value, [mpmath.exp(-1000)], 77)


# ----------------------------------------------------------------------------------------- precision and what it meets


def test_cancellation_raises_the_precision():
    """(e^x - 1 - x) / x² for x = 10^-200: 400 digits cancel before the quotient."""
    found = scalar("one = const 1", "e = exp x", "d = sub e, one", "r = sub d, x", "q = mul x, x", "y = div r, q")
    result = run(found, x="1e-200")
    assert len(result.attempts) > 1
    assert result.precision > 1500
    with mp.workprec(4000):
        x = mpmath.mpf(10) ** -200
        assert agree(result.value, [(mpmath.exp(x) - 1 - x) / x**2], 77)


def test_at_the_cap_an_undecided_result_says_what_is_known():
    found = scalar("one = const 1", "e = exp x", "d = sub e, one", "r = sub d, x", "y = div r, d")
    raised = error(found, Options(max_bits=500), x="1e-200")
    assert code(raised) == "E7005"
    assert "500 bits, the cap" in raised.diagnostics[0].message
    assert "--max-bits" in (raised.diagnostics[0].help or "")


@pytest.mark.parametrize(
    ("line", "x"),
    [("y = log x", "0"), ("y = log x", "-1"), ("y = sqrt x", "-0.1"), ("y = div one, x", "0")],
)
@pytest.mark.parametrize("kernel", ["balls", "mpmath"])
def test_an_operation_without_a_value_is_an_error_of_the_run(line: str, x: str, kernel: Any):
    raised = error(scalar("one = const 1", line), Options(kernel=kernel), x=x)
    assert code(raised) == "E7004"
    assert raised.exit_status == 1
    assert "`y` in `f`" in raised.diagnostics[0].message
    assert raised.diagnostics[0].span is not None
    assert raised.diagnostics[0].span.start.line == 3


@pytest.mark.parametrize("line", ["y = div x, d", "y = log d"])
def test_a_rational_zero_behind_a_ball_is_found_before_the_cap(line: str):
    raised = error(scalar(*TENTHS, line), x="0.3")
    assert code(raised) == "E7004"


@pytest.mark.parametrize("line", ["y = div x, d", "y = log d", "y = sqrt d"])
def test_what_may_be_undefined_at_the_cap_names_its_site(line: str):
    pythagoras = ("s = sin x", "c = cos x", "p = pow 2 s", "q = pow 2 c", "r = add p, q", "e = const 1", "d = sub r, e")
    raised = error(scalar(*pythagoras, line), Options(bits=64, max_bits=600), x="2")
    assert code(raised) == "E7005"
    assert "`y` in `f`" in raised.diagnostics[0].message


def test_functions_of_huge_arguments_end():
    """sin(exp(exp(x))) needs more bits than the cap: an answer, not a hang."""
    found = scalar("a = exp x", "b = exp a", "y = sin b")
    assert code(error(found, x="10")) == "E7005"
    assert code(error(found, Options(kernel="mpmath"), x="10")) == "E7005"


def test_numbers_beyond_all_floats_are_written_out():
    found = scalar("a = exp x", "y = exp a")
    assert value(found, Options(digits=5), x="10").endswith("e9565")
    assert value(found, Options(digits=5), x="-10") == "1"


@pytest.mark.timeout(20)
def test_a_number_of_a_billion_digits_is_rounded_and_bounded_without_writing_it_out():
    result = run(scalar("y = exp x"), Options(digits=5), x="1e10")
    assert texts(result.value) == ["1.0778e4342944819"]
    assert to_json(result.value)["error_bound"] == "5e4342944814"


# --------------------------------------------------------------------------------------------------- what never changes


@pytest.fixture(scope="module")
def mlp() -> Program:
    return program(MLP)


DIMS = {"B": 2, "D": 3}


def test_the_digits_do_not_depend_on_the_working_precision(mlp: Program):
    base = run_exact(mlp, "mse_grad", {}, DIMS)
    higher = run_exact(mlp, "mse_grad", {}, DIMS, options=Options(extra_bits=7))
    assert higher.precision == base.precision + 7
    assert to_json(higher.value) == to_json(base.value)
    assert to_json(run_exact(mlp, "mse_grad", {}, DIMS).value) == to_json(base.value)


def test_few_digits_are_the_rounding_of_many(mlp: Program):
    few = run_exact(mlp, "mse_grad", {}, DIMS, options=Options(bits=128))
    many = run_exact(mlp, "mse_grad", {}, DIMS, options=Options(bits=512))
    assert (few.digits, many.digits) == (38, 154)
    assert texts(few.value) == [round_rational(Fraction(t), 38).text for t in texts(many.value)]


def test_both_kernels_give_the_same_digits(mlp: Program):
    proven = run_exact(mlp, "mse_grad", {}, DIMS)
    measured = run_exact(mlp, "mse_grad", {}, DIMS, options=Options(kernel="mpmath"))
    assert texts(proven.value) == texts(measured.value)
    assert "error_bound" not in json.dumps(to_json(measured.value))


@pytest.mark.parametrize("bits", [24, 53, 10_000])
def test_all_widths_of_bits(bits: int):
    result = run(scalar("y = exp x"), Options(bits=bits), x="1")
    assert result.digits == digits_of(bits) == int(bits * mpmath.log10(2))
    with mp.workprec(bits + 200):
        assert agree(result.value, [mpmath.e], result.digits)


@pytest.mark.parametrize(
    "options",
    [Options(bits=23), Options(bits=10_001), Options(digits=0), Options(digits=78), Options(bits=256, max_bits=255)],
)
def test_options_out_of_range(options: Options):
    raised = error(scalar("y = exp x"), options, x="1")
    assert (code(raised), raised.exit_status) == ("E7020", 2)


def test_bounds_are_written_as_upper_bounds():
    for floor in (1, 3, 10, 288, 10_032):
        assert Fraction(bound_text(None, floor)) >= Fraction(1, 2**floor) > Fraction(bound_text(None, floor)) / 11
    assert bound_text(-77, None) == "5e-78"
    assert Fraction(bound_text(-5, 320)) == Fraction(5, 10**6)
    assert bound_text(None, None) == "0"


# --------------------------------------------------------------------------------------------------------- containment

UNARY = [
    "neg",
    "gelu",
    "relu",
    "exp",
    "tanh",
    "abs",
    "sigmoid",
    "sin",
    "cos",
    "gelu'",
    "normal_pdf",
    "heaviside",
    "sign",
]

OPERATIONS = [
    *(f"{op} {{0}}" for op in [*UNARY, "pow 3", "softmax axis a"]),
    *(f"{op} {{0}}, {{1}}" for op in ("add", "sub", "mul", "max", "min", "ein [a, a -> a]")),
    "softmax axis a {0}, m",
    "ein [a, a, a -> a] {0}, {1}, {2}",
]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Straight-line programs of up to 12 operations on two vectors and the values made before."""
    names, lines = ["x", "y"], []
    for i in range(draw(st.integers(1, 12))):
        pick = st.sampled_from(names)
        left, right, third = draw(pick), draw(pick), draw(pick)
        lines.append(f"v{i} : ℝ[a: N] = {draw(st.sampled_from(OPERATIONS)).format(left, right, third)}")
        names.append(f"v{i}")
    body = "".join(f"  {line}\n" for line in lines)
    return program(f"fn f{{N}}(x : ℝ[a: N], y : ℝ[a: N], m : bool[a: N]) -> ℝ[a: N] {{\n{body}  return {names[-1]}\n}}")


def evaluate(found: Program, args: tuple[Any, ...], bits: int) -> list[Any]:
    with flint_context.workprec(bits):
        kernel = Balls()
        result = Interpreter(found, kernel).run("f", inject(kernel, args), {"N": 3})
        assert isinstance(result, Tensor)
        return result.data.tolist()


RUNS = given(found=programs(), seed=st.integers(0, 1000), bits=st.sampled_from([24, 53, 100, 200]))


@settings(max_examples=150, deadline=None)
@RUNS
def test_every_ball_contains_the_2000_bit_reference(found: Program, seed: int, bits: int):
    check_containment(found, seed, bits)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@RUNS
def test_every_ball_of_many_programs_contains_the_2000_bit_reference(found: Program, seed: int, bits: int):
    check_containment(found, seed, bits)


def check_containment(found: Program, seed: int, bits: int) -> None:
    _, args = inputs.prepare(found, "f", {}, {"N": 3}, seed)
    for rough, fine in zip(evaluate(found, args, bits), evaluate(found, args, 2000), strict=True):
        if rough.is_finite() and fine.is_finite():
            assert rough.overlaps(fine)
