"""What programs mean, fact by fact, on both engines (Soufflé's part is marked `souffle`)."""

from __future__ import annotations

import gc

import pytest

from presk_rel.diagnostics import PreskBug, PreskError
from presk_rel.rules import souffle
from presk_rel.rules.ast import Row
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.engine import Engine, solve

ENGINES = [pytest.param("embedded"), pytest.param("souffle", marks=pytest.mark.souffle)]

DECLARATIONS = """
.decl e(x:number, y:number)   .input e
.decl s(x:symbol)             .input s
.decl n(x:number)
.decl p(x:number, y:number)
.decl w(x:symbol)
.decl yes()
"""
FACTS: dict[str, list[Row]] = {"e": [(1, 2), (2, 3), (3, 1), (3, 4)], "s": [("a",), ("né",), ("",)]}


def rows(engine: Engine, text: str, relation: str = "n") -> list[Row]:
    return solve(parse_program(DECLARATIONS + text), FACTS, engine).rows(relation)


def numbers(*values: int) -> list[Row]:
    return [(v,) for v in values]


@pytest.mark.parametrize("engine", ENGINES)
class TestArithmetic:
    @pytest.mark.parametrize(
        ("term", "value"),
        [
            ("x + 2147483647", -2147483648),
            ("-2147483648 - x", 2147483647),
            ("65536 * 65536", 0),
            ("-7 / (x + 1)", -3),
            ("7 / (-x - 1)", -3),
            ("-7 % 3", -1),
            ("7 % -3", 1),
            ("-2147483647 / x", -2147483647),
            ("2 + 3 * 4 - 1", 13),
            ("min(x, 3, -2)", -2),
            ("max(x, 3, -2)", 3),
            ('strlen("né")', 3),
            ('strlen(cat("a", "bc", ""))', 3),
        ],
    )
    def test_terms(self, engine: Engine, term: str, value: int) -> None:
        assert rows(engine, f"n({term}) :- e(x, 2).") == numbers(value)

    def test_in_an_atom(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- e(x, y), e(y - 1, x + 1).") == numbers(1, 2, 3)

    def test_under_negation(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- e(x, y), !e(x + 1, y + 1).") == numbers(3)

    def test_a_guarded_division_is_not_computed(self, engine: Engine) -> None:
        assert rows(engine, "n(y) :- e(x, _), y = 6 / (x - 1), x != 1.") == numbers(3, 6)

    def test_division_by_zero(self, engine: Engine) -> None:
        with pytest.raises(PreskError, match="E9130"):
            rows(engine, "n(6 / (x - 1)) :- e(x, _).")


@pytest.mark.parametrize("engine", ENGINES)
class TestSymbols:
    def test_order_is_that_of_code_points(self, engine: Engine) -> None:
        assert rows(engine, 'w(x) :- s(x), x < "b".', "w") == [("",), ("a",)]
        assert rows(engine, 'w(x) :- s(x), x >= "a".', "w") == [("a",), ("né",)]

    def test_cat_and_extrema(self, engine: Engine) -> None:
        assert rows(engine, 'w(cat(x, "-", y)) :- s(x), s(y), x != "", max(x, y) = y.', "w") == [
            ("a-a",),
            ("a-né",),
            ("né-né",),
        ]

    def test_quotes_and_reserved_signs_in_constants(self, engine: Engine) -> None:
        assert rows(engine, 'w("a \\" b \' % { } .").', "w") == [("a \" b ' % { } .",)]


@pytest.mark.parametrize("engine", ENGINES)
class TestAggregates:
    def test_of_nothing(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- x = sum y : { e(9, y) }.") == numbers(0)
        assert rows(engine, "n(x) :- x = count : { e(9, _) }.") == numbers(0)
        assert rows(engine, "n(x) :- x = max y : { e(9, y) }. n(x) :- x = min y : { e(9, y) }.") == []

    def test_groups_come_from_outside(self, engine: Engine) -> None:
        assert rows(engine, "p(x, c) :- e(x, _), c = count : { e(x, _) }.", "p") == [(1, 1), (2, 1), (3, 2)]

    def test_solutions_are_counted_not_values(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- x = sum 1 : { e(_, _) }.") == numbers(4)
        assert rows(engine, "n(x) :- x = count : { e(a, b), e(b, c) }.") == numbers(4)

    def test_expressions_comparisons_and_negation_inside(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- x = max a * 10 + b : { e(a, b), a < b, !e(b, a + 1) }.") == numbers(34)

    def test_inside_an_expression_and_as_a_test(self, engine: Engine) -> None:
        assert rows(engine, "n(10 * x) :- e(x, _), 1 + count : { e(x, _) } = 3.") == numbers(30)

    def test_nested(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- x = count : { e(a, b), 2 = count : { e(a, _) } }.") == numbers(2)

    def test_own_variables_are_separate(self, engine: Engine) -> None:
        assert rows(engine, "n(x + y) :- x = count : { e(z, 2) }, y = max z : { e(z, _) }.") == numbers(4)

    def test_sums_wrap(self, engine: Engine) -> None:
        assert rows(engine, "n(x) :- x = sum 1073741824 : { e(_, _) }.") == numbers(0)


@pytest.mark.parametrize("engine", ENGINES)
class TestRules:
    def test_recursion(self, engine: Engine) -> None:
        closure = "p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
        assert rows(engine, closure, "p") == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 4)]

    def test_facts_of_a_recursive_relation_start_the_recursion(self, engine: Engine) -> None:
        assert rows(engine, "n(1). n(y) :- n(x), e(x, y).") == numbers(1, 2, 3, 4)

    def test_mutual_recursion(self, engine: Engine) -> None:
        text = "n(1). p(x, y) :- n(x), e(x, y). n(y) :- p(_, y), y < 3."
        assert rows(engine, text) == numbers(1, 2)

    def test_an_input_relation_may_have_rules(self, engine: Engine) -> None:
        assert rows(engine, "e(x, x) :- e(x, 2). n(x) :- e(x, x).") == numbers(1)

    def test_negation_with_wildcards(self, engine: Engine) -> None:
        assert rows(engine, "n(y) :- e(_, y), !e(y, _).") == numbers(4)

    def test_no_columns(self, engine: Engine) -> None:
        assert rows(engine, "yes() :- e(_, 4). n(1) :- yes(). n(2) :- !yes().") == numbers(1)
        assert rows(engine, "yes() :- e(_, 5).", "yes") == []
        assert rows(engine, "yes() :- e(x, y), e(y, x + 2).", "yes") == [()]

    def test_repeated_variables_and_constants(self, engine: Engine) -> None:
        assert rows(engine, "p(x, x) :- e(x, _). n(x) :- p(x, x), e(3, x).") == numbers(1)

    def test_equalities_bind_in_any_order(self, engine: Engine) -> None:
        assert rows(engine, "n(a) :- a = b + 1, b = c, c = d * 2, e(d, 4).") == numbers(7)

    def test_a_body_longer_than_pythons_nesting(self, engine: Engine) -> None:
        chain = ", ".join(f"e(x{i}, x{i + 1})" for i in range(40))
        assert rows(engine, f"n(x40) :- {chain}, x0 = 1.") == numbers(2)

    def test_a_rule_without_relations(self, engine: Engine) -> None:
        assert rows(engine, "n(1 + 1). n(x) :- x = 3. n(9) :- 1 > 2.") == numbers(2, 3)


def test_an_aggregate_longer_than_pythons_nesting() -> None:
    """Soufflé makes a relation of the body, with a column for each variable, and has too few columns for this."""
    chain = ", ".join(f"e(x{i}, x{i + 1})" for i in range(40))
    assert rows("embedded", f"n(c) :- c = count : {{ {chain}, x0 = 1 }}.") == numbers(1)


def test_names_of_the_user_do_not_reach_generated_code() -> None:
    text = """
    .decl delta(new:number, t:number) .decl r0(lambda:number) .decl constants(x:symbol)
    delta(1, 2). r0(new) :- delta(new, out), delta(_, out), build = out, t = build, t > import.
    """
    with pytest.raises(PreskError, match="`import`"):
        parse_program(text)
    relations = solve(parse_program(text.replace("> import", "> 1") + 'constants("\'); import os #").'), {}, "embedded")
    assert relations.rows("r0") == [(1,)]
    assert relations.rows("constants") == [("'); import os #",)]


def test_a_long_chain_needs_no_recursion() -> None:
    program = parse_program(DECLARATIONS + "n(0). n(y) :- n(x), e(x, y).")
    relations = solve(program, {"e": [(i, i + 1) for i in range(30_000)]}, "embedded")
    assert len(relations.rows("n")) == 30_001


def test_the_collector_is_as_before() -> None:
    assert gc.isenabled()
    rows("embedded", "n(1).")
    assert gc.isenabled()


class TestFacts:
    @pytest.mark.parametrize(
        "facts",
        [
            {"unknown": [(1,)]},
            {"n": [(1,)]},
            {"e": [(1,)]},
            {"e": [(1, 2), (1, 2, 3)]},
            {"e": [(1, "2")]},
            {"e": [(1, True)]},
            {"e": [(1, 2**31)]},
            {"s": [(1,)]},
        ],
    )
    def test_that_do_not_fit_are_refused(self, facts: dict[str, list[Row]]) -> None:
        with pytest.raises(PreskError) as caught:
            solve(parse_program(DECLARATIONS), facts)
        assert [d.code for d in caught.value.diagnostics] == ["E9120"]

    def test_may_repeat_and_come_from_an_iterator(self) -> None:
        relations = solve(parse_program(DECLARATIONS), {"e": iter([(1, 2), (1, 2)])})
        assert relations.rows("e") == [(1, 2)]


@pytest.mark.souffle
class TestSouffle:
    def test_gives_only_the_relations_asked_for(self) -> None:
        program = parse_program(DECLARATIONS + "n(x) :- e(x, _). p(x, x) :- n(x).")
        relations = solve(program, FACTS, "souffle", outputs=["p"])
        assert relations.rows("p") == [(1, 1), (2, 2), (3, 3)] and relations.rows("e") == FACTS["e"]
        with pytest.raises(PreskBug):
            relations.rows("n")

    def test_awkward_symbols_make_the_round_trip(self) -> None:
        symbols = ["tab\t", "\n", "\r\n", "\\", "\\t", '"', "", " ", "é\u2028", "\ud800", "\x00", "a\\nb", "\\\\n"]
        program = parse_program(
            ".decl s(x:symbol) .input s .decl t(x:symbol) t(x) :- s(x)."
            r't("\n\\\t"). t(cat(x, "\t")) :- s(x), x != "\\".'
        )
        facts: dict[str, list[Row]] = {"s": [(x,) for x in symbols]}
        assert solve(program, facts, "souffle").rows("t") == solve(program, facts, "embedded").rows("t")

    def test_symbols_it_cannot_measure_are_left_to_the_embedded_engine(self) -> None:
        program = parse_program(".decl s(x:symbol) .input s .decl t(n:number) t(strlen(x)) :- s(x).")
        assert solve(program, {"s": [("é",)]}, "souffle").rows("t") == [(2,)]
        with pytest.raises(PreskError, match="E9124"):
            solve(program, {"s": [("a\tb",)]}, "souffle")

    def test_is_available(self) -> None:
        assert souffle.available()
