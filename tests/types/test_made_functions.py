"""Functions with axis parameters, stacks of stacks and of compositions: what the checker makes a function of its own
for. And functions of modules as values."""

from __future__ import annotations

import pytest

from presk_rel.types.tree import TStackCall
from tests.types.programs import LINEAR, accepted, check

CENTRED = "dim B\ndim D\nfn centred(axis a, x : ℝ[..., a: D]) -> ℝ[..., a: D] = x - mean(axis a, x)\n"


def names(text: str) -> list[str]:
    program = accepted(text).program
    assert program is not None
    return [f.name for f in program.functions]


# -------------------------------------------------------------------------------------------------- axis parameters


def test_every_axis_it_is_called_for_gives_a_function() -> None:
    text = CENTRED + (
        "fn f(x : ℝ[batch: B, model: D]) = centred(axis model, x)\n"
        "fn g(x : ℝ[batch: B, model: D], y : ℝ[batch: D]) = (centred(axis model, x), centred(axis batch, y))\n"
    )
    assert names(text) == ["centred.axis.model", "centred.axis.batch", "f", "g"]
    assert accepted(text).result("f") == "ℝ[batch: B, model: D]"


def test_axes_pass_through_functions_indexing_ein_and_types() -> None:
    text = CENTRED + (
        "fn both(axis i, axis j, x : ℝ[i: D, j: D]) -> ℝ[j: D] =\n"
        "  let y = (ein[j, i](centred(axis j, x)) : ℝ[j: D, i: D])\n  y[i: 0]\n"
        "fn f(x : ℝ[row: D, col: D]) = both(axis row, axis col, x)\n"
    )
    assert accepted(text).result("f") == "ℝ[col: D]"
    assert "centred.axis.col" in names(text)


def test_a_function_of_a_module_may_have_axes() -> None:
    text = (
        "dim B\nmodule M{D : dim} { param g : ℝ[D]\n  fn apply(axis a, x : ℝ[..., a: D]) -> ℝ[..., a: D] = x * g }\n"
        "model N = M{4}\nfn f(θ : params N, x : ℝ[batch: B, seq: 4]) = N.apply(θ, axis seq, x)\n"
    )
    assert accepted(text).result("f") == "ℝ[batch: B, seq: 4]"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("centred(x)", "E2021"),
        ("centred(axis model, axis batch, x)", "E2021"),
        ("centred(axis seq, x)", "E2003"),
        ("twice(axis batch, x)", "E2035"),
        ("(λ f. f(x))(centred)", "E2023"),
    ],
)
def test_axes_that_do_not_fit(body: str, code: str) -> None:
    twice = "fn twice(axis a, x : ℝ[batch: B, a: D]) -> ℝ[batch: B, a: D] = 2 * x\n"
    assert check(f"{CENTRED}{twice}fn f(x : ℝ[batch: B, model: D]) = {body}\n").codes == [code]


def test_mistakes_in_a_function_with_axes_are_found_without_a_call() -> None:
    assert check("fn f(axis a, x : ℝ[a: 3]) -> ℝ[] = sum(axis b, x)\n").codes == ["E2008"]


# ----------------------------------------------------------------------------------- stacks of stacks, compositions

NEST = LINEAR + (
    "module Net{D : dim} {\n"
    "  use deep  : stack{2}(stack{3}(Linear{D, D}))\n"
    "  use pairs : stack{4}(Linear{D, 2*D} ∘ Linear{2*D, D})\n"
    "  fn run(x : ℝ[..., D]) -> ℝ[..., D] = deep.apply(x)\n"
    "  fn both(x : ℝ[..., 2*D]) -> ℝ[..., 2*D] = pairs.apply(x)\n"
    "}\n"
)


def test_a_stack_of_stacks_repeats_a_function_made_for_it() -> None:
    checked = accepted(NEST)
    assert names(NEST)[1:] == ["Net.run.stack0", "Net.run", "Net.both.stack0", "Net.both"]
    call, inner = checked.fn("Net.run").body, checked.fn("Net.run.stack0")
    assert isinstance(call, TStackCall)
    assert (str(call.count), call.fn, [str(d) for _, d in call.dim_args]) == ("2", "Net.run.stack0", ["D"])
    assert str(inner.params[0].type) == "params stack{3}(Linear{D, D})"
    assert isinstance(inner.body, TStackCall) and inner.body.fn == "Linear.apply"


def test_what_a_composition_gives_must_be_what_it_takes() -> None:
    text = NEST.replace("stack{4}(Linear{D, 2*D} ∘ Linear{2*D, D})", "stack{4}(Linear{D, D} ∘ Linear{2*D, D})")
    assert check(text).codes == ["E2027"]
    assert check(NEST.replace("pairs.apply(x)", "pairs.apply()")).codes == ["E2021"]


# ---------------------------------------------------------------------------------------------- functions as values


def test_functions_of_modules_are_values() -> None:
    text = LINEAR + (
        "module M{D : dim} {\n  use l : Linear{D, D}\n"
        "  fn act(x : ℝ[..., D]) -> ℝ[..., D] = gelu(l.apply(x))\n"
        "  fn apply(x : ℝ[..., D]) -> ℝ[..., D] =\n    let f = act\n    f(x)\n}\n"
        "fn run(net : M{3}, θ : params net, x : ℝ[2, 3]) -> ℝ[2, 3] =\n  let f = net.apply\n  f(θ, x)\n"
    )
    accepted(text)


def test_shapes_of_a_module_are_found_at_each_call() -> None:
    text = (
        "dim B\nmodule Scale{S : Shape, D : dim} {\n  param g : ℝ[D]\n"
        "  fn apply(x : ℝ[S, D]) -> ℝ[S, D] = x * g\n}\n"
        "model M = Scale{4}\n"
        "fn f(θ : params M, x : ℝ[batch: B, 4], y : ℝ[4]) = (M.apply(θ, x), M.apply(θ, y))\n"
    )
    assert accepted(text).result("f") == "(ℝ[batch: B, 4], ℝ[4])"
    assert check("module M{S : Shape} { param g : ℝ[S] }\n").codes == ["E1032"]


def test_remainders_are_no_operators_of_values() -> None:
    assert check("fn f(n : nat) -> nat = n % 2\n").codes == ["E2020"]
