"""Laws of typing on generated programs: names do not matter, and what holds for all naturals holds for each."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.types.programs import check

DIMS = ("A", "B", "C")
AXES = ("batch", "seq", "model", None)


@st.composite
def shapes(draw: st.DrawFn) -> str:
    names = draw(st.permutations(AXES[:3]))[: draw(st.integers(0, 3))]
    kept = [n if draw(st.booleans()) else None for n in names]
    lengths = [draw(st.sampled_from([*DIMS, "2*A", "A + B", "3"])) for _ in kept]
    return ", ".join(d if n is None else f"{n}: {d}" for n, d in zip(kept, lengths, strict=True))


def exprs(variables: list[str]) -> st.SearchStrategy[str]:
    atoms = st.sampled_from([*variables, "0.5", "2"])
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "·"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            inner.map(lambda e: f"gelu({e})"),
            inner.map(lambda e: f"mean({e})"),
            st.tuples(st.sampled_from(AXES[:3]), inner).map(lambda t: f"sum(axis {t[0]}, {t[1]})"),
            inner.map(lambda e: f"({e})^2"),
            inner.map(lambda e: f"h({e})"),
            inner.map(lambda e: f"(λ a. a + {e})({e})"),
        ),
        max_leaves=6,
    )


@st.composite
def programs(draw: st.DrawFn) -> str:
    x, y, h = draw(shapes()), draw(shapes()), draw(shapes())
    lets = draw(st.lists(exprs(["x", "y"]), max_size=3))
    lines = [f"  let z{i} = {e}" for i, e in enumerate(lets)]
    last = draw(exprs(["x", "y", *(f"z{i}" for i in range(len(lets)))]))
    own = re.sub(r"\b[ABC]\b", lambda m: f"{m.group()}h", h)
    header = "".join(f"dim {d}\ndim {d}h\n" for d in DIMS) + f"fn h(x : ℝ[{own}]) -> ℝ[{own}] = x * 2\n"
    return header + f"fn f(x : ℝ[{x}], y : ℝ[{y}]) =\n" + "\n".join([*lines, f"  {last}"]) + "\n"


def rename(text: str) -> str:
    new = {
        "A": "Alpha",
        "B": "Width",
        "C": "Zed",
        "batch": "β",
        "seq": "τ",
        "model": "m",
        "x": "x̂",
        "y": "ŷ",
        "h": "helper",
        "a": "v",
    }
    return re.sub(r"\b[A-Za-z]+\b", lambda m: new.get(m.group(), m.group()), text)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_a_renamed_program_checks_the_same(text: str) -> None:
    before, after = check(text), check(rename(text))
    assert before.codes == after.codes
    if before.program is not None:
        assert rename(before.result("f")) == after.result("f")


@settings(max_examples=60, deadline=None)
@given(programs(), st.tuples(*(st.integers(0, 5) for _ in DIMS)))
def test_a_well_typed_program_stays_so_at_every_value_of_its_dimensions(text: str, values: tuple[int, ...]) -> None:
    if check(text).program is None:
        return
    for name, value in zip(DIMS, values, strict=True):
        text = text.replace(f"dim {name}\n", f"const {name} = {value}\n")
    assert not check(text).diagnostics, check(text).said()


@settings(max_examples=60, deadline=None)
@given(programs())
def test_a_counterexample_refutes_the_program(text: str) -> None:
    """At the counterexample's values the program has an error at the same place."""
    checked = check(text)
    for diagnostic in checked.diagnostics:
        if diagnostic.counterexample is None:
            continue
        at = text
        for name, value in diagnostic.counterexample:
            at = at.replace(f"dim {name}\n", f"const {name} = {value}\n")
        again = check(at)
        assert diagnostic.code in again.codes, f"{diagnostic.message}\n{again.said()}"
