"""Slices, concatenations and axes of length 1: rules that hold by the lengths of axes, of which Z3 decides the order.

They pay wherever they match, so they belong to the set `recognise`. Indices count from 0; one below 0 counts from the
end, so a rule that moves one asks that it is none.
"""

from __future__ import annotations

from presk_rel.egraph.rule import Rule


def _rule(name: str, left: str, right: str, conditions: tuple[str, ...], law: str) -> Rule:
    return Rule(name, left, right, conditions, law, "recognise")


_SLICES = (
    _rule(
        "slice.whole",
        "(slice :place a :dim i :dim2 j x)",
        "x",
        ("(length x a n)", "(equal i 0)", "(equal j n)"),
        "all of an axis is the tensor",
    ),
    _rule(
        "slice.slice",
        "(slice :place a :dim k :dim2 l (slice :place a :dim i :dim2 j x))",
        "(slice :place a :dim (+ i k) :dim2 (+ i l) x)",
        ("(at-most 0 i)", "(at-most 0 k)"),
        "entry p of a slice from i is entry i + p",
    ),
    _rule(
        "index.slice",
        "(index :place a :dim k (slice :place a :dim i :dim2 j x))",
        "(index :place a :dim (+ i k) x)",
        ("(at-most 0 i)", "(at-most 0 k)"),
        "entry k of a slice from i is entry i + k",
    ),
    _rule(
        "concat.adjacent",
        "(concat :axis a (slice :place a :dim i :dim2 j x) (slice :place a :dim j :dim2 k x))",
        "(slice :place a :dim i :dim2 k x)",
        ("(at-most 0 i)", "(at-most i j)", "(at-most j k)"),
        "what is cut at j is put together there",
    ),
)

_OF_CONCAT = (
    _rule(
        "index.concat-left",
        "(index :place a :dim i (concat :axis a x y))",
        "(index :place a :dim i x)",
        ("(length x a n)", "(at-most 0 i)", "(less i n)"),
        "the first n entries are those of x",
    ),
    _rule(
        "index.concat-right",
        "(index :place a :dim i (concat :axis a x y))",
        "(index :place a :dim (- i n) y)",
        ("(length x a n)", "(at-most n i)"),
        "the entries from n on are those of y",
    ),
    _rule(
        "slice.concat-left",
        "(slice :place a :dim i :dim2 j (concat :axis a x y))",
        "(slice :place a :dim i :dim2 j x)",
        ("(length x a n)", "(at-most 0 i)", "(at-most j n)"),
        "the first n entries are those of x",
    ),
    _rule(
        "slice.concat-right",
        "(slice :place a :dim i :dim2 j (concat :axis a x y))",
        "(slice :place a :dim (- i n) :dim2 (- j n) y)",
        ("(length x a n)", "(at-most n i)"),
        "the entries from n on are those of y",
    ),
)

_COTANGENTS = (
    _rule(
        "slice.of-cotangent",
        "(slice :place a :dim i :dim2 j (slice_vjp :place a :dim i :dim2 j c x))",
        "c",
        ("(at-most 0 i)", "(at-most i j)"),
        "what is put at i..j among zeros is found there",
    ),
    *(
        _rule(
            f"slice.past-{side}",
            "(slice :place a :dim i :dim2 j (add :type u y (slice_vjp :type u :place a :dim k :dim2 l c x)))",
            "(slice :place a :dim i :dim2 j y)",
            ("(type y u)", "(type x u)", "(at-most 0 i)", "(at-most 0 k)", apart),
            "apart from k..l there are only zeros",
        )
        for side, apart in (("before", "(at-most j k)"), ("behind", "(at-most l i)"))
    ),
)

_LENGTH_ONE = (
    *(
        _rule(
            f"{op}.length-one",
            f"({op} :axis a x)",
            "(index :place a :dim 0 x)",
            ("(length x a n)", "(equal n 1)"),
            f"the {op} of one entry is the entry",
        )
        for op in ("sum", "mean")
    ),
    *(
        _rule(
            f"{op}.length-one",
            f"({op} :axis a x y)",
            "(reshape_like x y)",
            ("(length y a n)", "(equal n 1)"),
            "along an axis of length 1 every entry stands once",
        )
        for op in ("broadcast_like", "mean_vjp")
    ),
)

_SPLIT = (
    _rule(
        "merge.split",
        "(merge :axis p :axis2 q (split :axis a :name p :dim m :name2 q :dim2 n x))",
        "x",
        (),
        "what is split and merged in the same order is the tensor",
    ),
)

RULES: tuple[Rule, ...] = (*_SLICES, *_OF_CONCAT, *_COTANGENTS, *_LENGTH_ONE, *_SPLIT)
