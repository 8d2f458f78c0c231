"""What the checker says of lengths is what happens at run time: a call that it refuses fails on the exact executor at
the counterexample, and one that it accepts runs at every value of its dimensions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.core.ir import Program
from presk_rel.core.lower import lower
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import Real
from presk_rel.exec.exact.run import Options, run_exact
from tests.types.programs import check

OWN, THEIRS = ("A", "B"), ("M", "N")
HEADER = "".join(f"dim {d}\n" for d in (*OWN, *THEIRS))
BODIES = ("sum(x) + sum(y)", "sum(x · y)", "sum(x * y)")


def lengths(dims: tuple[str, ...]) -> st.SearchStrategy[str]:
    a, b = dims
    return st.sampled_from([a, b, f"2*{a}", f"{a} + {b}", f"{a} + 1", "3"])


def callee(x: list[str], y: list[str], body: str) -> str:
    return f"{HEADER}fn g(x : ℝ[{', '.join(x)}], y : ℝ[{', '.join(y)}]) -> ℝ[] = {body}\n"


def run(core: Program, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    values = {"x": np.full(x, Fraction(1), dtype=object), "y": np.full(y, Fraction(1), dtype=object)}
    run_exact(core, "g", values, {}, options=Options(bits=24))


def shape_at(ty: object, values: dict[str, int]) -> tuple[int, ...]:
    assert isinstance(ty, Real)
    return tuple(int(a.length.evaluate(values)) for a in ty.shape.axes)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(lengths(OWN), min_size=1, max_size=2),
    st.lists(lengths(OWN), min_size=1, max_size=2),
    st.sampled_from(BODIES),
    st.data(),
)
def test_a_call_fails_at_its_counterexample_and_an_accepted_one_runs(
    x: list[str], y: list[str], body: str, data: st.DataObject
) -> None:
    text = callee(x, y, body)
    program = check(text).program
    if program is None:
        return
    given_x, given_y = (data.draw(st.lists(lengths(THEIRS), min_size=len(s), max_size=len(s))) for s in (x, y))
    params = f"x : ℝ[{', '.join(given_x)}], y : ℝ[{', '.join(given_y)}]"
    types = check(f"{HEADER}fn f({params}) -> ℝ[] = sum(x) + sum(y)\n").fn("f").params
    checked = check(f"{text}fn f({params}) -> ℝ[] = g(x, y)\n")
    core = lower(program)
    if checked.program is None:
        for found in (d.counterexample for d in checked.diagnostics if d.counterexample is not None):
            values = {**dict.fromkeys((*OWN, *THEIRS), 0), **dict(found)}
            with pytest.raises(PreskError):
                run(core, *(shape_at(p.type, values) for p in types))
        return
    values = {d: data.draw(st.integers(0, 3)) for d in THEIRS}
    run(core, *(shape_at(p.type, values) for p in types))
