"""Sums as multisets: terms that cancel or repeat are found at any distance, and every order proves equal."""

from __future__ import annotations

import random

import pytest

from presk_rel.core.ir import Program
from presk_rel.core.printer import print_function
from presk_rel.egraph.checker import check
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.language import Terms, encode
from presk_rel.egraph.op_types import TypeTable
from presk_rel.egraph.optimize import optimize
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.sums import WIDEST, normal_sums
from tests.egraph.programs import Builder, real

T = real(("a", 2), 3)


def optimized(program: Program) -> list[str]:
    done = optimize(program, "f")
    assert check(done.proof, RULES, program, done.program) == []
    return operations(done.program)


def operations(program: Program) -> list[str]:
    return [line.split(" = ")[1].split()[0] for line in print_function(program.functions["f"]).splitlines()[1:-2]]


def sum_of(*signed: str) -> Program:
    """`x - y + x …` as a chain, each letter a parameter."""
    b = Builder()
    for name in sorted({s[-1] for s in signed}):
        b.param(name, T)
    whole = signed[0][-1]
    for s in signed[1:]:
        whole = b.prim("sub" if s[0] == "-" else "add", T, whole, s[-1])
    return b.program(whole)


@pytest.mark.parametrize(
    ("signed", "left"),
    [
        (("x", "y", "z", "-x"), ["add"]),
        (("x", "y", "-x", "-y"), ["zeros"]),
        (("x", "y", "z", "w", "x"), ["const", "mul", "add", "add", "add"]),
        (("x", "-y", "z", "-x", "y"), []),
        (("x", "y", "z"), ["add", "add"]),
    ],
)
def test_terms_meet_at_any_distance(signed: tuple[str, ...], left: list[str]):
    assert sorted(optimized(sum_of(*signed))) == sorted(left)


def test_the_same_terms_in_another_order_are_one_sum():
    b = Builder()
    x, y, z = (b.param(n, T) for n in "xyz")
    first = b.prim("add", T, b.prim("add", T, x, y), z)
    second = b.prim("add", T, z, b.prim("add", T, y, x))
    assert optimized(b.program(b.prim("mul", T, first, second))) == ["add", "add", "mul"]


@pytest.mark.parametrize("seed", range(60))
def test_every_sum_is_proven_equal_to_its_normal_form(seed: int):
    rng = random.Random(seed)
    b = Builder()
    names = [b.param(f"p{i}", T) for i in range(rng.randint(1, 5))]
    for _ in range(rng.randint(2, 14)):
        op = rng.choice(("add", "add", "sub", "neg"))
        names.append(b.prim(op, T, *(rng.choice(names[-6:]) for _ in range(1 if op == "neg" else 2))))
    program = b.program(names[-1])
    encoded = encode(program.functions["f"], Terms(TypeTable({})))
    closure = Closure(encoded.terms)
    for t, chain in normal_sums(encoded.terms, closure).equal:
        assert closure.equal(t, chain)


def test_a_long_sum_of_few_terms_is_its_normal_form():
    """Five thousand additions are `(x + y + z) · 1667`, with a proof of a few steps for each; the e-graph never sees
    them."""
    program = sum_of(*("xyz"[i % 3] for i in range(5_001)))
    done = optimize(program, "f")
    assert sorted(operations(done.program)) == ["add", "add", "const", "mul"]
    assert done.report.e_nodes[0] < 20
    assert sum(len(lemma.steps) for lemma in done.proof.lemmas) < 10 * 5_000
    assert check(done.proof, RULES, program, done.program) == []


def test_a_sum_of_many_terms_is_left_alone():
    b = Builder()
    names = [b.param(f"p{i}", T) for i in range(WIDEST + 1)]
    whole = names[0]
    for name in [*names[1:], *names]:
        whole = b.prim("add", T, whole, name)
    program = b.program(whole)
    encoded = encode(program.functions["f"], Terms(TypeTable({})))
    assert normal_sums(encoded.terms, Closure(encoded.terms)).equal == []


def test_deep_negations():
    b = Builder()
    x = b.param("x", T)
    for _ in range(3_000):
        x = b.prim("neg", T, x)
    program = b.program(b.prim("add", T, x, "x"))
    done = optimize(program, "f")
    assert len(done.program.functions["f"].bindings) <= 2
    assert check(done.proof, RULES, program, done.program) == []
