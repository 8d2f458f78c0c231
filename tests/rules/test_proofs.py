"""Proofs of rows, explanations of absences, and the independent checker, on one small program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.rules import proofs
from presk_rel.rules.absence import explain_absence
from presk_rel.rules.ast import Comparison, Constant, Row
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.engine import Relations, solve
from presk_rel.rules.proof import Absence, ProofNode, walk_proof
from presk_rel.rules.proof_check import check_proof
from presk_rel.rules.proofs import Prover

PROGRAM = parse_program(
    """
    .decl edge(x:symbol, y:symbol)  .input edge
    .decl closed(x:symbol)          .input closed
    .decl path(x:symbol, y:symbol)
    .decl far(x:symbol, y:symbol)
    .decl degree(x:symbol, n:number)
    .decl twice(n:number)
    .decl busy(x:symbol)
    // [path.edge]
    path(x, y) :- edge(x, y), !closed(y).
    // [path.step]
    path(x, z) :- path(x, y), edge(y, z), !closed(z), x != z.
    // [path.loop]
    path(x, x) :- path(x, y), path(y, x).
    far(x, y) :- path(x, y), !edge(x, y), !edge(y, _).
    degree(x, n) :- edge(x, _), n = count : { edge(x, y), y != "f" }.
    twice(n * 2) :- degree(_, n).
    busy(x) :- degree(x, n), n > 1 ; closed(x), twice(m), m >= 4.
    closed("z").
    """,
    "graph.dl",
)
FACTS: dict[str, list[Row]] = {
    "edge": [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("b", "d"), ("e", "f"), ("f", "z")],
    "closed": [("f",)],
}


@pytest.fixture(scope="module")
def relations() -> Relations:
    return solve(PROGRAM, FACTS, "embedded")


@pytest.fixture(scope="module")
def prover(relations: Relations) -> Prover:
    return Prover(relations)


def outline(proof: ProofNode) -> list[str]:
    lines = [(depth, n.text + (f" by {n.rule}" if n.rule else ""), seen) for depth, n, seen in walk_proof(proof)]
    return ["  " * depth + text + " …" * seen for depth, text, seen in lines]


def explain(prover: Prover, relation: str, *row: str | int | None) -> Absence:
    return explain_absence(prover, relation, row)


class TestProofs:
    def test_an_input_row_proves_itself(self, prover: Prover) -> None:
        assert outline(prover.prove("edge", ("a", "b"))) == ['edge("a", "b")']
        assert prover.prove("closed", ("z",)).kind == "fact"

    def test_the_least_height_is_found_around_cycles(self, prover: Prover) -> None:
        proof = prover.prove("path", ("a", "e"))
        assert proof.height == 3
        assert outline(proof) == [
            'path("a", "e") by path.step',
            '  path("a", "d") by path.step',
            '    path("a", "b") by path.edge',
            '      edge("a", "b")',
            '      !closed("b")',
            '    edge("b", "d")',
            '    !closed("d")',
            '    "a" != "d"',
            '  edge("d", "e")',
            '  !closed("e")',
            '  "a" != "e"',
        ]

    def test_every_step_says_where_its_rule_stands(self, prover: Prover) -> None:
        assert str(prover.prove("path", ("a", "b")).span) == "graph.dl:10:5"

    def test_premises_are_shared(self, prover: Prover) -> None:
        proof = prover.prove("path", ("a", "a"))
        assert proof.rule == "path.loop"
        forth, back = proof.because
        assert (forth.text, back.text) == ('path("a", "b")', 'path("b", "a")')

    def test_an_absence_shows_what_is_absent(self) -> None:
        solved = solve(PROGRAM, {"edge": [("a", "b"), ("b", "c")]}, "embedded")
        assert outline(Prover(solved).prove("far", ("a", "c")))[-2:] == ['  !edge("a", "c")', '  !edge("c", _)']

    def test_an_aggregate_shows_its_group(self, prover: Prover) -> None:
        node = prover.prove("degree", ("b", 2)).because[1]
        assert node.kind == "aggregate" and node.text == '2 = count : { edge("b", y), y != "f" }'
        assert node.group == (("edge", ("b", "c")), ("edge", ("b", "d")))

    def test_alternatives_of_a_clause_share_its_name(self, prover: Prover) -> None:
        assert outline(prover.prove("busy", ("f",))) == [
            'busy("f") by busy/1',
            '  closed("f")',
            "  twice(4) by twice/1",
            '    degree("b", 2) by degree/1',
            '      edge("b", "c")',
            '      2 = count : { edge("b", y), y != "f" }',
            "  4 >= 4",
        ]

    def test_all_rows_have_proofs_that_the_checker_accepts(self, relations: Relations, prover: Prover) -> None:
        for name in PROGRAM.relations:
            for row in relations.rows(name):
                assert check_proof(relations, prover.prove(name, row)) == []

    def test_a_row_that_does_not_hold_has_no_proof(self, prover: Prover) -> None:
        for relation, row in [("path", ("a", "f")), ("path", ("q", "q")), ("nothing", ())]:
            with pytest.raises(PreskError, match="E9125"):
                prover.prove(relation, row)

    @pytest.mark.souffle
    def test_proofs_do_not_depend_on_the_engine(self, relations: Relations, prover: Prover) -> None:
        other = Prover(solve(PROGRAM, FACTS, "souffle"))
        for name in PROGRAM.relations:
            for row in relations.rows(name):
                assert outline(prover.prove(name, row)) == outline(other.prove(name, row))

    def test_a_proof_as_deep_as_the_input_is_long(self) -> None:
        program = parse_program(".decl e(x:number, y:number) .input e .decl r(x:number) r(0). r(y) :- r(x), e(x, y).")
        solved = solve(program, {"e": [(i, i + 1) for i in range(5_000)]})
        proof = Prover(solved).prove("r", (5_000,))
        assert proof.height == 5_000
        assert sum(1 for _ in walk_proof(proof)) == 10_001
        assert check_proof(solved, proof) == []

    def test_too_many_ways_are_not_all_tried(self, prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(proofs, "CONE_LIMIT", 10)
        with pytest.raises(PreskError, match="E9127"):
            prover.prove("path", ("a", "e"))

    def test_a_proof_is_a_graph_where_its_tree_would_be_huge(self) -> None:
        program = parse_program(".decl d(x:number) d(0). d(x + 1) :- d(x), d(y), x = y, x < 60.")
        solved = solve(program, {})
        proof = Prover(solved).prove("d", (60,))
        assert proof.height == 60 and sum(1 for _ in walk_proof(proof)) < 400
        assert check_proof(solved, proof) == []


Mutation = Callable[[ProofNode], ProofNode]


def change_premise(index: int, change: Mutation) -> Mutation:
    def mutate(node: ProofNode) -> ProofNode:
        premises = list(node.because)
        premises[index] = change(premises[index])
        return replace(node, because=tuple(premises))

    return mutate


def claim(node: ProofNode, left: int | str, right: int | str) -> ProofNode:
    return replace(node, claim=Comparison("!=", Constant(left), Constant(right)))


PATH: dict[str, Mutation] = {
    "another row": lambda n: replace(n, fact=("path", ("a", "d"))),
    "a row that does not hold": lambda n: replace(n, fact=("path", ("a", "f"))),
    "another relation": lambda n: replace(n, fact=("far", ("a", "e"))),
    "another rule": lambda n: replace(n, rule="path.loop"),
    "a rule of another relation": lambda n: replace(n, rule="far/1"),
    "no such rule": lambda n: replace(n, rule="path.jump"),
    "no rule": lambda n: replace(n, rule=None),
    "another span": lambda n: replace(n, span=n.because[0].because[0].span),
    "a derived row as a fact": lambda n: ProofNode("fact", n.fact),
    "a derived row as a fact, deeper": change_premise(0, lambda n: ProofNode("fact", n.fact)),
    "a height too great": lambda n: replace(n, height=7),
    "a height too small": lambda n: replace(n, height=2),
    "a height of a leaf": change_premise(1, lambda n: replace(n, height=1)),
    "a premise left out": lambda n: replace(n, because=n.because[:-1]),
    "a premise too many": lambda n: replace(n, because=(*n.because, n.because[-1])),
    "premises swapped": lambda n: replace(n, because=(n.because[1], n.because[0], *n.because[2:])),
    "a premise about other values": change_premise(1, lambda n: replace(n, fact=("edge", ("e", "f")))),
    "an input row that is none": change_premise(1, lambda n: replace(n, fact=("edge", ("d", "q")))),
    "a premise of a wrong kind": change_premise(2, lambda n: ProofNode("fact", ("closed", ("f",)))),
    "an absence of another row": change_premise(2, lambda n: replace(n, fact=("closed", ("c",)))),
    "an absence of what is there": change_premise(2, lambda n: replace(n, fact=("closed", ("f",)))),
    "an absence of any row": change_premise(2, lambda n: replace(n, fact=("closed", (None,)))),
    "an absence in another relation": change_premise(2, lambda n: replace(n, fact=("busy", ("e",)))),
    "an absence in no relation": change_premise(2, lambda n: replace(n, fact=("open", ("e",)))),
    "another claim": change_premise(3, lambda n: claim(n, "a", "d")),
    "a false claim": change_premise(3, lambda n: claim(n, "a", "a")),
    "no claim": change_premise(3, lambda n: replace(n, claim=None)),
    "a claim with a group": change_premise(3, lambda n: replace(n, group=(("edge", ("a", "b")),))),
    "a comparison as an aggregate": change_premise(3, lambda n: replace(n, kind="aggregate")),
    "a fault far below": change_premise(0, change_premise(0, change_premise(1, lambda n: replace(n, kind="fact")))),
    "a fault far below in a row": change_premise(0, change_premise(0, lambda n: replace(n, fact=("path", ("a", "c"))))),
    "no row": lambda n: replace(n, fact=None),
    "a row with a gap": lambda n: replace(n, fact=("path", ("a", None))),
    "a proof of an absence": lambda n: n.because[2],
    "a proof of a comparison": lambda n: n.because[3],
}


@pytest.mark.parametrize("mutation", PATH.values(), ids=PATH)
def test_the_checker_refuses(relations: Relations, prover: Prover, mutation: Mutation) -> None:
    proof = prover.prove("path", ("a", "e"))
    assert check_proof(relations, proof) == []
    assert check_proof(relations, mutation(proof)) != []


AGGREGATE: dict[str, Mutation] = {
    "another count": lambda n: replace(n, fact=("degree", ("b", 3))),
    "another claim": change_premise(1, lambda n: claim(n, 3, 2)),
    "a group with a row missing": change_premise(1, lambda n: replace(n, group=n.group[:1])),
    "a group with a row too many": change_premise(1, lambda n: replace(n, group=(*n.group, ("edge", ("b", "z"))))),
    "an aggregate as a comparison": change_premise(1, lambda n: replace(n, kind="comparison")),
    "another premise": change_premise(0, lambda n: replace(n, fact=("edge", ("a", "b")))),
}


@pytest.mark.parametrize("mutation", AGGREGATE.values(), ids=AGGREGATE)
def test_the_checker_refuses_aggregates(relations: Relations, prover: Prover, mutation: Mutation) -> None:
    proof = prover.prove("degree", ("b", 2))
    assert check_proof(relations, proof) == []
    assert check_proof(relations, mutation(proof)) != []


def test_the_checker_refuses_a_circle(relations: Relations, prover: Prover) -> None:
    """Two rows that prove each other by `path.loop`: each step is an instance, but no heights fit."""
    loop = prover.prove("path", ("a", "a"))
    circle = replace(loop, because=loop.because)
    object.__setattr__(circle, "because", (circle, circle))
    assert any("height" in problem for problem in check_proof(relations, circle))


class TestAbsences:
    def attempts(self, absence: Absence) -> list[tuple[str, list[str], str, str]]:
        return [(a.rule, [n.text for n in a.satisfied], a.failed.kind, a.failed.text) for a in absence.attempts]

    def test_each_rule_gets_as_far_as_it_can(self, prover: Prover) -> None:
        assert self.attempts(explain(prover, "path", "a", "f")) == [
            ("path.edge", [], "fact", 'edge("a", "f")'),
            ("path.step", ['path("a", "e")', 'edge("e", "f")'], "absence", '!closed("f")'),
            ("path.loop", [], "comparison", '"f" = "a"'),
        ]

    def test_the_goal_may_leave_values_open(self, prover: Prover) -> None:
        assert self.attempts(explain(prover, "path", "q", None))[0] == ("path.edge", [], "fact", 'edge("q", _)')
        assert self.attempts(explain(prover, "busy", "d")) == [
            ("busy/1", ['degree("d", 1)'], "comparison", "1 > 1"),
            ("busy/1", [], "fact", 'closed("d")'),
        ]

    def test_arithmetic_and_aggregates(self, prover: Prover) -> None:
        assert self.attempts(explain(prover, "twice", 3)) == [
            ("twice/1", ["degree(_, 1)"], "comparison", "3 = (1 * 2)")
        ]
        failed = explain(prover, "degree", "b", 3).attempts[0].failed
        assert failed.kind == "aggregate" and failed.text.startswith("3 = count")
        assert len(failed.group) == 2

    def test_what_is_there_is_presented(self, prover: Prover) -> None:
        absence = explain(prover, "degree", None, 2)
        assert absence.present == (("b", 2), ("c", 2)) and absence.attempts == ()

    def test_an_input_relation_has_no_rules(self, prover: Prover) -> None:
        assert explain(prover, "edge", "a", "q") == Absence(("edge", ("a", "q")), (), [])
