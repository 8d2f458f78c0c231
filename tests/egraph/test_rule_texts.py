"""Rules as texts: they read, mistakes are named, and every one compiles to egglog."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from presk_rel.core.prims import PRIMS
from presk_rel.egraph.codes import known_ops
from presk_rel.egraph.conditions import CONDITIONS, read_conditions, read_guards
from presk_rel.egraph.egglog_dialect import RULESETS, Session
from presk_rel.egraph.egglog_rules import rule_text, usable
from presk_rel.egraph.egglog_stages import staged
from presk_rel.egraph.language import Terms
from presk_rel.egraph.op_types import TypeTable
from presk_rel.egraph.patterns import Apply, Compute, Literal_, Name, Pattern, PatternError, parse, read_rule
from presk_rel.egraph.rule import OUTSIDE, Rule
from presk_rel.egraph.rules import RULES


def rule(left: str, right: str, *conditions: str) -> Rule:
    return Rule("r", left, right, conditions, "because")


def names(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Name):
        yield pattern.name
        return
    yield pattern.type.name
    yield from (a.name for a in pattern.attrs if isinstance(a, Name))
    for arg in pattern.args:
        yield from names(arg)


def test_operands_attributes_and_types():
    found = parse("(mean :axis a (pow :n 2 x))")
    assert isinstance(found, Apply)
    assert (found.op, found.attrs, found.attr_kinds, found.type) == ("mean", (Name("a"),), ("axis",), Name("#0"))
    (inner,) = found.args
    assert isinstance(inner, Apply)
    assert (inner.op, inner.attrs, inner.args, inner.type) == ("pow", (Literal_(2),), (Name("x"),), Name("#1"))


def test_an_optional_axis_may_be_absent_required_or_either():
    kinds = [parse(text).attr_kinds for text in ("(sum x)", "(sum :axis a x)", "(sum :axis? a x)")]  # type: ignore[union-attr]
    assert kinds == [("axis?",), ("axis",), ("axis?",)]
    assert parse("(sum x)").attrs == (Literal_(""),)  # type: ignore[union-attr]


def test_constants_are_exact_and_computed():
    found = parse("(const :value (+ c 1/2) :type s)")
    assert isinstance(found, Apply)
    assert found.attrs == (Compute("+", (Name("c"), Literal_(Fraction(1, 2)))),)


def test_the_right_side_has_the_left_sides_type():
    side = read_rule(rule("(neg (neg x))", "(mul x x)"))
    assert isinstance(side.right, Apply)
    assert side.right.type == Name("#0")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(neg x", "not one expression"),
        ("neg x)", "unbalanced"),
        ("(nag x)", "no primitive"),
        ("(add x)", "2 operands"),
        ("(zeros)", "needs `:type`"),
        ("(pow x)", "needs :n"),
        ("(neg :axis a x)", "unknown keywords"),
    ],
)
def test_what_is_no_pattern_is_named(text: str, problem: str):
    with pytest.raises(PatternError, match=problem):
        parse(text)


def test_an_operation_inside_a_right_side_says_its_type():
    with pytest.raises(PatternError, match="needs `:type`"):
        read_rule(rule("(neg x)", "(neg (neg x))"))


def test_a_variable_has_one_kind():
    with pytest.raises(PatternError, match="both"):
        read_rule(rule("(pow :n x x)", "x"))


def test_conditions_are_rows():
    with pytest.raises(PatternError, match="no such condition"):
        read_conditions(rule("(neg x)", "x", "(odd-looking x)"))
    with pytest.raises(PatternError, match="1 arguments"):
        read_conditions(rule("(neg x)", "x", "(real x y)"))


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_is_closed(name: str):
    """The right side and all conditions speak of variables that the left side or a condition binds."""
    one = RULES[name]
    left = set(names(read_rule(one).left))
    binding = ("type", "rational", "dim", "spec")
    bound = {str(c.args[-1]) for c in read_conditions(one) if c.row.params and c.row.params[-1] in binding}
    free = {n for n in read_rule(one).kinds if n not in left | bound}
    assert one.ruleset in ("encode", "merge") or not free
    for condition in (*read_conditions(one), *read_guards(one)):
        assert condition.row is CONDITIONS[condition.row.name]


def test_every_rule_compiles_and_runs():
    """All rules in one session over a program of one input: egglog takes every form."""
    session = Session(Terms(TypeTable({})), tuple(r for r in RULES.values() if r.ruleset not in OUTSIDE))
    chosen, reached = usable(session.rules, set(known_ops()))
    assert chosen == session.rules
    assert {op for op, _ in reached} <= set(PRIMS)
    session.load([], [], reached)
    for ruleset in RULESETS:
        session.step(ruleset)
        session.step(ruleset, 10)
    assert session.counts() == (0, 0)


def test_only_rules_that_can_match_are_loaded():
    chosen, reached = usable(tuple(RULES.values()), {("neg", 1)})
    assert {r.name for r in chosen} == {"neg.neg"}
    assert reached == {("neg", 1)}


def test_a_primitive_of_any_number_of_operands_has_a_constructor_for_each_number():
    rules = tuple(r for r in RULES.values() if r.ruleset not in OUTSIDE)
    chosen, reached = usable(rules, {("ein", 2), ("zeros", 0)})
    assert {r.name for r in chosen} >= {"ein.zeros-2-0", "ein.zeros-2-1"}
    assert not any(r.name.startswith("ein.zeros-3") for r in chosen)
    assert ("ein", 3) not in reached


def test_branches_are_joined_one_by_one():
    like = RULES["add.like-const"]
    forms = rule_text(like, 7, "simplify", Session(Terms(TypeTable({})), ()).attributes)
    kinds = [form.split()[0] for form in forms]
    assert kinds == ["(relation", "(relation", "(rule", "(rule"]
    assert forms[2].count("o_const") == forms[3].split(":ruleset")[0].split("((let")[0].count("o_const") == 1


def test_facts_stand_where_their_variables_are_bound():
    query = staged([["(= e0 (f c1 v0))"], ["(= c1 (g v1))"]], ["(= v2 (ty v0))", "(!= v1 v2)"], "v2", {}, "n")
    assert query.forms[1].startswith("(rule ((= e0 (f c1 v0)) (= v2 (ty v0)))")
    assert query.facts == ["(foundn_0 c1 v2)", "(= c1 (g v1))", "(!= v1 v2)"]
