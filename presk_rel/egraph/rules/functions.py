"""Laws of exp, log, sqrt and the other functions that work entry by entry, where the left side is defined; there the
right side is defined too. (`log(x · y) = log x + log y` is not here: at x, y < 0 only its left side is defined.)"""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_LOGARITHMS = (
    Rule("log.exp", "(log (exp x))", "x", (), "log eˣ = x"),
    Rule("exp.log", "(exp (log x))", "x", (), "e^(log x) = x; the left side says x > 0"),
    Rule(
        "exp.product",
        "(mul :type t (exp :type t x) (exp :type t y))",
        "(exp (add :type t x y))",
        ("(type x t)", "(type y t)"),
        "eˣ · eʸ = eˣ⁺ʸ",
    ),
    Rule(
        "exp.quotient",
        "(div :type t (exp :type t x) (exp :type t y))",
        "(exp (sub :type t x y))",
        ("(type x t)", "(type y t)"),
        "eˣ / eʸ = eˣ⁻ʸ",
    ),
    Rule(
        "exp.reciprocal",
        "(div :type t (const :value 1 :type s) (exp :type t x))",
        "(exp (neg :type t x))",
        ("(type x t)", "(scalar-type s)"),
        "1 / eˣ = e⁻ˣ",
    ),
    Rule(
        "log.product",
        "(add :type t (log :type t x) (log :type t y))",
        "(log (mul :type t x y))",
        ("(type x t)", "(type y t)"),
        "log x + log y = log xy; the left side says x, y > 0",
    ),
    Rule(
        "log.quotient",
        "(sub :type t (log :type t x) (log :type t y))",
        "(log (div :type t x y))",
        ("(type x t)", "(type y t)"),
        "log x - log y = log x/y; the left side says x, y > 0",
    ),
    Rule(
        "log.sqrt",
        "(log (sqrt :type t x))",
        "(mul (log :type t x) (const :value 1/2 :type s))",
        ("(type x t)", "(scalar-type s)"),
        "log √x = log x / 2; the left side says x > 0",
    ),
)

_ROOTS = (
    Rule("sqrt.square", "(sqrt (pow :type t :n 2 x))", "(abs x)", ("(type x t)", "(real x)"), "√x² = |x|"),
    Rule("pow.sqrt", "(pow :n 2 (sqrt x))", "x", (), "(√x)² = x; the left side says x ≥ 0"),
    Rule("mul.sqrt", "(mul (sqrt x) (sqrt x))", "x", (), "√x · √x = x; the left side says x ≥ 0"),
    Rule(
        "sqrt.product",
        "(mul :type t (sqrt :type t x) (sqrt :type t y))",
        "(sqrt (mul :type t x y))",
        ("(type x t)", "(type y t)"),
        "√x · √y = √(xy); the left side says x, y ≥ 0",
        "expand",
    ),
    Rule(
        "div.sqrt",
        "(div x (sqrt :type t x))",
        "(sqrt x)",
        ("(type x t)",),
        "x / √x = √x; the left side says x > 0",
    ),
)

_PARITY = (
    *(
        Rule(
            f"{f}.odd",
            f"({f} (neg :type t x))",
            f"(neg ({f} :type t x))",
            ("(type x t)", "(type root t)"),
            f"{f} is odd",
        )
        for f in ("tanh", "sin")
    ),
    *(
        Rule(f"{f}.even", f"({f} (neg :type t x))", f"({f} x)", ("(type x t)",), f"{f} is even")
        for f in ("cos", "normal_pdf")
    ),
    Rule(
        "sigmoid.complement",
        "(sub :type t (const :value 1 :type s) (sigmoid :type t x))",
        "(sigmoid (neg :type t x))",
        ("(type x t)", "(scalar-type s)"),
        "1 - σ(x) = σ(-x)",
    ),
    Rule(
        "sin.cos",
        "(add :type t (pow :type t :n 2 (sin :type t x)) (pow :type t :n 2 (cos :type t x)))",
        "(ones :type t)",
        ("(type x t)",),
        "sin² + cos² = 1",
    ),
    Rule(
        "gelu.difference",
        "(sub (gelu :type t x) (gelu :type t (neg :type t x)))",
        "x",
        ("(type x t)",),
        "x·Φ(x) + x·Φ(-x) = x",
    ),
)

_AT_ZERO = (
    *(
        Rule(
            f"{f}.zero",
            f"({f} (zeros :type u))",
            "(zeros :type t)",
            ("(type root t)",),
            f"{f}(0) = 0",
        )
        for f in ("gelu", "tanh", "sin", "sqrt", "relu", "abs", "sign", "heaviside")
    ),
    *(
        Rule(
            f"{f}.zero",
            f"({f} (zeros :type u))",
            "(ones :type t)",
            ("(type root t)",),
            f"{f}(0) = 1",
        )
        for f in ("exp", "cos")
    ),
    Rule("log.one", "(log (ones :type u))", "(zeros :type t)", ("(type root t)",), "log 1 = 0"),
    Rule("sqrt.one", "(sqrt (ones :type u))", "(ones :type t)", ("(type root t)",), "√1 = 1"),
)

RULES: tuple[Rule, ...] = (*_LOGARITHMS, *_ROOTS, *_PARITY, *_AT_ZERO)
