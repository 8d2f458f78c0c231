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
from presk_rel.egraph.sums import LONGEST, normal_sums
from tests.egraph.programs import Builder, real

T = real(("a", 2), 3)


def optimized(program: Program) -> list[str]:
    done = optimize(program, "f")
    assert check(done.proof, RULES, program, done.program) == []
    return [line.split(" = ")[1].split()[0] for line in print_function(done.program.functions["f"]).splitlines()[1:-2]]


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
    for t, chain in normal_sums(encoded.terms, closure):
        assert closure.equal(t, chain)


def test_long_sums_and_deep_negations_are_left_alone():
    long = sum_of(*("xyz"[i % 3] for i in range(LONGEST + 2)))
    encoded = encode(long.functions["f"], Terms(TypeTable({})))
    assert normal_sums(encoded.terms, Closure(encoded.terms)) == []
    b = Builder()
    x = b.param("x", T)
    for _ in range(3_000):
        x = b.prim("neg", T, x)
    encoded = encode(b.program(b.prim("add", T, x, "x")).functions["f"], Terms(TypeTable({})))
    assert normal_sums(encoded.terms, Closure(encoded.terms)) == []
