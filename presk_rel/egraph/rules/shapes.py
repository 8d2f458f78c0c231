from presk_rel.egraph.rule import Rule

RULES = (
    Rule("sum_to.same", "(sum_to x y)", "x", ("(same-type x y)",), "no axis is summed"),
    Rule("zeros_like", "(zeros_like y)", "(zeros :type t)", ("(type root t)", "(real-type t)"), "zeros"),
    Rule(
        "sum_to.template",
        "(sum_to x y)",
        "(sum_to x z)",
        ("(same-type y z)",),
        "only the type of the second operand is read",
        "encode",
    ),
    Rule(
        "mean_vjp.template",
        "(mean_vjp :axis? a x y)",
        "(mean_vjp :axis? a x z)",
        ("(same-type y z)",),
        "only the type of the second operand is read",
        "encode",
    ),
    Rule(
        "broadcast_like.template",
        "(broadcast_like :axis? a x y)",
        "(broadcast_like :axis? a x z)",
        ("(same-type y z)",),
        "only the type of the second operand is read",
        "encode",
    ),
    Rule(
        "zeros_like.template",
        "(zeros_like y)",
        "(zeros_like z)",
        ("(same-type y z)",),
        "only the type of the operand is read",
        "encode",
    ),
    Rule(
        "ones_like.template",
        "(ones_like y)",
        "(ones_like z)",
        ("(same-type y z)",),
        "only the type of the operand is read",
        "encode",
    ),
)
