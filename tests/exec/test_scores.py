"""Softmax, cross-entropy, embeddings, choices and draws: against mpmath at 200 more bits, at extremes, and at ties."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp

from presk_rel.core.ir import Program
from presk_rel.diagnostics import PreskError
from presk_rel.exec import keys
from presk_rel.exec.exact.run import Options, RunResult, run_exact
from presk_rel.exec.literals import literal
from presk_rel.exec.render import to_json
from presk_rel.exec.values import IndexTensor, KeyValue, MaskTensor, Tensor

from .oracle import agree, texts
from .programs import program, single

KERNELS = pytest.mark.parametrize("kernel", ["balls", "mpmath"])
BITS = 256


def run(found: Program, dims: Mapping[str, int] | None = None, kernel: Any = "balls", **given: Any) -> RunResult:
    nodes = {name: np.asarray(value) for name, value in given.items()}
    return run_exact(found, "f", nodes, dims or {}, options=Options(kernel=kernel))


def data(result: RunResult) -> Any:
    return to_json(result.value)["data"]


def rows(result: RunResult, i: int) -> list[list[Any]]:
    """Argument `i` as rows along its last axis, in mpmath."""
    value = result.args[i]
    assert isinstance(value, Tensor)
    return [[mpmath.mpf(e) for e in row] for row in np.asarray(value.data).reshape(-1, value.data.shape[-1]).tolist()]


def softmax(row: list[Any]) -> list[Any]:
    """By the definition, without a shift."""
    powers = [mpmath.exp(e) for e in row]
    return [p / mpmath.fsum(powers) for p in powers]


def refused(found: Program, code: str, dims: Mapping[str, int] | None = None, **given: Any) -> str:
    with pytest.raises(PreskError) as raised:
        run(found, dims, **given)
    assert raised.value.diagnostics[0].code == code
    return raised.value.diagnostics[0].message


# ------------------------------------------------------------------------------------------------------------- softmax

MATRIX = "ℝ[a: A, b: B]"
SOFTMAX = single(f"x : {MATRIX}", MATRIX, "softmax axis b x", "A B")
ACROSS = single(f"x : {MATRIX}", MATRIX, "softmax axis a x", "A B")
MASKED = single(f"x : {MATRIX}, m : bool[b: B]", MATRIX, "softmax axis b x, m", "A B")
MASKED_BY_ROW = single(f"x : {MATRIX}, m : bool[a: A]", MATRIX, "softmax axis a x, m", "A B")


@KERNELS
def test_softmax(kernel: Any):
    result = run(SOFTMAX, {"A": 3, "B": 5}, kernel)
    with mp.workprec(BITS + 200):
        assert agree(result.value, [p for row in rows(result, 0) for p in softmax(row)], result.digits)


@KERNELS
def test_softmax_along_another_axis(kernel: Any):
    result = run(ACROSS, {"A": 3, "B": 5}, kernel)
    with mp.workprec(BITS + 200):
        columns = [softmax(list(c)) for c in zip(*rows(result, 0), strict=True)]
        assert agree(result.value, [columns[j][i] for i in range(3) for j in range(5)], result.digits)


@KERNELS
def test_softmax_at_extreme_scores(kernel: Any):
    """All digits of e^-200000."""
    result = run(SOFTMAX, kernel=kernel, x=[[1e5, -1e5, 0.0]])
    with mp.workprec(BITS + 200):
        assert agree(result.value, softmax([mpmath.mpf(1e5), mpmath.mpf(-1e5), mpmath.mpf(0)]), result.digits)


def test_softmax_beyond_all_exponents_of_floats():
    scores = [1e300, 1e300, 5e299]
    result = run(SOFTMAX, x=[scores])
    assert texts(result.value)[:2] == ["0.5", "0.5"]


@KERNELS
def test_a_mask_leaves_the_allowed_positions(kernel: Any):
    result = run(MASKED, {"A": 2, "B": 4}, kernel, m=[True, False, True, False])
    with mp.workprec(BITS + 200):
        expected: list[Any] = []
        for a, _, c, _ in rows(result, 0):
            p, q = softmax([a, c])
            expected += [p, 0, q, 0]
        assert agree(result.value, expected, result.digits)


def test_a_mask_lines_up_as_in_broadcasting():
    result = run(MASKED_BY_ROW, {"A": 3, "B": 3}, m=[False, True, False])
    assert data(result) == [["0"] * 3, ["1"] * 3, ["0"] * 3]


@KERNELS
def test_a_row_that_the_mask_empties_is_an_error_with_its_site(kernel: Any):
    with pytest.raises(PreskError) as raised:
        run(MASKED, {"A": 2, "B": 2}, kernel, m=[False, False])
    diagnostic = raised.value.diagnostics[0]
    assert diagnostic.code == "E7004"
    assert "`out` in `f`" in diagnostic.message
    assert diagnostic.span is not None


def test_over_an_axis_of_length_0_softmax_is_empty():
    assert data(run(SOFTMAX, {"A": 2, "B": 0})) == [[], []]
    assert data(run(MASKED, {"A": 2, "B": 0})) == [[], []]


# ------------------------------------------------------------------------------------------------------- cross-entropy

SCORES, TARGETS = "ℝ[batch: B, seq: T, V]", "idx[V][batch: B, seq: T]"
LOSS = single(f"x : {SCORES}, y : {TARGETS}", "ℝ[batch: B, seq: T]", "cross_entropy x, y", "B T V")
SLOPE = single(f"ct : ℝ[batch: B, seq: T], x : {SCORES}, y : {TARGETS}", SCORES, "cross_entropy_vjp ct, x, y", "B T V")
ROW = single("x : ℝ[V], y : idx[V]", "ℝ[]", "cross_entropy x, y", "V")
DIMS = {"B": 2, "T": 3, "V": 5}


def targets(result: RunResult, i: int) -> list[int]:
    value = result.args[i]
    assert isinstance(value, IndexTensor)
    return value.data.ravel().tolist()


@KERNELS
def test_cross_entropy_is_minus_the_logarithm_of_softmax(kernel: Any):
    result = run(LOSS, DIMS, kernel)
    with mp.workprec(BITS + 200):
        pairs = zip(rows(result, 0), targets(result, 1), strict=True)
        assert agree(result.value, [-mpmath.log(softmax(row)[y]) for row, y in pairs], result.digits)


@KERNELS
def test_the_derivative_of_cross_entropy(kernel: Any):
    result = run(SLOPE, DIMS, kernel)
    with mp.workprec(BITS + 200):
        expected: list[Any] = []
        ct = [c for row in rows(result, 0) for c in row]
        for c, row, y in zip(ct, rows(result, 1), targets(result, 2), strict=True):
            expected += [c * (p - (i == y)) for i, p in enumerate(softmax(row))]
        assert agree(result.value, expected, result.digits)


@KERNELS
@pytest.mark.parametrize("y", [0, 1, 2])
def test_cross_entropy_at_extreme_scores(kernel: Any, y: int):
    """At the greatest score the loss is e^-100000: all digits of it, not 0."""
    result = run(ROW, kernel=kernel, x=[1e5, -1e5, 0.0], y=y)
    with mp.workprec(400_000):
        powers = [mpmath.exp(mpmath.mpf(e)) for e in (1e5, -1e5, 0.0)]
        loss = mpmath.log(mpmath.fsum(powers)) - mpmath.mpf([1e5, -1e5, 0.0][y])
        assert agree(result.value, [loss], result.digits)


def test_of_one_class_the_loss_is_0_and_a_softmax_1():
    assert data(run(ROW, x=[0.7], y=0)) == "0"
    assert data(run(SOFTMAX, x=[[0.7], [0.1]])) == [["1"], ["1"]]


def test_uniform_scores_give_the_logarithm_of_the_number_of_classes():
    result = run(ROW, x=[0.3] * 64, y=7)
    with mp.workprec(BITS + 200):
        assert agree(result.value, [mpmath.log(64)], result.digits)


# ------------------------------------------------------------------------------------------------ embeddings, one-hot

TABLE, IDS = "ℝ[V, emb: D]", "idx[V][batch: B, seq: T]"
EMBED = single(f"w : {TABLE}, t : {IDS}", "ℝ[batch: B, seq: T, emb: D]", "embed w, t", "V D B T")
EMBED_VJP = single(f"ct : ℝ[batch: B, seq: T, emb: D], t : {IDS}, w : {TABLE}", TABLE, "embed_vjp ct, t, w", "V D B T")
ONE_HOT = single("t : idx[V][seq: T]", "ℝ[seq: T, V]", "one_hot t", "V T")
EMBEDDED = {"V": 4, "D": 2, "B": 2, "T": 3}


def fraction(q: Fraction) -> Any:
    return mpmath.mpf(q.numerator) / q.denominator


def exact(value: Any) -> Any:
    return np.vectorize(Fraction, otypes=[object])(value.data)


@KERNELS
def test_embed_takes_rows_and_its_adjoint_adds_them_up(kernel: Any):
    ids = [[3, 0, 3], [3, 1, 0]]
    result = run(EMBED, EMBEDDED, kernel, t=ids)
    with mp.workprec(BITS + 200):
        assert agree(result.value, [fraction(q) for q in exact(result.args[0])[np.array(ids)].ravel()], result.digits)
    result = run(EMBED_VJP, EMBEDDED, kernel, t=ids)
    expected = np.full((4, 2), Fraction(0))
    np.add.at(expected, np.array(ids), exact(result.args[0]))
    with mp.workprec(BITS + 200):
        assert agree(result.value, [fraction(q) for q in expected.ravel()], result.digits)


def test_one_hot():
    assert data(run(ONE_HOT, {"V": 3}, t=[2, 0])) == [["0", "0", "1"], ["1", "0", "0"]]
    assert data(run(ONE_HOT, {"V": 3, "T": 0})) == []


# ------------------------------------------------------------------------------------------------------------- choices

ARGMAX = single("x : ℝ[seq: T, V]", "idx[V][seq: T]", "argmax x", "T V")


@KERNELS
def test_argmax(kernel: Any):
    result = run(ARGMAX, kernel=kernel, x=[[1.0, 3.0, 2.0], [-1.0, -2.0, -3.0], [0.0, 1e-300, 0.0]])
    assert data(result) == [1, 0, 1]
    assert to_json(result.value)["type"] == "idx[3][seq: 3]"


@KERNELS
def test_of_equal_scores_argmax_takes_the_least_index(kernel: Any):
    assert data(run(ARGMAX, kernel=kernel, x=[[2.0, 5.0, 5.0], [0.0, 0.0, 0.0]])) == [1, 0]


TIED = """
fn f(x : ℝ[]) -> (idx[3], ℝ[]) {
  a : ℝ[] = const 0.1
  b : ℝ[] = const 0.2
  s : ℝ[] = add a, b
  o : ℝ[one: 1] = ones
  l : ℝ[one: 1] = mul o, x
  m : ℝ[one: 1] = mul o, s
  n : ℝ[one: 1] = mul o, a
  lm : ℝ[one: 2] = concat one n, l
  l3 : ℝ[one: 3] = concat one lm, m
  i : idx[3] = argmax l3
  r : ℝ[] = real i
  e : ℝ[] = exp r
  p : (idx[3], ℝ[]) = (i, e)
  return p
}"""


def test_a_tie_of_rationals_behind_balls_is_decided_exactly():
    """[0.1, 0.3, 0.1 + 0.2]: the second and the third are equal, which no ball shows."""
    for x, expected in (("0.3", 1), ("0.2999999999999999999999", 2)):
        result = run_exact(program(TIED), "f", {"x": literal("x", x)}, {})
        assert to_json(result.value)[0]["data"] == expected


IRRATIONAL = """
fn f(x : ℝ[one: 1]) -> idx[2] {
  s : ℝ[one: 1] = sin x
  c : ℝ[one: 1] = cos x
  p : ℝ[one: 1] = pow 2 s
  q : ℝ[one: 1] = pow 2 c
  r : ℝ[one: 1] = add p, q
  o : ℝ[one: 1] = ones
  l : ℝ[one: 2] = concat one o, r
  i : idx[2] = argmax l
  return i
}"""


def test_a_tie_that_is_not_rational_is_an_error_with_its_site_and_values():
    with pytest.raises(PreskError) as raised:
        run_exact(program(IRRATIONAL), "f", {"x": np.array([2.0])}, {}, options=Options(bits=64, max_bits=600))
    diagnostic = raised.value.diagnostics[0]
    message = diagnostic.message
    assert diagnostic.code == "E7005"
    assert "argmax" in message
    assert "`i` in `f`" in message
    assert "600 bits" in message
    assert "where the scores are [1, 1]" in message


def test_every_tie_of_a_run_is_found_not_only_the_first():
    body = "".join(
        f"  s{i} : ℝ[one: 1] = {'mul x, x' if i == 0 else f'add x, r{i - 1}'}\n"
        + f"  l{i} : ℝ[one: 2] = concat one s{i}, s{i}\n  e{i} : ℝ[one: 2] = exp l{i}\n"
        + f"  i{i} : idx[2] = argmax l{i}\n  r{i} : ℝ[] = real i{i}\n"
        for i in range(4)
    )
    text = f"fn f(x : ℝ[one: 1]) -> ℝ[] {{\n{body}  return r3\n}}"
    assert texts(run_exact(program(text), "f", {"x": literal("x", "[0.1]")}, {}).value) == ["0"]


SAMPLE = single("k : key, x : ℝ[seq: T, V]", "idx[V][seq: T]", "sample k, x", "T V")


@KERNELS
def test_sample_takes_the_least_index_whose_cumulative_probability_exceeds_the_draw(kernel: Any):
    result = run(SAMPLE, {"T": 40, "V": 7}, kernel)
    key = result.args[0]
    assert isinstance(key, KeyValue)
    with mp.workprec(BITS + 200):
        expected: list[int] = []
        for u, row in zip(keys.uniform(key.key, 40).tolist(), rows(result, 1), strict=True):
            sums = [mpmath.fsum(softmax(row)[: i + 1]) for i in range(7)]
            expected.append(next(i for i, c in enumerate(sums) if c > u))
    assert data(result) == expected
    assert len(set(expected)) > 3


def test_a_sample_of_one_class_is_that_class_and_of_none_left_impossible():
    assert data(run(SAMPLE, {"T": 3, "V": 1})) == [0, 0, 0]
    far = run(SAMPLE, x=[[1e5, 0.0, -1e5]] * 4)
    assert data(far) == [0, 0, 0, 0]


@pytest.mark.parametrize("n", [2, 3, 64])
def test_uniform_scores_are_sampled_as_uniform_indices(n: int):
    """Equal scores: the index is ⌊u·n⌋, the cumulative probabilities being (i + 1)/n exactly."""
    result = run(SAMPLE, {"T": 50, "V": n}, x=np.zeros((50, n)))
    key = result.args[0]
    assert isinstance(key, KeyValue)
    assert data(result) == [int(Fraction(u) * n) for u in keys.uniform(key.key, 50).tolist()]


# --------------------------------------------------------------------------------------------------------- comparisons

COMPARE = """
fn f{{N}}(x : ℝ[a: N], y : ℝ[]) -> bool[a: N] {{
  m : bool[a: N] = {op} x, y
  return m
}}"""


@KERNELS
@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("lt", [True, False, False]), ("le", [True, True, False]), ("gt", [False, False, True]),
        ("ge", [False, True, True]), ("eq", [False, True, False]),
    ],
)  # fmt: skip
def test_comparisons_give_masks(op: str, expected: list[bool], kernel: Any):
    result = run(program(COMPARE.format(op=op)), kernel=kernel, x=[1.0, 2.0, 3.0], y=2.0)
    assert isinstance(result.value, MaskTensor)
    assert data(result) == expected
    indices = single("x : idx[9][a: N], y : idx[9][a: N]", "bool[a: N]", f"{op} x, y", "N")
    assert data(run(indices, kernel=kernel, x=[1, 2, 3], y=[2, 2, 2])) == expected
    hyper = single("x : nat, y : nat", "bool", f"{op} x, y")
    values = [run_exact(hyper, "f", {"x": Fraction(i), "y": Fraction(2)}, {}).value for i in (1, 2, 3)]
    assert [to_json(v)["data"] for v in values] == expected


def test_a_comparison_of_equal_rationals_is_decided_exactly():
    text = """
fn f(x : ℝ[]) -> (bool[], bool[], bool[]) {
  a : ℝ[] = const 0.1
  b : ℝ[] = const 0.2
  s : ℝ[] = add a, b
  e : bool[] = eq x, s
  l : bool[] = lt x, s
  o : bool[] = lt s, s
  p : (bool[], bool[], bool[]) = (e, l, o)
  return p
}"""
    result = run_exact(program(text), "f", {"x": literal("x", "0.3")}, {}).value
    assert [v["data"] for v in to_json(result)] == [True, False, False]


@KERNELS
def test_extremes_broadcast_and_a_tie_gives_the_second_operand(kernel: Any):
    """Of value and derivative: the adjoint of `max x, y` is heaviside(x - y), 0 at a tie."""
    for op, expected in (("max", ["2", "2", "3"]), ("min", ["1", "2", "2"])):
        found = single("x : ℝ[a: N], y : ℝ[]", "ℝ[a: N]", f"{op} x, y", "N")
        assert data(run(found, kernel=kernel, x=[1.0, 2.0, 3.0], y=2.0)) == expected


# --------------------------------------------------------------------------------------------------------------- draws

DROPOUT = "fn f{{N}}(k : key, x : ℝ[a: N]) -> ℝ[a: N] {{\n  m : ℝ[a: N] = dropout_mask {rate} k, x\n  return m\n}}"


@KERNELS
@pytest.mark.parametrize("rate", ["0", "0.1", "0.5"])
def test_dropout_drops_where_the_draw_is_below_the_rate(rate: str, kernel: Any):
    result = run(program(DROPOUT.format(rate=rate)), {"N": 60}, kernel)
    key = result.args[0]
    assert isinstance(key, KeyValue)
    dropped = [Fraction(u) < Fraction(rate) for u in keys.uniform(key.key, 60).tolist()]
    scale = {"0": "1", "0.1": "1." + "1" * 76, "0.5": "2"}[rate]
    assert data(result) == ["0" if d else scale for d in dropped]


def test_positions_and_the_causal_mask():
    positions = single("", "idx[T][seq: T]", "positions", "T")
    assert data(run(positions, {"T": 4})) == [0, 1, 2, 3]
    mask = single("", "bool[seq: T, seq2: T]", "causal_mask", "T")
    assert data(run(mask, {"T": 3})) == [[True, False, False], [True, True, False], [True, True, True]]


@KERNELS
def test_pi(kernel: Any):
    with mp.workprec(BITS + 200):
        assert agree(run(single("", "ℝ[]", "pi"), kernel=kernel).value, [+mpmath.pi], 77)
