"""Identities of broadcasting and of sums down to a shape.

`sum_to x, y`, `broadcast_like x, y` and `mean_vjp c, y` read y for its type only; the rules `<op>.template` say so.
"""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

_TEMPLATES = (
    *(
        Rule(
            f"{op}.template",
            f"({op}{axis} x y)",
            f"({op}{axis} x z)",
            ("(same-type y z)",),
            "only the type of the last operand is read",
            "encode",
        )
        for op, axis in (
            ("sum_to", ""),
            ("mean_vjp", " :axis? a"),
            ("broadcast_like", " :axis? a"),
            ("reshape_like", ""),
            ("scatter_index", " :place a :dim i"),
            ("slice_vjp", " :place a :dim i :dim2 j"),
            ("scatter_params", " :dim i"),
        )
    ),
    Rule(
        "embed_vjp.template",
        "(embed_vjp x i y)",
        "(embed_vjp x i z)",
        ("(same-type y z)",),
        "only the type of the last operand is read",
        "encode",
    ),
    *(
        Rule(f"{op}.template", f"({op} y)", f"({op} z)", ("(same-type y z)",), "only the type is read", "encode")
        for op in ("zeros_like", "ones_like")
    ),
)

_FILLED = (
    *(
        Rule(
            f"{value}_like.is-{value}",
            f"({value}_like y)",
            f"({value} :type t)",
            ("(type root t)", "(real-type t)"),
            f"{value}_like y is filled with {value}",
        )
        for value in ("zeros", "ones")
    ),
    *(
        Rule(
            f"{op}.zeros",
            f"({op} (zeros :type u) y)",
            "(zeros :type t)",
            ("(type root t)",),
            f"{op} is linear, so it maps 0 to 0",
        )
        for op in ("sum_to", "broadcast_like", "mean_vjp")
    ),
    *(
        Rule(
            f"{op}.axis-zeros",
            f"({op} :axis a (zeros :type u) y)",
            "(zeros :type t)",
            ("(type root t)",),
            f"{op} is linear, so it maps 0 to 0",
        )
        for op in ("broadcast_like", "mean_vjp")
    ),
    *(
        Rule(
            f"{op}.{name}",
            f"({op}{axis} (zeros :type u))",
            "(zeros :type t)",
            ("(type root t)",),
            f"{op} is linear, so it maps 0 to 0",
        )
        for op in ("sum", "mean")
        for name, axis in (("zeros", ""), ("axis-zeros", " :axis a"))
    ),
    *(
        Rule(
            f"broadcast_like.{name}",
            f"(broadcast_like{axis} (ones :type u) y)",
            "(ones :type t)",
            ("(type root t)",),
            "every entry is 1",
        )
        for name, axis in (("ones", ""), ("axis-ones", " :axis a"))
    ),
    *(
        Rule(
            f"mean.{name}",
            f"(mean{axis} (ones :type u))",
            "(ones :type t)",
            ("(type root t)",),
            "the mean of ones is 1",
        )
        for name, axis in (("ones", ""), ("axis-ones", " :axis a"))
    ),
)

_SAME = (
    Rule("sum_to.same", "(sum_to x y)", "x", (), "nothing is summed between equal types"),
    Rule("broadcast_like.same", "(broadcast_like x y)", "x", (), "nothing is repeated between equal types"),
)

_COMPOSED = (
    Rule("sum_to.scalar", "(sum_to x y)", "(sum x)", ("(scalar y)",), "summing down to ℝ[] is the sum of all entries"),
    Rule("sum.sum_to", "(sum (sum_to x y))", "(sum x)", (), "the sum of partial sums is the sum"),
    Rule("sum.sum-axis", "(sum (sum :axis a x))", "(sum x)", (), "the sum of partial sums is the sum"),
    *(
        Rule(
            f"broadcast_like.scalar{name}",
            f"(broadcast_like{outer} (broadcast_like{inner} c y) z)",
            "(broadcast_like c z)",
            ("(scalar c)",),
            "every entry is c",
        )
        for name, outer, inner in (
            ("", "", ""),
            ("-axis-out", " :axis a", ""),
            ("-axis-in", "", " :axis a"),
            ("-axes", " :axis a", " :axis b"),
        )
    ),
)


def _implicit(op: str, sign: str) -> tuple[Rule, ...]:
    """Binary operations broadcast by themselves; what lines up with a type lines up alike with any tensor of it."""
    return (
        Rule(
            f"{op}.broadcast-right",
            f"({op} x (broadcast_like c y))",
            f"({op} x c)",
            ("(same-type x y)", "(same-type root y)"),
            f"x {sign} c broadcasts c to the type of x",
        ),
        Rule(
            f"{op}.broadcast-left",
            f"({op} (broadcast_like c y) x)",
            f"({op} c x)",
            ("(same-type x y)", "(same-type root y)", "(scalar c)"),
            f"c {sign} x broadcasts c to the type of x",
        ),
        Rule(
            f"{op}.broadcast-axis-left",
            f"({op} (broadcast_like :axis a c y) x)",
            f"({op} c x)",
            ("(same-type x y)", "(same-type root y)", "(scalar c)"),
            f"c {sign} x broadcasts c to the type of x",
        ),
        Rule(
            f"{op}.broadcast-axis-right",
            f"({op} x (broadcast_like :axis a c y))",
            f"({op} x c)",
            ("(same-type x y)", "(same-type root y)", "(scalar c)"),
            f"x {sign} c broadcasts c to the type of x",
        ),
    )


_IMPLICIT = tuple(
    rule for op, sign in (("add", "+"), ("sub", "-"), ("mul", "·"), ("div", "/")) for rule in _implicit(op, sign)
)

_ONES = (
    *(
        Rule(
            f"{op}.ones-right",
            f"({op} x (ones :type u))",
            f"({op} x (const :value 1 :type s))",
            ("(same-type root x)", "(real x)", "(scalar-type s)"),
            "a tensor of ones is the number 1, broadcast",
        )
        for op in ("add", "sub")
    ),
    *(
        Rule(
            f"{op}.ones-left",
            f"({op} (ones :type u) x)",
            f"({op} (const :value 1 :type s) x)",
            ("(same-type root x)", "(real x)", "(scalar-type s)"),
            "a tensor of ones is the number 1, broadcast",
        )
        for op in ("add", "sub", "div")
    ),
)

RULES: tuple[Rule, ...] = (*_TEMPLATES, *_FILLED, *_SAME, *_COMPOSED, *_IMPLICIT, *_ONES)
