"""Text → program: what each construct of the rule language means, and where errors point."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    Binary,
    Call,
    Comparison,
    Constant,
    Negation,
    Program,
    Variable,
    Wildcard,
)
from presk_rel.rules.dialect import extend_program, parse_program, read_program

DECLARATIONS = """
.decl p(x:number, y:number)
.decl q(x:number)
.decl s(x:symbol)
.decl nothing()
"""


def program(text: str) -> Program:
    return parse_program(DECLARATIONS + text)


def codes(text: str) -> list[str]:
    with pytest.raises(PreskError) as caught:
        parse_program(text)
    return [d.code for d in caught.value.diagnostics]


def test_declarations_types_and_directions() -> None:
    read = parse_program(
        """
        .type Name <: symbol
        .type Any = Name | symbol   // a union
        .decl r, t(a:Name, b:number, c:Any) brie
        .input r
        .output r, t
        """
    )
    assert list(read.relations) == ["r", "t"]
    assert read.relations["t"].types == ("symbol", "number", "symbol")
    assert [a.type_name for a in read.relations["t"].attributes] == ["Name", "number", "Any"]
    assert read.inputs == ("r",) and read.outputs == ("r", "t")


def test_a_fact_of_constants_is_a_row() -> None:
    read = program('p(0x10, -0b11). s("tab\\t, quote \\", backslash \\\\"). nothing().')
    assert [f.row for f in read.facts] == [(16, -3), ('tab\t, quote ", backslash \\',), ()]
    assert read.rules == ()


def test_terms_group_as_in_arithmetic() -> None:
    (rule,) = program("q(1 + x * -y - 2 % x) :- p(x, y).").rules
    x, y = Variable("x"), Variable("y")
    product = Binary("*", x, Binary("-", Constant(0), y))
    assert rule.head.arguments == (Binary("-", Binary("+", Constant(1), product), Binary("%", Constant(2), x)),)


def test_literals() -> None:
    (rule,) = program('q(x) :- p(x, _), !p(x, _), x >= min(1, x, 2), s(z), cat(z, "a") != z.').rules
    x, z = Variable("x"), Variable("z")
    assert rule.body == (
        Atom("p", (x, Wildcard())),
        Negation(Atom("p", (x, Wildcard()))),
        Comparison(">=", x, Call("min", (Constant(1), x, Constant(2)))),
        Atom("s", (z,)),
        Comparison("!=", Call("cat", (z, Constant("a"))), z),
    )


def test_aggregates_of_a_body_or_of_one_relation() -> None:
    rules = program("q(n) :- n = count : { p(x, y), x < y }. q(n) :- n = max x + 1 : p(x, _).").rules
    x, y, n = Variable("x"), Variable("y"), Variable("n")
    counted = Aggregate("count", None, (Atom("p", (x, y)), Comparison("<", x, y)))
    assert rules[0].body == (Comparison("=", n, counted),)
    largest = Aggregate("max", Binary("+", x, Constant(1)), (Atom("p", (x, Wildcard())),))
    assert rules[1].body == (Comparison("=", n, largest),)


def test_heads_and_alternatives_multiply_out() -> None:
    rules = program("q(x), p(x, x) :- q(x), (p(x, 1) ; p(x, 2)) ; p(x, 3).").rules
    q, x = Atom("q", (Variable("x"),)), Variable("x")
    bodies = [(q, Atom("p", (x, Constant(1)))), (q, Atom("p", (x, Constant(2)))), (Atom("p", (x, Constant(3))),)]
    assert [(r.head.relation, r.body) for r in rules] == [(h, b) for h in ("q", "p") for b in bodies]


def test_rules_are_named_by_the_comment_above_or_by_their_place() -> None:
    rules = program(
        """
        q(1) :- nothing().
        // [scopes.visible-here] a name is visible where it is declared,
        // as anyone would expect
        q(2) :- nothing() ; q(3).
        // [not.this-one]

        q(4) :- nothing().
        """
    ).rules
    assert [r.name for r in rules] == ["q/1", "scopes.visible-here", "scopes.visible-here", "q/3"]


def test_spans_count_lines_and_columns_from_one() -> None:
    (rule,) = parse_program(".decl q(x:number)\n  q(x) :-\n q(x).", "a.dl").rules
    assert str(rule.span) == "a.dl:2:3" and str(rule.body[0].span) == "a.dl:3:2"
    assert (rule.span.end.line, rule.span.end.column) == (3, 7)


def test_several_errors_are_reported_at_once() -> None:
    assert codes(".decl q(x:number) q(x) :- r(x). q(x) :- q(x, 1). q(y) :- q(x).") == ["E9106", "E9107", "E9109"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (".decl q(x:number)\nq(x) :- q(x", "2:12"),
        (".decl q(x:number)\nq(x) : q(x).", "2:6"),
        (".decl q(x:number)\nq(é) :- q(é).", "2:3"),
        ('.decl s(x:symbol)\ns("\\q").', "2:3"),
        (".decl match(x:number)", "1:1"),
        (".decl q(x:number)\nq(x) :- q(x), q(ord).", "2:17"),
    ],
)
def test_a_syntax_error_points_at_its_place(text: str, place: str) -> None:
    with pytest.raises(PreskError) as caught:
        parse_program(text, "a.dl")
    found = caught.value.diagnostics[0]
    assert found.code == "E9101" and str(found.span) == f"a.dl:{place}"


@pytest.mark.parametrize("directive", [".comp", ".functor", ".pragma", ".printsize", ".init", ".plan"])
def test_a_directive_outside_the_language_is_named(directive: str) -> None:
    with pytest.raises(PreskError, match=rf"E9113.*`\{directive}`"):
        parse_program(f"{directive} x")


class TestIncludes:
    def test_look_beside_the_file_then_along_the_path(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "lib").mkdir()
        (tmp_path / "main.dl").write_text('.include "sub/a.dl"\nq(x) :- r(x).')
        (tmp_path / "sub" / "a.dl").write_text('.include "b.dl"\n.include "c.dl"')
        (tmp_path / "sub" / "b.dl").write_text(".decl q(x:number)")
        (tmp_path / "lib" / "c.dl").write_text(".decl r(x:number)\nr(1).")
        read = read_program(tmp_path / "main.dl", search=[tmp_path / "lib"])
        assert list(read.relations) == ["q", "r"]
        assert read.facts[0].span.file == str(tmp_path / "lib" / "c.dl")

    def test_a_circle_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.dl").write_text('.include "b.dl"')
        (tmp_path / "b.dl").write_text('.include "./a.dl"')
        with pytest.raises(PreskError, match=r"E9104.*a\.dl → b\.dl → a\.dl"):
            read_program(tmp_path / "a.dl")

    def test_a_missing_file_is_reported_where_it_is_included(self, tmp_path: Path) -> None:
        (tmp_path / "a.dl").write_text('\n.include "b.dl"')
        with pytest.raises(PreskError) as caught:
            read_program(tmp_path / "a.dl")
        assert caught.value.diagnostics[0].code == "E9103"
        assert str(caught.value.diagnostics[0].span).endswith("a.dl:2:1")

    def test_a_long_chain_is_refused(self, tmp_path: Path) -> None:
        for i in range(100):
            (tmp_path / f"f{i}.dl").write_text(f'.include "f{i + 1}.dl"')
        with pytest.raises(PreskError, match="E9102"):
            read_program(tmp_path / "f0.dl")

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "a.dl").write_bytes(b"\xff\xfe")
        with pytest.raises(PreskError, match="E9103"):
            read_program(tmp_path / "a.dl")
        with pytest.raises(PreskError, match="E9103"):
            read_program(tmp_path / "none.dl")


def test_a_program_can_be_extended() -> None:
    extended = extend_program(program("q(1). q(x) :- p(x, _)."), ".decl t(x:number)\nt(x) :- q(x).", "more.dl")
    assert [r.name for r in extended.rules] == ["q/1", "t/1"]
    with pytest.raises(PreskError, match="E9105"):
        extend_program(extended, ".decl t(x:number)", "again.dl")


class TestHostileText:
    """Deep or huge text gives a diagnostic, never an overflow of the stack."""

    @pytest.mark.parametrize(
        "term",
        [
            "(" * 20_000 + "x" + ")" * 20_000,
            "1 + " * 90 + "x",
        ],
        ids=["brackets", "sum"],
    )
    def test_may_be_deep_where_it_does_not_matter(self, term: str) -> None:
        assert len(program(f"q({term}) :- q(x).").rules) == 1

    @pytest.mark.parametrize(
        "body",
        [
            "q(" + "-" * 20_000 + "x), q(x)",
            "x = " + "1 + " * 20_000 + "1",
            "x = " + "max(1, " * 5_000 + "1" + ")" * 5_000,
            "x = " + "count : { q(y), y = " * 3_000 + "1" + "}" * 3_000,
            ", ".join("(q(x) ; q(x))" for _ in range(40)),
            "(" * 3_000 + "q(x)" + " ; q(x))" * 3_000,
        ],
        ids=["minus", "sum", "calls", "aggregates", "product of alternatives", "sum of alternatives"],
    )
    def test_is_refused_beyond_the_limits(self, body: str) -> None:
        assert codes(DECLARATIONS + f"q(x) :- {body}.") == ["E9102"]

    def test_huge_arity(self) -> None:
        columns = ", ".join(f"c{i}:number" for i in range(5_000))
        assert codes(f".decl r({columns})") == ["E9102"]

    def test_huge_numbers(self) -> None:
        assert codes(DECLARATIONS + "q(" + "9" * 100_000 + ").") == ["E9115"]

    def test_many_rules_and_a_long_chain_of_relations(self) -> None:
        declarations = "\n".join(f".decl r{i}(x:number)" for i in range(1_500))
        rules = "\n".join(f"r{i + 1}(x) :- r{i}(x)." for i in range(1_499))
        assert len(parse_program(declarations + rules).rules) == 1_499
