"""Linear maps: constants move through them, and sums of two images are the image of the sum."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_MAPS: tuple[tuple[str, str, str], ...] = (
    ("sum_to", "(sum_to{t} {x} y)", "a sum"),
    ("broadcast_like", "(broadcast_like{t} {x} y)", "a repetition"),
    ("broadcast_like-axis", "(broadcast_like :axis a{t} {x} y)", "a repetition"),
    ("mean_vjp", "(mean_vjp{t} {x} y)", "a repetition of x / n"),
    ("mean_vjp-axis", "(mean_vjp :axis a{t} {x} y)", "a repetition of x / n"),
    ("sum", "(sum{t} {x})", "a sum"),
    ("sum-axis", "(sum :axis a{t} {x})", "a sum"),
    ("mean", "(mean{t} {x})", "a mean"),
    ("mean-axis", "(mean :axis a{t} {x})", "a mean"),
    ("div", "(div{t} {x} w)", "division by w"),
    *(
        (f"{op}-{side}", f"({op}{{t}} {places})", "a contraction")
        for op in ("dot", "dot_vjp_l", "dot_vjp_r")
        for side, places in (("left", "{x} w"), ("right", "w {x}"))
    ),
)
"""Name, the map as a pattern of its argument {x} and type {t}, and what it is."""


_GUARDS: dict[str, tuple[str, ...]] = {"div": ("(varying w)",)}
"""A constant denominator is a constant factor (`div.const`); both at once would not end."""


def _of(pattern: str, argument: str, type_: str = "") -> str:
    return pattern.format(x=argument, t=f" :type {type_}" if type_ else "")


def _scaling(name: str, pattern: str, kind: str) -> Rule:
    """`f(x · c) = f(x) · c`: factors move outwards only, and inwards in `egraph.placement`."""
    constant = "(const :value c :type s)"
    return Rule(
        f"{name}.scale-out",
        _of(pattern, f"(mul :type u x {constant})"),
        f"(mul {_of(pattern, 'x', 't')} {constant})",
        ("(type x u)", "(type root t)", "(scalar-type s)", "(real x)"),
        f"{kind} is linear: f(x · c) = f(x) · c",
        guards=(*_GUARDS.get(name, ()), "(factor c)", "(short c)"),
    )


def _negation(name: str, pattern: str, kind: str) -> Rule:
    """`f(-x) = -f(x)`, of what is smaller. (Of sums, contractions are read through signs.)"""
    return Rule(
        f"{name}.neg-out",
        _of(pattern, "(neg :type u x)"),
        f"(neg {_of(pattern, 'x', 't')})",
        ("(type x u)", "(type root t)", "(real x)"),
        f"{kind} is linear: f(-x) = -f(x)",
    )


def _additivity(name: str, pattern: str, kind: str, op: str, sign: str) -> Rule:
    """`f(x) ± f(z) = f(x ± z)`: one application instead of two."""
    return Rule(
        f"{name}.{op}",
        f"({op} :type t {_of(pattern, 'x', 't')} {_of(pattern, 'z', 't')})",
        _of(pattern, f"({op} :type u x z)"),
        ("(type x u)", "(type z u)", "(real x)"),
        f"{kind} is linear: f(x) {sign} f(z) = f(x {sign} z)",
        "collect",
        _GUARDS.get(name, ()),
    )


_INNER = ("(matrix a)", "(typed (dot x a) u)", "(typed (dot a b) w)")

_ASSOCIATION = (
    Rule(
        "dot.associate-right",
        "(dot (dot :type u x a) b)",
        "(dot x (dot :type w a b))",
        _INNER,
        "(x · a) · b = x · (a · b): the first and the last axis of a are two, so x and b contract different ones",
        "expand",
    ),
    Rule(
        "dot.associate-left",
        "(dot x (dot :type w a b))",
        "(dot (dot :type u x a) b)",
        _INNER,
        "x · (a · b) = (x · a) · b: the first and the last axis of a are two, so x and b contract different ones",
        "expand",
    ),
)

RULES: tuple[Rule, ...] = (
    *_ASSOCIATION,
    *(_scaling(*row) for row in _MAPS),
    *(_negation(*row) for row in _MAPS if row[2] == "a mean"),
    *(_additivity(*row, op, sign) for row in _MAPS for op, sign in (("add", "+"), ("sub", "-"))),
    *(
        Rule(
            f"{op}.zeros-{side}",
            f"({op} {places})",
            "(zeros :type t)",
            ("(type root t)",),
            "a contraction with 0 is 0",
        )
        for op in ("dot", "dot_vjp_l", "dot_vjp_r")
        for side, places in (("left", "(zeros :type u) x"), ("right", "x (zeros :type u)"))
    ),
)
