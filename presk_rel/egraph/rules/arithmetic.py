from presk_rel.egraph.rule import Rule

RULES = (
    Rule("add.zero-right", "(add x (zeros :type t))", "x", ("(type x t)",), "x + 0 = x"),
    Rule("add.zero-left", "(add (zeros :type t) x)", "x", ("(type x t)",), "0 + x = x"),
    Rule("mul.one-left", "(mul (ones :type t) x)", "x", ("(same-type root x)", "(real-type t)"), "1·x = x"),
    Rule("const.one", "(const :value 1 :type t)", "(ones :type t)", ("(scalar-type t)",), "1 = 1"),
    Rule("pow.one", "(pow :n 1 x)", "x", ("(real x)",), "x^1 = x"),
    Rule(
        "mul.const",
        "(mul (const :value c :type t) (const :value d :type t))",
        "(const :value (* c d) :type t)",
        ("(scalar-type t)",),
        "c·d",
    ),
    Rule(
        "mul.const-pull",
        "(mul (const :value c :type t) (mul (const :value d :type t) x))",
        "(mul (const :value (* c d) :type t) x)",
        ("(scalar-type t)", "(real x)"),
        "associativity",
    ),
)
