"""All engines give equal relations on random programs, and every row has a checked proof of least height."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from presk_rel.rules.ast import Atom, Comparison, Negation, Program, RelationDecl, Row, Rule
from presk_rel.rules.dialect import parse_program
from presk_rel.rules.embedded import solve_embedded
from presk_rel.rules.engine import Relations, solve
from presk_rel.rules.printer import Printer
from presk_rel.rules.proof_check import check_proof
from presk_rel.rules.proofs import Prover
from tests.rules.clingo_oracle import solve_clingo
from tests.rules.random_programs import Example, examples

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def tables(relations: Relations) -> dict[str, set[Row]]:
    return {name: set(relations.table(name)) for name in relations.program.relations}


@relaxed
@given(examples())
def test_embedded_equals_clingo(example: Example) -> None:
    program = example.program
    assert tables(solve(program, example.facts, "embedded")) == solve_clingo(program, example.facts)


@pytest.mark.souffle
@relaxed
@given(examples())
def test_embedded_equals_souffle(example: Example) -> None:
    program = example.program
    assert tables(solve(program, example.facts, "embedded")) == tables(solve(program, example.facts, "souffle"))


@settings(relaxed, max_examples=20)
@given(examples())
def test_the_rank_of_a_row_is_zero_for_facts_only(example: Example) -> None:
    relations = solve(example.program, example.facts, "embedded")
    for name, rows in solve_embedded(example.program, example.facts).rows.items():
        assert {row for row, rank in rows.items() if rank == 0} == set(relations.facts[name])


@settings(relaxed, max_examples=20)
@given(examples())
def test_a_printed_rule_reads_back_as_itself(example: Example) -> None:
    program = example.program
    declarations = "\n".join(line for line in example.text.splitlines() if line.startswith("."))
    again = parse_program(declarations + "\n" + "\n".join(map(Printer().rule, program.rules)))
    assert [(r.head, r.body) for r in again.rules] == [(r.head, r.body) for r in program.rules]


@settings(relaxed, max_examples=30)
@given(examples(), st.data())
def test_proofs_are_accepted_by_the_checker_and_have_least_height(example: Example, data: st.DataObject) -> None:
    relations = solve(example.program, example.facts, "embedded")
    heights = least_heights(relations)
    prover = Prover(relations)
    rows = [(name, row) for name in relations.program.relations for row in relations.rows(name)]
    assert {fact: heights.get(fact) for fact in rows} == heights
    for relation, row in data.draw(st.lists(st.sampled_from(rows), max_size=12)) if rows else []:
        proof = prover.prove(relation, row)
        assert proof.fact == (relation, row)
        assert proof.height == heights[relation, row]
        assert check_proof(relations, proof) == []


def least_heights(relations: Relations) -> dict[tuple[str, Row], int]:
    """The height of each row by brute force: the first round in which it follows, when every round applies all rules
    to the rows of the round before, and negation and aggregates look at the finished relations."""
    step = one_round(relations.program)
    known = {(name, row): 0 for name, rows in relations.facts.items() for row in rows}
    for height in range(1, 10_000):
        facts = {name: list(relations.table(name)) for name in relations.program.relations}
        facts |= {f"{name}_before": [r for n, r in known if n == name] for name in relations.program.relations}
        after = solve(step, facts, "embedded")
        fresh = [(n, r) for n in relations.program.relations for r in after.rows(f"{n}_after") if (n, r) not in known]
        if not fresh:
            return known
        known |= dict.fromkeys(fresh, height)
    raise AssertionError("no fixed point")


def one_round(program: Program) -> Program:
    """Rules `p_after :- q_before, !r`: one application of the rules of `program`."""

    def before(literal: Atom | Negation | Comparison) -> Atom | Negation | Comparison:
        return Atom(f"{literal.relation}_before", literal.arguments) if isinstance(literal, Atom) else literal

    relations: dict[str, RelationDecl] = {}
    for name, decl in program.relations.items():
        for suffix in ("", "_before", "_after"):
            full = name + suffix
            relations[full] = RelationDecl(full, decl.attributes, decl.types, suffix != "_after", False)
    rules = tuple(
        Rule(Atom(f"{rule.head.relation}_after", rule.head.arguments), tuple(map(before, rule.body)), rule.name)
        for rule in program.rules
    )
    return Program(relations, (), rules, ())
