"""Powers, constant factors (which stand on the right, and move through products) and common factors."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_POWERS = (
    Rule("pow.two", "(pow :n 2 x)", "(mul x x)", ("(real x)",), "x² = x · x"),
    Rule(
        "pow.pow",
        "(pow :n m (pow :type t :n n x))",
        "(pow :n (* m n) x)",
        ("(type x t)", "(real x)"),
        "(xⁿ)ᵐ = xᵐⁿ",
        guards=(
            "(varying x)",
            "(small m)",
            "(small n)",
        ),
    ),
    Rule(
        "mul.pow-left",
        "(mul (pow :type t :n n x) x)",
        "(pow :n (+ n 1) x)",
        ("(type x t)", "(real x)"),
        "xⁿ · x = xⁿ⁺¹",
        guards=(
            "(varying x)",
            "(small n)",
        ),
    ),
    Rule(
        "mul.pow-right",
        "(mul x (pow :type t :n n x))",
        "(pow :n (+ n 1) x)",
        ("(type x t)", "(real x)"),
        "x · xⁿ = xⁿ⁺¹",
        guards=(
            "(varying x)",
            "(small n)",
        ),
    ),
    Rule(
        "mul.pow-pow",
        "(mul (pow :type t :n m x) (pow :type t :n n x))",
        "(pow :n (+ m n) x)",
        ("(type x t)", "(real x)"),
        "xᵐ · xⁿ = xᵐ⁺ⁿ",
        guards=(
            "(varying x)",
            "(small m)",
            "(small n)",
        ),
    ),
    Rule(
        "pow.neg-even",
        "(pow :n n (neg :type t x))",
        "(pow :n n x)",
        ("(type x t)", "(real x)", "(even n)"),
        "(-x)ⁿ = xⁿ for even n",
    ),
    Rule(
        "pow.neg-odd",
        "(pow :n n (neg :type t x))",
        "(neg (pow :type t :n n x))",
        ("(type x t)", "(type root t)", "(real x)", "(odd n)"),
        "(-x)ⁿ = -xⁿ for odd n",
    ),
    Rule(
        "pow.mul-const",
        "(pow :type t :n n (mul :type t x (const :value c :type s)))",
        "(mul (pow :type t :n n x) (const :value (pow c n) :type s))",
        ("(type x t)", "(real x)", "(scalar-type s)"),
        "(x · c)ⁿ = xⁿ · cⁿ",
        "expand",
        guards=(
            "(varying x)",
            "(short c)",
            "(small n)",
        ),
    ),
)

_CONSTANT_FACTORS = (
    Rule(
        "mul.const-left",
        "(mul (const :value c :type s) x)",
        "(mul x (const :value c :type s))",
        ("(scalar-type s)", "(same-type root x)", "(real x)"),
        "c · x = x · c",
        guards=(
            "(varying x)",
            "(factor c)",
        ),
    ),
    Rule(
        "mul.const-twice",
        "(mul (mul :type t x (const :value c :type s)) (const :value d :type s))",
        "(mul x (const :value (* c d) :type s))",
        ("(scalar-type s)", "(type x t)", "(real x)"),
        "(x · c) · d = x · cd",
        guards=("(varying x)", "(short c)", "(short d)", "(factor c)", "(factor d)"),
    ),
    Rule(
        "div.const",
        "(div x (const :value c :type s))",
        "(mul x (const :value (/ 1 c) :type s))",
        ("(scalar-type s)", "(real x)", "(nonzero c)"),
        "x / c = x · c⁻¹",
        guards=(
            "(varying x)",
            "(short c)",
        ),
    ),
    Rule(
        "div.const-out",
        "(div x (mul :type u y (const :value c :type s)))",
        "(mul (div :type t x y) (const :value (/ 1 c) :type s))",
        ("(scalar-type s)", "(type y u)", "(type root t)", "(real-type t)", "(real x)", "(nonzero c)"),
        "x / (y · c) = (x / y) · c⁻¹; the left side says y ≠ 0",
        guards=("(varying y)", "(short c)", "(factor c)"),
    ),
    Rule(
        "div.div",
        "(div :type t (div :type t x y) z)",
        "(div x (mul :type u y z))",
        ("(type y u)", "(type z u)", "(real x)", "(real-type u)", "(typed (div x y) t)"),
        "(x / y) / z = x / (y · z); the left side says y, z ≠ 0",
        "expand",
        guards=("(varying y)", "(varying z)"),
    ),
    Rule(
        "mul.const-out-left",
        "(mul (mul :type u x (const :value c :type s)) y)",
        "(mul (mul :type t x y) (const :value c :type s))",
        ("(scalar-type s)", "(type x u)", "(type root t)", "(real-type t)", "(real y)"),
        "(x · c) · y = (x · y) · c",
        guards=("(varying x)", "(factor c)", "(short c)", "(tensor y)"),
    ),
    Rule(
        "mul.const-out-right",
        "(mul x (mul :type u y (const :value c :type s)))",
        "(mul (mul :type t x y) (const :value c :type s))",
        ("(scalar-type s)", "(type y u)", "(type root t)", "(real-type t)", "(real x)"),
        "x · (y · c) = (x · y) · c",
        guards=("(varying x)", "(factor c)", "(short c)", "(tensor x)"),
    ),
)


def _common_factor(op: str, sign: str, first: str, second: str) -> Rule:
    """`x·y ± x·z = x·(y ± z)`, the common x standing first or second in either product."""
    left = "x y" if first == "left" else "y x"
    right = "x z" if second == "left" else "z x"
    return Rule(
        f"{op}.common-{first}-{second}",
        f"({op} :type t (mul :type t {left}) (mul :type t {right}))",
        f"(mul x ({op} :type u y z))" if first == "left" else f"(mul ({op} :type u y z) x)",
        ("(type y u)", "(type z u)", "(real x)", "(real-type u)"),
        f"x·y {sign} x·z = x·(y {sign} z)",
        "collect",
    )


_COMMON_FACTORS = tuple(
    _common_factor(op, sign, first, second)
    for op, sign in (("add", "+"), ("sub", "-"))
    for first in ("left", "right")
    for second in ("left", "right")
)

RULES: tuple[Rule, ...] = (*_POWERS, *_CONSTANT_FACTORS, *_COMMON_FACTORS)
