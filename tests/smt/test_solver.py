"""Linear conditions over ℕ: decided for all values, refuted by the smallest counterexample, never guessed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presk_rel.diagnostics import PreskBug
from presk_rel.smt import solver as module
from presk_rel.smt.linear import Linear, constant, linear, symbol
from presk_rel.smt.solver import (
    AtMost,
    Condition,
    Divides,
    Equal,
    Less,
    Proven,
    Refuted,
    Solver,
    decide_by_normal_form,
    holds_at,
    symbols,
)  # fmt: skip

D, T, B = symbol("D"), symbol("T"), symbol("B")


def test_d_equals_4d_fails_for_d_1() -> None:
    assert Solver().prove(Equal(D, D.scale(4))) == Refuted((("D", 1),))


def test_what_z3_says_fails_is_evaluated_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = (AtMost(constant(2), D), Divides(2, D))
    solver = Solver(facts)
    assert solver.prove(Less(D, constant(4))) == Refuted((("D", 4),))
    formula = module._Z3._formula
    wrong = Less(D, constant(5))
    monkeypatch.setattr(module._Z3, "_formula", lambda z3, c: formula(z3, Less(D, constant(3)) if c == wrong else c))
    with pytest.raises(PreskBug, match=r"D < 5 does not fail at \{'D': 4\}"):
        Solver(facts).prove(wrong)


def test_the_normal_form_decides_without_z3() -> None:
    solver = Solver()
    assert solver.prove(Equal(D + T - D, T)) == Proven()
    assert solver.prove(AtMost(D, D + constant(1))) == Proven()
    assert solver.prove(Divides(4, D.scale(8) + constant(4))) == Proven()
    assert solver.prove(Equal(constant(3), constant(4))) == Refuted(())
    assert solver.queries == 0


def test_facts_are_used() -> None:
    solver = Solver((AtMost(T, constant(1024)), Divides(12, D)))
    assert solver.prove(AtMost(T, constant(2000))) == Proven()
    assert solver.prove(AtMost(T, constant(1000))) == Refuted((("T", 1001),))
    assert solver.prove(Divides(4, D)) == Proven()
    assert solver.prove(Divides(5, D)) == Refuted((("D", 12),))


def test_the_counterexample_has_the_smallest_sum_then_the_smallest_symbols_first() -> None:
    assert Solver().prove(Less(D + T, constant(3))) == Refuted((("D", 0), ("T", 3)))
    assert Solver().prove(Equal(D, T)) == Refuted((("D", 0), ("T", 1)))


def test_a_half_is_not_a_natural() -> None:
    assert Solver().prove(Divides(1, D.scale(Fraction(1, 2)))) == Refuted((("D", 1),))


FORMS = st.builds(
    lambda cs, c: linear(list(zip("DTB", cs, strict=True)), c),
    st.lists(st.fractions(-3, 3, max_denominator=3), min_size=3, max_size=3),
    st.fractions(-5, 5, max_denominator=3),
)
CONDITIONS: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Equal, FORMS, FORMS), st.builds(AtMost, FORMS, FORMS), st.builds(Less, FORMS, FORMS),
    st.builds(Divides, st.integers(1, 4), FORMS),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, st.lists(CONDITIONS, max_size=2))
def test_verdicts_agree_with_enumeration(condition: Condition, facts: list[Condition]) -> None:
    verdict = Solver(tuple(facts)).prove(condition)
    names = sorted(symbols(condition).union(*(symbols(f) for f in facts)))
    points = [dict(zip(names, p, strict=True)) for p in product(range(5), repeat=len(names))]
    failing = [p for p in points if all(holds_at(f, p) for f in facts) and not holds_at(condition, p)]
    match verdict:
        case Proven():
            assert failing == []
        case Refuted(counterexample):
            assert set(dict(counterexample)) == symbols(condition)
            own = [tuple(p[n] for n in sorted(symbols(condition))) for p in failing]
            if own:
                best = min(own, key=lambda p: (sum(p), p))
                got = tuple(n for _, n in counterexample)
                assert (sum(got), got) <= (sum(best), best)
        case _:
            pytest.fail("undecided")


@given(CONDITIONS)
def test_the_normal_form_never_contradicts_a_point(condition: Condition) -> None:
    names = sorted(symbols(condition))
    values = [holds_at(condition, dict(zip(names, p, strict=True))) for p in product(range(4), repeat=len(names))]
    if decide_by_normal_form(condition) is True:
        assert all(values)
    if decide_by_normal_form(condition) is False:
        assert not all(values)


@given(FORMS)
def test_printing_a_form_keeps_its_value(form: Linear) -> None:
    point = {"D": 7, "T": 11, "B": 13}
    text = str(form).replace(" ", "")
    assert eval(
        text.replace("/", "*Fr(1)/"), {"Fr": Fraction, **{k: Fraction(v) for k, v in point.items()}}
    ) == form.evaluate(point)
