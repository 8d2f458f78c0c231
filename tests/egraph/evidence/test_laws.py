"""Every rule over rational functions is proven, and every piecewise one; the others are listed with the reason.

A rule about tensors is an identity of every entry. Its sides are evaluated with variables for entries, on instances of
small types: as quotients of polynomials (equal iff the cross product of numerators and denominators vanishes, exactly,
by FLINT), and with `max`, `abs` and their like as case distinctions over the reals (by Z3, denominators not 0).
"""

from __future__ import annotations

import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
import z3
from flint import fmpq, fmpq_mpoly_ctx

from presk_rel.core.ir import Program
from presk_rel.egraph.rules import RULES
from tests.egraph import interpreter
from tests.egraph.contractions import Contraction
from tests.egraph.interpreter import entries, evaluate, random_value
from tests.egraph.test_rules_hold import MOVING, NoInstance, Search, ops

INSTANCES, TRIES = 4, 40_000
CONTEXT = fmpq_mpoly_ctx.get(tuple(f"x{i}" for i in range(200)), "lex")

FIELD = ("add", "sub", "mul", "div", "neg", "pow", "const", "real", "zeros", "ones", "zeros_like", "ones_like")
SUMS = ("sum", "mean", "sum_to", "broadcast_like", "mean_vjp", "dot", "dot_vjp_l", "dot_vjp_r", "ein")
TREES = ("field", "proj", "set_field", "set_elem")
COMPOSED = ("mse_vjp",)
RATIONAL = frozenset((*FIELD, *SUMS, *TREES, *COMPOSED))
PIECEWISE = frozenset(("relu", "heaviside", "sign", "abs", "max", "min"))
MOVES = "moves entries; `test_dimensions` and `test_fills` in `tests.egraph` compare all of them on many shapes"

NOT_PROVEN = {
    "exp": "the exponential is no algebraic function: exp(x + y) = exp x · exp y is what defines it",
    "log": "the logarithm is the inverse of the exponential, by definition",
    "sqrt": "an algebraic function, but none of rational ones: its square is, by definition",
    "tanh": "defined by exponentials",
    "sigmoid": "defined by exponentials",
    "softmax": "defined by exponentials",
    "log_softmax": "defined by exponentials and the logarithm",
    "logsumexp": "defined by exponentials and the logarithm",
    "cross_entropy": "defined by exponentials and the logarithm",
    "cross_entropy_vjp": "defined by exponentials",
    "gelu": "defined by an integral",
    "gelu'": "defined by an integral",
    "normal_pdf": "defined by the exponential",
    "sin": "no algebraic function",
    "cos": "no algebraic function",
    "transpose": "moves entries; `tests.egraph.test_rules_hold` compares all of them",
    "deviation": "a square root",
    "layer_norm_vjp_scale": "a square root",
    **dict.fromkeys(MOVING, MOVES),
}
"""Operations whose rules are sampled over balls only, with the reason."""


class Quotient:
    """A rational function of the entries."""

    def __init__(self, above: Any, below: Any = 1) -> None:
        self.above, self.below = CONTEXT.constant(0) + above, CONTEXT.constant(0) + below

    def __add__(self, other: Any) -> Quotient:
        y = number(other)
        return Quotient(self.above * y.below + y.above * self.below, self.below * y.below)

    def __neg__(self) -> Quotient:
        return Quotient(-self.above, self.below)

    def __sub__(self, other: Any) -> Quotient:
        return self + -number(other)

    def __mul__(self, other: Any) -> Quotient:
        y = number(other)
        return Quotient(self.above * y.above, self.below * y.below)

    def __truediv__(self, other: Any) -> Quotient:
        y = number(other)
        return Quotient(self.above * y.below, self.below * y.above)

    def __pow__(self, n: int) -> Quotient:
        return Quotient(self.above**n, self.below**n)

    def __eq__(self, other: object) -> bool:
        y = number(other)
        return self.above * y.below == y.above * self.below

    __hash__ = None  # type: ignore[assignment]
    __radd__, __rmul__ = __add__, __mul__


def number(x: Any) -> Quotient:
    return x if isinstance(x, Quotient) else Quotient(fmpq(Fraction(x).numerator, Fraction(x).denominator))


def total(parts: Any) -> Any:
    whole: Any = 0
    for p in parts:
        whole = p + whole
    return whole


def product(parts: Any) -> Any:
    whole = 1
    for p in parts:
        whole = whole * p
    return whole


def instances(name: str) -> list[Program]:
    """A few instances of a rule, with different types and constants."""
    rng = random.Random(name)
    found: dict[str, Program] = {}
    for tried in range(TRIES):
        if len(found) >= INSTANCES or (found and tried > TRIES // 10):
            break
        search = (Contraction if RULES[name].ruleset == "contract" else Search)(RULES[name], rng)
        try:
            program = search.instance()
        except NoInstance:
            continue
        found.setdefault(str({n: str(v) for n, v in search.values.items()}), program)
    return list(found.values())


def sides(program: Program, draw: Any) -> list[tuple[Any, Any]]:
    """The entries of both sides at variables."""
    args = [random_value(program, p.type, {}, draw) for p in program.functions["left"].params]
    left, right = (entries(evaluate(program, side, {}, args)) for side in ("left", "right"))
    return list(zip(left, right, strict=True))


PROVEN = [n for n in RULES if ops(n) <= RATIONAL and RULES[n].ruleset != "merge"]
"""`tests.egraph.test_merging` proves those that merge contractions."""


@pytest.mark.parametrize("name", PROVEN)
def test_a_rule_of_rational_functions_is_proven(name: str, monkeypatch: pytest.MonkeyPatch):
    domain = SimpleNamespace(
        mpf=number, fsum=total, fprod=lambda xs: number(product(xs)), isfinite=lambda _: True, mpc=type(None)
    )
    monkeypatch.setattr(interpreter, "mp", domain)
    found = instances(name)
    assert found
    proven = 0
    for program in found:
        variables = (Quotient(x) for x in CONTEXT.gens())
        try:
            pairs = sides(program, lambda v=variables: next(v))
        except interpreter.Undefined:  # a constant denominator of 0
            continue
        assert all(number(x) == number(y) for x, y in pairs), program
        proven += 1
    assert proven


def test_a_false_law_is_not_proven(monkeypatch: pytest.MonkeyPatch):
    x, y = (Quotient(v) for v in CONTEXT.gens()[:2])
    assert (x + y) * (x - y) == x**2 - y**2
    assert x / y * y == x
    assert (x + y) / (x - y) != x / y
    a = z3.Real("a")
    assert z3_equal([(z3.If(a > 0, a, 0) + z3.If(a < 0, a, 0), a)], [])
    assert not z3_equal([(z3.If(a > 0, a, 0), a)], [])


PIECES = {
    "relu": lambda x: z3.If(x > 0, x, z3.RealVal(0)),
    "heaviside": lambda x: z3.If(x > 0, z3.RealVal(1), z3.RealVal(0)),
    "sign": lambda x: z3.If(x > 0, z3.RealVal(1), z3.If(x < 0, z3.RealVal(-1), z3.RealVal(0))),
    "abs": lambda x: z3.If(x >= 0, x, -x),
}
CHOICES = {"max": lambda x, y: z3.If(x >= y, x, y), "min": lambda x, y: z3.If(x <= y, x, y)}


def z3_equal(pairs: list[tuple[Any, Any]], denominators: list[Any]) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(*(d != 0 for d in denominators))
    solver.add(z3.Or(*(x != y for x, y in pairs)))
    return solver.check() == z3.unsat


@pytest.mark.parametrize("name", [n for n in RULES if ops(n) & PIECEWISE and ops(n) <= RATIONAL | PIECEWISE])
def test_a_piecewise_rule_is_proven(name: str, monkeypatch: pytest.MonkeyPatch):
    denominators: list[Any] = []

    def divided(x: Any, y: Any) -> Any:
        denominators.append(y)
        return x / y

    domain = SimpleNamespace(mpf=z3.RealVal, fsum=total, fprod=product, isfinite=lambda _: True, mpc=type(None))
    found = sorted(instances(name), key=lambda p: sum(len(entries(random_value(p, q.type, {}, lambda: 0)))
                                                      for q in p.functions["left"].params))[:2]  # fmt: skip
    assert found
    monkeypatch.setattr(interpreter, "mp", domain)
    monkeypatch.setattr(interpreter, "_divide", divided)
    monkeypatch.setattr(interpreter, "UNARY", {**interpreter.UNARY, **PIECES})
    monkeypatch.setattr(interpreter, "BINARY", {**interpreter.BINARY, **CHOICES, "div": divided})
    for program in found:
        denominators.clear()
        fresh = (z3.Real(f"x{i}") for i in range(200))
        assert z3_equal(sides(program, lambda v=fresh: next(v)), denominators), program


@pytest.mark.parametrize("name", [n for n in RULES if not ops(n) <= RATIONAL | PIECEWISE])
def test_what_is_not_proven_has_a_reason(name: str):
    reasons = [NOT_PROVEN[op] for op in ops(name) if op in NOT_PROVEN]
    if RULES[name].law == "definition":
        reasons.append("true by definition")
    assert reasons, f"{name}: prove it, or say in NOT_PROVEN why {sorted(ops(name))} cannot be"
