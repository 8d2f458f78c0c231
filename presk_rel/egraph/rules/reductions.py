"""Means and sums against their adjoints and against broadcasts, and counts of entries where lengths are constants."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_INVERSES = (
    Rule("mean.broadcast", "(mean (broadcast_like c y))", "c", ("(scalar c)",), "the mean of n copies of c is c"),
    Rule(
        "mean.broadcast-axis",
        "(mean :axis a (broadcast_like :type t :axis a x y))",
        "x",
        ("(type y t)",),
        "the mean of copies along an axis is what was copied",
    ),
    Rule("sum.mean_vjp", "(sum (mean_vjp c y))", "c", (), "n · c/n = c"),
    Rule(
        "sum.mean_vjp-axis",
        "(sum :axis a (mean_vjp :type t :axis a c y))",
        "c",
        ("(type y t)",),
        "n · c/n = c along the axis",
    ),
    Rule("sum_to.mean_vjp", "(sum_to (mean_vjp c y) z)", "c", (), "n · c/n = c"),
)

_COUNTED = (
    Rule(
        "mean.counted",
        "(mean x)",
        "(mul (sum :type s x) (const :value (/ 1 n) :type s))",
        ("(type x u)", "(entries u n)", "(scalar-type s)"),
        "the mean of n entries is their sum / n",
        "expand",
    ),
    Rule(
        "mean_vjp.counted",
        "(mean_vjp c y)",
        "(broadcast_like (mul :type s c (const :value (/ 1 n) :type s)) y)",
        ("(type y u)", "(entries u n)", "(scalar-type s)", "(scalar c)"),
        "c / n at each of n entries",
    ),
    Rule(
        "sum.broadcast-counted",
        "(sum (broadcast_like c y))",
        "(mul c (const :value n :type s))",
        ("(type y u)", "(entries u n)", "(scalar-type s)", "(scalar c)"),
        "the sum of n copies of c is c · n",
    ),
    Rule(
        "sum.ones-counted",
        "(sum (ones :type u))",
        "(const :value n :type s)",
        ("(entries u n)", "(scalar-type s)"),
        "the sum of n ones is n",
    ),
)

RULES: tuple[Rule, ...] = (*_INVERSES, *_COUNTED)
