"""The interpreter on programs that are not flat: calls, prefixes, closures, folds, trees, liveness, depth."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from presk_rel.core.ir import Binding, Call, Function, Param, Prim, Program
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import SCALAR_REAL, Real, Shape
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import Frame, Interpreter
from presk_rel.exec.exact.proven import inject
from presk_rel.exec.exact.run import Options, run_exact
from presk_rel.exec.exact.sizes import estimate
from presk_rel.exec.literals import literal
from presk_rel.exec.render import to_json
from presk_rel.exec.values import HyperValue, Tensor, Value

from .oracle import texts
from .programs import MLP, program


def run(text: str, dims: Mapping[str, int] | None = None, entry: str = "f", **given: str) -> Value:
    return run_exact(program(text), entry, {n: literal(n, v) for n, v in given.items()}, dims or {}).value


def data(value: Value) -> Any:
    return to_json(value)["data"]


# ------------------------------------------------------------------------------------------------- calls and prefixes

ROWS = """
fn center{N}(x : ℝ[..., model: N]) -> ℝ[..., model: N] {
  μ : ℝ[...] = mean axis model x
  y : ℝ[..., model: N] = sub x, μ
  return y
}
fn f{B N}(x : ℝ[batch: B, model: N], v : ℝ[model: N]) -> (ℝ[batch: B, model: N], ℝ[model: N]) {
  a : ℝ[batch: B, model: N] = call center{N = N}(x)
  b : ℝ[model: N] = call center{N = N}(v)
  r : (ℝ[batch: B, model: N], ℝ[model: N]) = (a, b)
  return r
}
"""


def test_a_prefix_stands_for_as_many_axes_as_the_argument_has():
    """`x - μ` lines up prefix with prefix, never trailing axes of the instance, even when lengths agree (B = N)."""
    result = to_json(run(ROWS, x="[[1, 3], [10, 30]]", v="[1, 2]"))
    assert result[0]["data"] == [["-1", "1"], ["-10", "10"]]
    assert result[0]["type"] == "ℝ[batch: 2, model: 2]"
    assert result[1]["data"] == ["-0.5", "0.5"]


def test_an_entry_may_have_a_prefix():
    given = {"x": literal("x", "[[[1, 3]], [[10, 30]]]")}
    result = run_exact(program(ROWS), "center", given, {}).value
    assert to_json(result)["type"] == "ℝ[2, 1, model: 2]"
    assert data(result) == [[["-1", "1"]], [["-10", "10"]]]


def test_two_arguments_of_one_prefix_have_one_shape():
    text = "fn f{N}(x : ℝ[..., N], y : ℝ[..., N]) -> ℝ[..., N] {\n  z : ℝ[..., N] = add x, y\n  return z\n}"
    assert data(run(text, x="[[1, 2]]", y="[[3, 4]]")) == [["4", "6"]]
    with pytest.raises(PreskError) as raised:
        run(text, x="[[1, 2]]", y="[[3, 4], [5, 6]]")
    assert raised.value.diagnostics[0].code == "E7015"


# ----------------------------------------------------------------------------------------------- closures and functions

CLOSURES = """
fn scaled{N}(k : ℝ[], x : ℝ[N]) -> ℝ[N] {
  y : ℝ[N] = mul k, x
  return y
}
fn twice{N}(g : (ℝ[N]) -> ℝ[N], x : ℝ[N]) -> ℝ[N] {
  y : ℝ[N] = apply g(x)
  z : ℝ[N] = apply g(y)
  return z
}
fn f{N}(k : ℝ[], x : ℝ[N]) -> ℝ[N] {
  g : (ℝ[N]) -> ℝ[N] = closure scaled[k]
  pair : ((ℝ[N]) -> ℝ[N], ℝ[N]) = (g, x)
  h : (ℝ[N]) -> ℝ[N] = pair.0
  y : ℝ[N] = call twice{N = N}(h, x)
  return y
}
"""


def test_function_values_carry_what_they_captured():
    assert data(run(CLOSURES, k="3", x="[1, 2]")) == ["9", "18"]


def test_an_entry_that_takes_a_function_is_refused():
    with pytest.raises(PreskError) as raised:
        run(CLOSURES, {"N": 2}, entry="twice")
    assert (raised.value.diagnostics[0].code, raised.value.exit_status) == ("E7019", 3)


# ---------------------------------------------------------------------------------------------------------------- folds

FOLDS = """
module Affine{{N}} {{
  param a : ℝ[N]  init = ones
  param b : ℝ[N]  init = zeros
}}
fn step{{N}}(θ : params Affine{{N}}, acc : ℝ[N], k : ℝ[]) -> ℝ[N] {{
  a : ℝ[N] = θ.a
  b : ℝ[N] = θ.b
  s : ℝ[N] = mul a, acc
  t : ℝ[N] = mul k, b
  y : ℝ[N] = add s, t
  return y
}}
fn f{{L N}}(θ : params stack{{L}}(Affine{{N}}), x : ℝ[N], k : ℝ[]) -> {result} {{
  y : {result} = {fold}
  return y
}}
"""
LAYERS = {"a": [[Fraction(2)], [Fraction(3)], [Fraction(5)]], "b": [[Fraction(1)], [Fraction(10)], [Fraction(100)]]}


def folded(modifiers: str, result: str, layers: dict[str, Any], dims: Mapping[str, int]) -> Value:
    text = FOLDS.format(result=result, fold=f"fold L step{{N = N}}(stacked θ; acc x; k){modifiers}")
    given = {"θ": layers, "x": literal("x", "[1]"), "k": literal("k", "7")}
    return run_exact(program(text), "f", given, dims).value


def test_a_fold_runs_over_the_slices():
    """((1·2 + 7)·3 + 70)·5 + 700."""
    assert data(folded("", "ℝ[N]", LAYERS, {})) == ["1185"]


def test_a_reverse_fold_runs_from_the_last_slice():
    """((1·5 + 700)·3 + 70)·2 + 7."""
    assert data(folded(" reverse", "ℝ[N]", LAYERS, {})) == ["4377"]


def test_a_scan_returns_the_accumulators_before_each_iteration():
    result = to_json(folded(" scan", "(ℝ[N], ℝ[L, N])", LAYERS, {}))
    assert result[0]["data"] == ["1185"]
    assert result[1]["data"] == [["1"], ["9"], ["97"]]


def test_a_reverse_scan_keeps_each_accumulator_at_its_iteration():
    result = to_json(folded(" reverse scan", "(ℝ[N], ℝ[L, N])", LAYERS, {}))
    assert result[0]["data"] == ["4377"]
    assert result[1]["data"] == [["2185"], ["705"], ["1"]]


def test_a_fold_of_no_iterations_gives_its_initial_value():
    empty = {"a": np.empty((0, 1)), "b": np.empty((0, 1))}
    assert data(folded("", "ℝ[N]", empty, {})) == ["1"]
    result = to_json(folded(" scan", "(ℝ[N], ℝ[L, N])", empty, {}))
    assert result[0]["data"] == ["1"]
    assert result[1]["shape"] == [0, 1]


KEYED = """
fn step(acc : (ℝ[], key), x : ℝ[]) -> (ℝ[], key) uses Rand {
  v : ℝ[] = acc.0
  k : key = acc.1
  ks : (key, key) = split_key 2 k
  k1 : key = ks.0
  k2 : key = ks.1
  z : ℝ[] = normal 1 k1
  w : ℝ[] = add v, z
  r : (ℝ[], key) = (w, k2)
  return r
}
fn f{L}(x : ℝ[], k : key) -> (ℝ[], key) uses Rand {
  a : (ℝ[], key) = (x, k)
  y : (ℝ[], key) = fold L step(stacked ; acc a; x)
  return y
}
"""


def test_a_key_in_the_accumulator_gives_every_iteration_its_own_draw():
    one, two = (to_json(run(KEYED, {"L": n}, x="0", k="5")) for n in (1, 2))
    assert one[0]["data"] != two[0]["data"]
    assert one[1]["type"] == "key"
    assert one[1]["data"] != two[1]["data"]


# ----------------------------------------------------------------------------------------------- trees, hyperparameters

TREES = """
module Pair{N} {
  param u : ℝ[N]  init = ones
  param v : ℝ[]  init = zeros
}
fn f{N}(θ : params Pair{N}, s : ℝ[]) -> (params Pair{N}, (ℝ[], ())) {
  u : ℝ[N] = θ.u
  z : params Pair{N} = zeros_like θ
  o : params Pair{N} = ones_like θ
  g : params Pair{N} = set_field u z, u
  h : params Pair{N} = add g, o
  i : params Pair{N} = sub h, θ
  j : params Pair{N} = mul s, i
  k : params Pair{N} = div j, s
  e : (ℝ[], ℝ[]) = (s, s)
  e1 : ℝ[] = const 2.5
  e2 : (ℝ[], ℝ[]) = set_elem 1 e, e1
  e3 : ℝ[] = e2.1
  unit : () = ()
  p : (ℝ[], ()) = (e3, unit)
  r : (params Pair{N}, (ℝ[], ())) = (k, p)
  return r
}
"""


def test_trees_are_computed_leaf_by_leaf():
    given = {"θ": {"u": [Fraction(3), Fraction(4)], "v": Fraction(5)}, "s": Fraction(2)}
    tree, pair = to_json(run_exact(program(TREES), "f", given, {}).value)
    assert tree["u"]["data"] == ["1", "1"]
    assert tree["v"]["data"] == "-4"
    assert pair[0]["data"] == "2.5"
    assert pair[1] == []


HYPER = """
fn f{T}(n : nat, q : f64) -> (int, int, f64, nat, ℝ[]) {
  t : nat = dim T + 1
  a : int = sub n, t
  b : int = div n, t
  c : f64 = div q, q2
  p : nat = pow 3 n
  r : ℝ[] = real a
  y : (int, int, f64, nat, ℝ[]) = (a, b, c, p, r)
  return y
}
"""


def test_hyperparameters_are_exact_and_their_quotient_is_integral():
    text = HYPER.replace("  c : f64", "  q2 : f64 = const 0.3\n  c : f64")
    result = run(text, {"T": 3}, n="7", q="0.1")
    assert [to_json(v)["data"] for v in result.items] == [3, 1, "1/3", 343, "3"]  # type: ignore[union-attr]
    negative = run(text, {"T": 8}, n="2", q="0.1")
    assert to_json(negative.items[0])["data"] == -7  # type: ignore[union-attr]
    assert isinstance(negative.items[0], HyperValue)  # type: ignore[union-attr]


def test_indices_are_injected_entry_by_entry():
    text = "fn f{V N}(t : idx[V][N]) -> ℝ[N] {\n  y : ℝ[N] = real t\n  return y\n}"
    assert data(run(text, {"V": 10}, t="[3, 0, 9]")) == ["3", "0", "9"]


# ------------------------------------------------------------------------------------------------------------- liveness


class Watching(Interpreter):
    """Counts the values an activation holds."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.most = 0

    def bound(self, frame: Frame, binding: Binding, value: Value) -> None:
        self.most = max(self.most, len(frame.values))


def chain(n: int) -> Program:
    """x, x + x, … n times: each value is read by the next alone."""
    bindings = tuple(
        Binding(f"v{i}", SCALAR_REAL, Prim("add", (), (f"v{i - 1}", f"v{i - 1}") if i else ("x", "x")))
        for i in range(n)
    )
    fn = Function("f", (), (Param("x", SCALAR_REAL),), SCALAR_REAL, bindings, f"v{n - 1}")
    return Program({}, {"f": fn})


def test_a_value_is_dropped_by_its_last_reader():
    last_use = [("f", "x", 0), *(("f", f"v{i}", i + 1) for i in range(49))]
    kernel = Balls()
    args = inject(kernel, (Tensor((), np.float64(1.0).reshape(())),))
    keeping, dropping = Watching(chain(50), kernel), Watching(chain(50), kernel, last_use=last_use)
    first, second = keeping.run("f", args, {}), dropping.run("f", args, {})
    assert isinstance(first, Tensor)
    assert isinstance(second, Tensor)
    assert first.data[()] == second.data[()] == 2**50
    assert (keeping.most, dropping.most) == (51, 1)
    found = [estimate(chain(50), "f", args, {}, uses).entries for uses in ((), last_use)]
    assert found[0] > 10 * found[1]


def test_liveness_changes_no_digit_of_a_program():
    mlp = program(MLP)
    uses: list[tuple[str, str, int]] = []
    for fn in mlp.functions.values():
        last: dict[str, int] = {}
        for i, b in enumerate(fn.bindings):
            last |= dict.fromkeys(_operands(b), i)
        uses += [(fn.name, v, i) for v, i in last.items() if v != fn.ret]
    dims = {"B": 2, "D": 2}
    kept, dropped = (run_exact(mlp, "mse_grad", {}, dims, options=Options(last_use=u)) for u in ((), uses))
    assert texts(kept.value) == texts(dropped.value)
    assert dropped.estimate.entries < kept.estimate.entries


def _operands(binding: Binding) -> tuple[str, ...]:
    from presk_rel.core.ir import operands

    return operands(binding.op)


# ---------------------------------------------------------------------------------------------------------------- depth


def test_calls_may_nest_as_deep_as_the_program():
    ty = Real(Shape(None, ()))
    depth = 20_000
    functions = {"g0": Function("g0", (), (Param("x", ty),), ty, (), "x")}
    for i in range(1, depth):
        call = Binding("y", ty, Call(f"g{i - 1}", (), ("x",)))
        functions[f"g{i}"] = Function(f"g{i}", (), (Param("x", ty),), ty, (call,), "y")
    result = run_exact(Program({}, functions), f"g{depth - 1}", {"x": Fraction(3)}, {})
    assert texts(result.value) == ["3"]


def test_a_recursion_without_end_is_refused():
    ty = Real(Shape(None, ()))
    loop = Function("f", (), (Param("x", ty),), ty, (Binding("y", ty, Call("f", (), ("x",))),), "y")
    with pytest.raises(PreskError) as raised:
        run_exact(Program({}, {"f": loop}), "f", {"x": Fraction(3)}, {})
    assert (raised.value.diagnostics[0].code, raised.value.exit_status) == ("E7019", 3)
