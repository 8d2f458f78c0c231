"""Identities of addition, multiplication and exact constants on real tensors.

A rule holds wherever its left side is defined, and its right side is defined there too: `x / y · y = x` needs no side
condition, because its left side says y ≠ 0.
"""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_CONSTANTS = (
    Rule("const.zero", "(const :value 0 :type s)", "(zeros :type s)", ("(scalar-type s)",), "0 is the zero of ℝ[]"),
    Rule("zeros.scalar", "(zeros :type s)", "(const :value 0 :type s)", ("(scalar-type s)",), "0 is the zero of ℝ[]"),
    Rule("const.one", "(const :value 1 :type s)", "(ones :type s)", ("(scalar-type s)",), "1 is the one of ℝ[]"),
    Rule("ones.scalar", "(ones :type s)", "(const :value 1 :type s)", ("(scalar-type s)",), "1 is the one of ℝ[]"),
    Rule(
        "real.const",
        "(real (const :value c :type h))",
        "(const :value c :type s)",
        ("(type root s)", "(scalar-type s)"),
        "injection keeps the number",
    ),
    Rule(
        "add.const",
        "(add (const :value c :type s) (const :value d :type s))",
        "(const :value (+ c d) :type s)",
        ("(scalar-type s)",),
        "c + d computed exactly",
        guards=(
            "(short c)",
            "(short d)",
        ),
    ),
    Rule(
        "sub.const",
        "(sub (const :value c :type s) (const :value d :type s))",
        "(const :value (- c d) :type s)",
        ("(scalar-type s)",),
        "c - d computed exactly",
        guards=(
            "(short c)",
            "(short d)",
        ),
    ),
    Rule(
        "mul.const",
        "(mul (const :value c :type s) (const :value d :type s))",
        "(const :value (* c d) :type s)",
        ("(scalar-type s)",),
        "c · d computed exactly",
        guards=(
            "(short c)",
            "(short d)",
        ),
    ),
    Rule(
        "div.const-const",
        "(div (const :value c :type s) (const :value d :type s))",
        "(const :value (/ c d) :type s)",
        ("(scalar-type s)", "(nonzero d)"),
        "c / d computed exactly",
        guards=(
            "(short c)",
            "(short d)",
        ),
    ),
    Rule(
        "neg.const",
        "(neg (const :value c :type s))",
        "(const :value (- c) :type s)",
        ("(scalar-type s)",),
        "-c computed exactly",
        guards=("(short c)",),
    ),
    Rule(
        "pow.const",
        "(pow :n n (const :value c :type s))",
        "(const :value (pow c n) :type s)",
        ("(scalar-type s)",),
        "cⁿ computed exactly",
        guards=(
            "(short c)",
            "(small n)",
        ),
    ),
)

_ZERO = (
    Rule("add.zero-right", "(add x (zeros :type u))", "x", (), "x + 0 = x"),
    Rule("add.zero-left", "(add (zeros :type u) x)", "x", (), "0 + x = x"),
    Rule("sub.zero-right", "(sub x (zeros :type u))", "x", (), "x - 0 = x"),
    Rule("sub.zero-left", "(sub (zeros :type u) x)", "(neg x)", ("(same-type root x)",), "0 - x = -x"),
    Rule("sub.self", "(sub x x)", "(zeros :type t)", ("(type root t)", "(real-type t)"), "x - x = 0"),
    Rule("neg.zero", "(neg (zeros :type u))", "(zeros :type t)", ("(type root t)",), "-0 = 0"),
    Rule(
        "mul.zero-right", "(mul x (zeros :type u))", "(zeros :type t)", ("(type root t)", "(real-type t)"), "x · 0 = 0"
    ),
    Rule(
        "mul.zero-left", "(mul (zeros :type u) x)", "(zeros :type t)", ("(type root t)", "(real-type t)"), "0 · x = 0"
    ),
    Rule("div.zero", "(div (zeros :type u) x)", "(zeros :type t)", ("(type root t)", "(real-type t)"), "0 / x = 0"),
)

_ONE = (
    Rule("mul.one-right", "(mul x (ones :type u))", "x", (), "x · 1 = x"),
    Rule("mul.one-left", "(mul (ones :type u) x)", "x", (), "1 · x = x"),
    Rule("div.one", "(div x (ones :type u))", "x", (), "x / 1 = x"),
    Rule("pow.zero", "(pow :n 0 x)", "(ones :type t)", ("(type root t)", "(real-type t)"), "x⁰ = 1"),
    Rule("pow.one", "(pow :n 1 x)", "x", (), "x¹ = x"),
)

_NEGATION = (
    Rule("neg.neg", "(neg (neg x))", "x", ("(real x)",), "-(-x) = x"),
    Rule(
        "neg.sub",
        "(neg (sub x y))",
        "(sub y x)",
        ("(type root t)", "(typed (sub y x) t)", "(real-type t)"),
        "-(x - y) = y - x",
    ),
    Rule("add.neg-right", "(add x (neg :type u y))", "(sub x y)", ("(type y u)", "(real y)"), "x + (-y) = x - y"),
    Rule(
        "add.neg-left",
        "(add (neg :type u x) y)",
        "(sub y x)",
        ("(type x u)", "(real x)", "(type root t)", "(typed (sub y x) t)"),
        "-x + y = y - x",
    ),
    Rule("sub.neg", "(sub x (neg :type u y))", "(add x y)", ("(type y u)", "(real y)"), "x - (-y) = x + y"),
    *(
        Rule(
            f"{op}.neg-left",
            f"({op} (neg :type u x) y)",
            f"(neg ({op} :type t x y))",
            ("(type x u)", "(type root t)", "(real-type t)"),
            f"(-x) {sign} y = -(x {sign} y)",
        )
        for op, sign in (("mul", "·"), ("div", "/"))
    ),
    *(
        Rule(
            f"{op}.neg-right",
            f"({op} x (neg :type u y))",
            f"(neg ({op} :type t x y))",
            ("(type y u)", "(type root t)", "(real-type t)"),
            f"x {sign} (-y) = -(x {sign} y)",
        )
        for op, sign in (("mul", "·"), ("div", "/"))
    ),
    Rule(
        "mul.minus-one",
        "(mul x (const :value -1 :type s))",
        "(neg x)",
        ("(scalar-type s)", "(same-type root x)", "(real x)"),
        "x · (-1) = -x",
    ),
    Rule(
        "neg.mul-const",
        "(neg :type t (mul :type t x (const :value c :type s)))",
        "(mul x (const :value (- c) :type s))",
        ("(scalar-type s)", "(type x t)", "(real-type t)"),
        "-(x · c) = x · (-c)",
        guards=("(varying x)",),
    ),
)


def _cancel(name: str, left: str, kept: str, law: str) -> Rule:
    """The inner operation has the type of what is kept, so that its other operand lines up in both places alike."""
    return Rule(name, left, kept, (f"(type {kept} t)", "(real x)", "(real y)"), law)


_CANCELLATION = (
    _cancel("sub.add-right", "(sub (add :type t x y) y)", "x", "(x + y) - y = x"),
    _cancel("sub.add-left", "(sub (add :type t x y) x)", "y", "(x + y) - x = y"),
    _cancel("add.sub-right", "(add (sub :type t x y) y)", "x", "(x - y) + y = x"),
    _cancel("add.sub-left", "(add y (sub :type t x y))", "x", "y + (x - y) = x"),
    _cancel("sub.sub", "(sub x (sub :type t x y))", "y", "x - (x - y) = y"),
    _cancel("mul.div-left", "(mul (div :type t x y) y)", "x", "(x / y) · y = x; the left side says y ≠ 0"),
    _cancel("mul.div-right", "(mul y (div :type t x y))", "x", "y · (x / y) = x; the left side says y ≠ 0"),
    _cancel("div.mul-right", "(div (mul :type t x y) y)", "x", "(x · y) / y = x; the left side says y ≠ 0"),
    _cancel("div.mul-left", "(div (mul :type t y x) y)", "x", "(y · x) / y = x; the left side says y ≠ 0"),
)

_LIKE_TERMS = (
    Rule(
        "add.self",
        "(add x x)",
        "(mul x (const :value 2 :type s))",
        ("(real x)", "(scalar-type s)", "(same-type root x)"),
        "x + x = x · 2",
        guards=("(varying x)",),
    ),
    *(
        Rule(
            f"{op}.like-left",
            f"({op} :type t (mul :type t x (const :value c :type s)) x)",
            f"(mul x (const :value ({sign} c 1) :type s))",
            ("(type x t)", "(real-type t)", "(scalar-type s)"),
            f"x·c {sign} x = x·(c {sign} 1)",
            guards=("(varying x)", "(short c)"),
        )
        for op, sign in (("add", "+"), ("sub", "-"))
    ),
    *(
        Rule(
            f"{op}.like-const",
            f"({op} :type t (mul :type t x (const :value c :type s)) (mul :type t x (const :value d :type s)))",
            f"(mul x (const :value ({sign} c d) :type s))",
            ("(type x t)", "(real-type t)", "(scalar-type s)"),
            f"x·c {sign} x·d = x·(c {sign} d)",
            guards=("(varying x)", "(short c)", "(short d)"),
        )
        for op, sign in (("add", "+"), ("sub", "-"))
    ),
    *(
        Rule(
            f"{op}.like-right",
            f"({op} :type t x (mul :type t x (const :value c :type s)))",
            f"(mul x (const :value ({sign} 1 c) :type s))",
            ("(type x t)", "(real-type t)", "(scalar-type s)"),
            f"x {sign} x·c = x·(1 {sign} c)",
            guards=("(varying x)", "(short c)"),
        )
        for op, sign in (("add", "+"), ("sub", "-"))
    ),
)

_SAME = ("(type x t)", "(type y t)", "(type z t)", "(real-type t)")

_ORDER = (
    *(
        Rule(
            f"{op}.commute",
            f"({op} x y)",
            f"({op} y x)",
            ("(type root t)", f"(typed ({op} y x) t)"),
            f"x {sign} y = y {sign} x",
            "collect",
            known=True,
        )
        for op, sign in (("add", "+"), ("mul", "·"))
    ),
    Rule(
        "add.associate",
        "(add :type t x (add :type t y z))",
        "(add (add :type t x y) z)",
        _SAME,
        "x + (y + z) = (x + y) + z",
        "encode",
    ),
    Rule(
        "add.exchange",
        "(add :type t (add :type t x y) z)",
        "(add (add :type t x z) y)",
        _SAME,
        "(x + y) + z = (x + z) + y",
        "encode",
    ),
    Rule(
        "neg.add",
        "(neg :type t (add :type t x y))",
        "(add (neg :type t x) (neg :type t y))",
        ("(type x t)", "(type y t)", "(real-type t)"),
        "-(x + y) = -x + (-y)",
        "encode",
    ),
)
"""Not in the e-graph, which they blow up: `egraph.commute` and `egraph.sums` use them on what the program has.
Commutativity runs there between what is there."""

RULES: tuple[Rule, ...] = (
    *_CONSTANTS,
    *_ZERO,
    *_ONE,
    *_NEGATION,
    *_CANCELLATION,
    *_LIKE_TERMS,
    *_ORDER,
)
