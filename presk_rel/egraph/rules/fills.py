"""What is filled with one number: linear maps of zeros, functions of zeros and ones, what moves entries of a fill."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules.contractions import MOST

LARGEST = 8
"""Parts of a stack of zeros that is looked at."""

_ROOT = ("(type root t)",)
_REAL = ("(type root t)", "(real-type t)")


def _zero(name: str, left: str, law: str, conditions: tuple[str, ...] = _ROOT) -> Rule:
    return Rule(name, left, "(zeros :type t)", conditions, law)


def _contraction(count: int, at: int) -> Rule:
    xs = [f"x{i}" for i in range(count)]
    xs[at] = "(zeros :type u)"
    return _zero(f"ein.zeros-{count}-{at}", f"(ein :spec p {' '.join(xs)})", "a contraction with 0 is 0")


_CONTRACTIONS = tuple(_contraction(count, at) for count in range(1, MOST + 1) for at in range(count))

_VIEWS: tuple[tuple[str, str], ...] = (
    ("index", "(index :place a :dim i {x})"),
    ("slice", "(slice :place a :dim i :dim2 j {x})"),
    ("merge", "(merge :axis a :axis2 b {x})"),
    ("split", "(split :axis a :name p :dim m :name2 q :dim2 n {x})"),
    ("reshape_like", "(reshape_like {x} y)"),
    ("split_heads", "(split_heads :n h :index e {x})"),
    ("merge_heads", "(merge_heads :n h :index e {x})"),
    ("concat", "(concat :axis a {x} {x2})"),
    ("embed", "(embed {x} y)"),
    ("slice_params", "(slice_params :dim i {x})"),
)
"""What moves entries, as patterns of what it moves them of."""

_MOVED = tuple(
    Rule(
        f"{name}.{fill}",
        pattern.format(x=f"({fill} :type u)", x2=f"({fill} :type w)"),
        f"({fill} :type t)",
        _REAL,
        f"every entry is {number}",
    )
    for name, pattern in _VIEWS
    for fill, number in (("zeros", "0"), ("ones", "1"))
)

_PLACED = (
    *(
        _zero(f"{op}.zeros", f"({op} {attrs} (zeros :type u) y)", "0 among zeros", _REAL)
        for op, attrs in (
            ("scatter_index", ":place a :dim i"),
            ("slice_vjp", ":place a :dim i :dim2 j"),
            ("scatter_params", ":dim i"),
        )
    ),
    _zero("set_slice.zeros", "(set_slice :dim i (zeros :type u) (zeros :type w))", "0 among zeros", _REAL),
    _zero("embed_vjp.zeros", "(embed_vjp (zeros :type u) i y)", "sums of zeros"),
    _zero("cross_entropy_vjp.zeros", "(cross_entropy_vjp (zeros :type u) x i)", "a cotangent of 0"),
    _zero("sum_squares.zeros", "(sum_squares (zeros :type u))", "0² + 0² + … = 0"),
)

_POWERS = (
    _zero("pow.zeros", "(pow :n n (zeros :type u))", "0ⁿ = 0 for n ≥ 1", (*_REAL, "(at-least-1 n)")),
    Rule("pow.ones", "(pow :n n (ones :type u))", "(ones :type t)", _REAL, "1ⁿ = 1"),
)

_PAIRS = tuple(
    Rule(f"{op}.{fill}", f"({op} ({fill} :type u) ({fill} :type w))", f"({result} :type t)", _ROOT, law)
    for op, fill, result, law in (
        ("sub", "ones", "zeros", "1 - 1 = 0"),
        ("div", "ones", "ones", "1 / 1 = 1"),
        *((op, fill, fill, f"{op}(c, c) = c") for op in ("max", "min") for fill in ("zeros", "ones")),
    )
)

_STACKS = tuple(
    _zero(
        f"stack_params.zeros-{count}",
        f"(stack_params :type t {' '.join(f'(zeros :type u{k})' for k in range(count))})",
        "a stack of zeros is 0",
        ("(real-type t)",),
    )
    for count in range(2, LARGEST + 1)
)

_HALVES = tuple(
    Rule(
        f"{f}.zeros",
        f"({f} (zeros :type u))",
        "(mul (ones :type t) (const :value 1/2 :type s))",
        ("(type root t)", "(scalar-type s)"),
        law,
    )
    for f, law in (("sigmoid", "σ(0) = 1/2"), ("gelu'", "Φ(0) + 0·φ(0) = 1/2"))
)

_OF_ONES = tuple(
    Rule(f"{f}.ones", f"({f} (ones :type u))", "(ones :type t)", _ROOT, f"{f}(1) = 1")
    for f in ("relu", "abs", "sign", "heaviside")
)

RULES: tuple[Rule, ...] = (*_CONTRACTIONS, *_MOVED, *_PLACED, *_POWERS, *_PAIRS, *_STACKS, *_HALVES, *_OF_ONES)
