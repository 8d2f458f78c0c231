"""Contractions of one form that share an operand are one contraction of a stack; a sum of contractions too.

    x · wₖ  =  (x · slice k of W)  =  slice k of (x · W),        W the stack of w₀, w₁, …
    Σ ctₖ · wₖᵀ  =  Σₖ slice k of (C · Wᵀ)  =  C · Wᵀ summed over k as well

So the three projections of attention, and their gradients, are one product each. Where it pays `egraph.merging` finds
these rules' instances on what was extracted, so they are not run anywhere else.
"""

from __future__ import annotations

from presk_rel.egraph.rule import Rule

MOST = 8
"""Slices of one stack."""


def _rule(name: str, left: str, right: str, conditions: tuple[str, ...], law: str) -> Rule:
    return Rule(name, left, right, conditions, law, "merge")


def _part(count: int, k: int) -> Rule:
    parts = " ".join(f"v{i}" for i in range(count))
    return _rule(
        f"slice.of-stack-{count}-{k}",
        f"(slice_params :dim {k} (stack_params :type u {parts}))",
        f"v{k}",
        (),
        "slice k of a stack is its k-th part",
    )


_SLICED = {
    "left": ("(slice_params :dim i x)", "w"),
    "right": ("x", "(slice_params :dim i w)"),
    "both": ("(slice_params :dim i x)", "(slice_params :dim i w)"),
}


def _product(op: str, side: str) -> Rule:
    """A contraction of slices is a slice of the contraction of stacks."""
    left, right = _SLICED[side]
    return _rule(
        f"{op}.slices-{side}",
        f"({op} {left} {right})",
        "(slice_params :dim i (ein :spec s :type u x w))",
        (f"(per-slice {op}-{side} s)", "(typed (ein :spec s x w) u)"),
        "a contraction of slice i of a stack is slice i of the contractions of all its slices",
    )


def _ein(side: str) -> Rule:
    left, right = _SLICED[side]
    return _rule(
        f"ein.slices-{side}",
        f"(ein :spec r {left} {right})",
        "(slice_params :dim i (ein :spec s :type u x w))",
        (f"(per-slice-of r {side} s)", "(typed (ein :spec s x w) u)"),
        "a contraction of slice i of a stack is slice i of the contractions of all its slices",
    )


def _total(count: int) -> Rule:
    slices = [f"(slice_params :type t :dim {k} y)" for k in range(count)]
    whole = slices[0]
    for part in slices[1:]:
        whole = f"(add :type t {whole} {part})"
    return _rule(
        f"slices.sum-{count}",
        whole,
        "(sum :axis a y)",
        ("(stack-of y a n)", f"(equal n {count})"),
        "the sum of all slices of a stack is its sum along the stack's axis",
    )


RULES: tuple[Rule, ...] = (
    *(_product(op, side) for op in ("dot", "dot_vjp_l", "dot_vjp_r") for side in _SLICED),
    *(_ein(side) for side in _SLICED),
    _rule(
        "add.slices",
        "(add :type t (slice_params :type p :dim i x) (slice_params :type q :dim i y))",
        "(slice_params :dim i (add :type u x y))",
        ("(typed (add x y) u)", "(lines-up-per-slice p q x y)"),
        "a sum of slices i is slice i of the sum of the stacks, where these line up as the slices do",
    ),
    _rule(
        "sum_to.slices",
        "(sum_to :type q (slice_params :type p :dim i x) z)",
        "(slice_params :dim i (sum_to :type u x y))",
        ("(type y u)", "(lines-up-per-slice q p y x)"),
        "slice i summed down is slice i of the stack summed down, where its axes line up as the slice's do",
    ),
    _rule(
        "sum.ein",
        "(sum :axis a (ein :spec r x w))",
        "(ein :spec s x w)",
        ("(summed-out a r s)",),
        "a sum along an axis of a contraction is the contraction that sums over it too",
    ),
    *(_total(n) for n in range(2, MOST + 1)),
    *(_part(n, k) for n in range(2, MOST + 1) for k in range(n)),
)
