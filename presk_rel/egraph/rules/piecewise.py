"""Laws of relu, abs, sign and heaviside (1 where x > 0, else 0), at 0 included."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_PRODUCTS = (
    *(
        Rule(f"mul.heaviside-{side}", f"(mul {sides})", "(relu x)", ("(type x t)",), "x · [x > 0] = relu x")
        for side, sides in (("right", "x (heaviside :type t x)"), ("left", "(heaviside :type t x) x"))
    ),
    *(
        Rule(f"mul.sign-{side}", f"(mul {sides})", "(abs x)", ("(type x t)",), "x · sign x = |x|")
        for side, sides in (("right", "x (sign :type t x)"), ("left", "(sign :type t x) x"))
    ),
    *(
        Rule(f"mul.abs-sign-{side}", f"(mul {sides})", "x", ("(type x t)",), "|x| · sign x = x")
        for side, sides in (
            ("right", "(abs :type t x) (sign :type t x)"),
            ("left", "(sign :type t x) (abs :type t x)"),
        )
    ),
    *(
        Rule(
            f"mul.relu-heaviside-{side}",
            f"(mul {sides})",
            "(relu x)",
            ("(type x t)",),
            "relu x · [x > 0] = relu x",
        )
        for side, sides in (
            ("right", "(relu :type t x) (heaviside :type t x)"),
            ("left", "(heaviside :type t x) (relu :type t x)"),
        )
    ),
    Rule(
        "pow.heaviside",
        "(pow :n n (heaviside :type t x))",
        "(heaviside x)",
        ("(type x t)", "(at-least-1 n)"),
        "0ⁿ = 0 and 1ⁿ = 1",
    ),
)

_NESTED = tuple(
    Rule(
        f"{outer}.{inner.replace('_', '-')}",
        f"({outer} ({inner} :type t x))",
        f"({result} x)",
        ("(type x t)",),
        law,
    )
    for outer, inner, result, law in (
        ("relu", "relu", "relu", "relu x ≥ 0"),
        ("relu", "abs", "abs", "|x| ≥ 0"),
        ("relu", "exp", "exp", "eˣ > 0"),
        ("relu", "sigmoid", "sigmoid", "σ(x) > 0"),
        ("relu", "sqrt", "sqrt", "√x ≥ 0"),
        ("relu", "heaviside", "heaviside", "0 and 1 are not negative"),
        ("abs", "relu", "relu", "relu x ≥ 0"),
        ("abs", "abs", "abs", "|x| ≥ 0"),
        ("abs", "neg", "abs", "|-x| = |x|"),
        ("abs", "exp", "exp", "eˣ > 0"),
        ("abs", "sqrt", "sqrt", "√x ≥ 0"),
        ("heaviside", "relu", "heaviside", "relu x > 0 where x > 0"),
        ("heaviside", "heaviside", "heaviside", "[x > 0] > 0 where x > 0"),
        ("sign", "sign", "sign", "sign of -1, 0, 1 is itself"),
        ("sign", "relu", "heaviside", "relu x is positive where x > 0, else 0"),
    )
)

_SQUARES = (
    Rule("pow.abs", "(pow :n n (abs :type t x))", "(pow :n n x)", ("(type x t)", "(even n)"), "|x|ⁿ = xⁿ for even n"),
    Rule("abs.pow", "(abs (pow :type t :n n x))", "(pow :n n x)", ("(type x t)", "(even n)"), "xⁿ ≥ 0 for even n"),
    Rule("relu.pow", "(relu (pow :type t :n n x))", "(pow :n n x)", ("(type x t)", "(even n)"), "xⁿ ≥ 0 for even n"),
)

_EXTREMA = tuple(
    Rule(f"{op}.self", f"({op} x x)", "x", (), f"the {which} of x and x is x")
    for op, which in (("max", "greater"), ("min", "smaller"))
)

_HALVES = (
    Rule(
        "relu.difference",
        "(sub (relu :type t x) (relu :type t (neg :type t x)))",
        "x",
        ("(type x t)",),
        "relu x - relu(-x) = x",
    ),
    Rule(
        "relu.sum",
        "(add (relu :type t x) (relu :type t (neg :type t x)))",
        "(abs x)",
        ("(type x t)",),
        "relu x + relu(-x) = |x|",
    ),
    Rule(
        "sign.odd",
        "(sign (neg :type t x))",
        "(neg (sign :type t x))",
        ("(type x t)", "(type root t)"),
        "sign is odd",
    ),
    *(
        Rule(f"heaviside.{f}", f"(heaviside ({f} x))", "(ones :type t)", ("(type root t)",), f"{f} is positive")
        for f in ("exp", "sigmoid", "normal_pdf")
    ),
)

_SCALED = (
    *(
        Rule(
            f"{f}.scaled",
            f"({f} (mul :type t x (const :value c :type s)))",
            f"(mul ({f} :type t x) (const :value c :type s))",
            ("(type x t)", "(type root t)", "(scalar-type s)", "(positive c)"),
            f"{f}(x · c) = {f}(x) · c for c > 0",
            "expand",
            ("(varying x)", "(factor c)"),
        )
        for f in ("relu", "abs")
    ),
    Rule(
        "abs.scaled-negative",
        "(abs (mul :type t x (const :value c :type s)))",
        "(mul (abs :type t x) (const :value (- c) :type s))",
        ("(type x t)", "(type root t)", "(scalar-type s)", "(negative c)"),
        "|x · c| = |x| · (-c) for c < 0",
        "expand",
        ("(varying x)", "(factor c)"),
    ),
    *(
        Rule(
            f"{f}.scaled",
            f"({f} (mul :type t x (const :value c :type s)))",
            f"({f} x)",
            ("(type x t)", "(scalar-type s)", "(positive c)"),
            f"{f}(x · c) = {f}(x) for c > 0",
        )
        for f in ("heaviside", "sign")
    ),
)

RULES: tuple[Rule, ...] = (*_PRODUCTS, *_NESTED, *_SQUARES, *_EXTREMA, *_HALVES, *_SCALED)
