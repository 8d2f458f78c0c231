"""Sums of products: every contraction, reduction and product is an `ein`, and an `ein` of an `ein` is a flatter one.

They run in `egraph.contract`, after saturation: it reads what the e-graph knows as sums of products, finds the order in
which each costs least, and proves every step by these rules. One condition says all: both sides are one sum of
products of the same factors, axis by axis. So the order of factors and the names of axes on the right are free.
"""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

MOST = 5
"""Factors of a sum of products that is looked at."""

_CONDITION = "(contraction r)"


def _rule(name: str, left: str, right: str, law: str) -> Rule:
    return Rule(name, left, right, (_CONDITION,), law, "contract")


_MEANINGS = tuple(
    _rule(f"{op}.as-ein", f"({op}{attr} {operands})", f"(ein :spec r {factors})", law)
    for op, attr, operands, factors, law in (
        ("dot", "", "x y", "x y", "the sum over the last axis of x and the first of y of their product"),
        ("dot_vjp_l", "", "x y", "x y", "the sum over the last axes of both of their product"),
        ("dot_vjp_r", "", "x y", "x y", "the sum over the first axes of both of their product"),
        ("mul", "", "x y", "x y", "a product entry by entry is a contraction that sums nothing"),
        ("sum", " :axis? a", "x", "x", "a sum is a contraction of one factor"),
        ("sum_to", "", "x y", "x", "a sum is a contraction of one factor"),
    )
)


def _factors(count: int) -> list[str]:
    return [f"x{i}" for i in range(count)]


def _flatter(outer: int, at: int, inner: int) -> Rule:
    """`outer` factors, of which number `at` is a contraction of `inner` factors."""
    ys = [f"y{i}" for i in range(inner)]
    xs = _factors(outer)
    left = [*xs[:at], f"(ein :spec q :type u {' '.join(ys)})", *xs[at + 1 :]]
    return _rule(
        f"ein.of-ein-{outer}-{at}-{inner}",
        f"(ein :spec p {' '.join(left)})",
        f"(ein :spec r {' '.join([*xs[:at], *ys, *xs[at + 1 :]])})",
        "products distribute over sums, and sums of sums are one sum",
    )


def _spread(count: int, at: int) -> Rule:
    xs = _factors(count)
    left = [*xs[:at], f"(broadcast_like :axis? a :type u x{at} y)", *xs[at + 1 :]]
    return _rule(
        f"ein.of-broadcast-{count}-{at}",
        f"(ein :spec p {' '.join(left)})",
        f"(ein :spec r {' '.join(xs)})",
        "what is repeated along the axes of other factors need not be",
    )


def _turned(count: int, at: int) -> Rule:
    xs = _factors(count)
    right = [xs[at], *xs[:at], *xs[at + 1 :]]
    law = "products commute" if at else "the names of axes mean nothing"
    return _rule(f"ein.first-{count}-{at}", f"(ein :spec p {' '.join(xs)})", f"(ein :spec r {' '.join(right)})", law)


def _common(op: str, sign: str, count: int) -> Rule:
    """Contractions that differ in their first factor."""
    xs = _factors(count)[1:]
    y, z = (f"(ein :spec p :type t {' '.join([first, *xs])})" for first in ("y", "z"))
    return Rule(
        f"ein.{op}-{count}",
        f"({op} :type t {y} {z})",
        f"(ein :spec p {' '.join([f'({op} :type u y z)', *xs])})",
        ("(type y u)", "(type z u)", "(real y)"),
        f"a contraction is linear in each factor: f(y) {sign} f(z) = f(y {sign} z)",
        "contract",
    )


RULES: tuple[Rule, ...] = (
    *_MEANINGS,
    *(
        _flatter(outer, at, inner)
        for outer in range(1, MOST + 1)
        for at in range(outer)
        for inner in range(1, MOST + 2 - outer)
    ),
    *(_spread(count, at) for count in range(1, MOST + 1) for at in range(count)),
    *(_turned(count, at) for count in range(1, MOST + 1) for at in range(count)),
    *(_common(op, sign, count) for op, sign in (("add", "+"), ("sub", "-")) for count in range(1, 4)),
)
