"""Composite primitives: what libraries compute as one operation, each defined by an expansion into other primitives.

Only the optimizer introduces them, after differentiation, by the rules `<name>.definition` and those of
`egraph/rules/composites.py`. One row here is all there is to say about a composite: its typing rule, its exact value,
its cost and its defining rule follow from the definition; an executor that has no operation of its own for one runs
the expansion (`core.expand`).

A definition is an S-expression over primitives (and composites above it). Words are operands; after a keyword stands
an attribute: a variable of the composite or a number. The type of every part is what its typing rule infers.

    deviation axis a ε x            √(mean_a (x - mean_a x)² + ε)
    standardize axis a ε x          (x - mean_a x) / deviation
    layer_norm axis a ε x, γ, β     standardize x · γ + β
    …_vjp                           adjoints: of `standardize` and `layer_norm` in x, of `layer_norm` in γ
                                    (`…_scale`), of functions of one tensor (`tanh_vjp`, `sigmoid_vjp` and
                                    `softmax_vjp` take the value)
    log_softmax axis a x            x - log Σ_a exp x; its adjoint takes the value
    logsumexp axis a x              log Σ_a exp x
    linear x, w, b                  x · w + b
    mse x, y                        the mean of (x - y)²; its adjoint in x, at the shape of t
    attention [p] [r] axis a q, k, v, c     softmax_a(ein [p] q, k / c) contracted by [r] with v; `…_masked` with a
                                    mask; adjoints in q, k and v, whose contractions are attributes too
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from presk_rel.core.prims import AttrKind, Class

AttrVariables = tuple[tuple[str, "AttrKind"], ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """`attrs` and `operands` are the variables of the definition. `shares`: the composite whose library call computes
    this one along with it, so that it is no launch of its own. `adjoint_of`: the composite whose parts an adjoint
    reads. Of both, the parts that have the same variables here and there are counted as work there."""

    name: str
    attrs: AttrVariables
    operands: tuple[str, ...]
    definition: str
    shape_only: tuple[int, ...] = ()
    regularity: tuple[Class, ...] = ("Cinf",)
    shares: str = ""
    adjoint_of: str = ""


_NORM: AttrVariables = (("a", "axis"), ("e", "rational"))
_AT = ":axis a :value e"
_MEAN = "(mean :axis a x)"

_ROWS: list[Composite] = [
    Composite("deviation", _NORM, ("x",), f"(sqrt (add (mean :axis a (pow :n 2 (sub x {_MEAN}))) (const :value e)))"),
    Composite("standardize", _NORM, ("x",), f"(div (sub x {_MEAN}) (deviation {_AT} x))"),
    Composite("layer_norm", _NORM, ("x", "g", "b"), f"(add (mul (standardize {_AT} x) g) b)"),
    Composite(
        "standardize_vjp",
        _NORM,
        ("ct", "x"),
        "(div (sub (sub ct (mean_vjp :axis a (sum :axis a ct) x))"
        f" (mul (standardize {_AT} x) (mean_vjp :axis a (sum :axis a (mul ct (standardize {_AT} x))) x)))"
        f" (deviation {_AT} x))",
        adjoint_of="standardize",
    ),
    Composite(
        "layer_norm_vjp",
        _NORM,
        ("ct", "x", "g"),
        f"(standardize_vjp {_AT} (mul ct g) x)",
        adjoint_of="layer_norm",
    ),
    Composite(
        "layer_norm_vjp_scale",
        _NORM,
        ("ct", "x", "g"),
        f"(sum_to (mul ct (standardize {_AT} x)) g)",
        shape_only=(2,),
        shares="layer_norm_vjp",
        adjoint_of="layer_norm",
    ),
    Composite(
        "softmax_vjp",
        (("a", "axis"),),
        ("ct", "y"),
        "(mul y (sub ct (broadcast_like :axis a (sum :axis a (mul ct y)) y)))",
    ),
    Composite(
        "log_softmax", (("a", "axis"),), ("x",), "(sub x (broadcast_like :axis a (log (sum :axis a (exp x))) x))"
    ),
    Composite(
        "log_softmax_vjp",
        (("a", "axis"),),
        ("ct", "y"),
        "(sub ct (mul (exp y) (broadcast_like :axis a (sum :axis a ct) y)))",
    ),
    Composite("logsumexp", (("a", "axis"),), ("x",), "(log (sum :axis a (exp x)))"),
    Composite("gelu_vjp", (), ("ct", "x"), "(mul ct (gelu' x))"),
    Composite("relu_vjp", (), ("ct", "x"), "(mul ct (heaviside x))", regularity=("Cinf", "Disc")),
    Composite("tanh_vjp", (), ("ct", "y"), "(mul ct (sub (const :value 1) (pow :n 2 y)))"),
    Composite("sigmoid_vjp", (), ("ct", "y"), "(mul ct (mul y (sub (const :value 1) y)))"),
    Composite("linear", (), ("x", "w", "b"), "(add (dot x w) b)"),
    Composite("mse", (), ("x", "y"), "(mean (pow :n 2 (sub x y)))"),
    Composite(
        "mse_vjp",
        (),
        ("ct", "x", "y", "t"),
        "(mul (mean_vjp ct t) (mul (sub x y) (const :value 2)))",
        shape_only=(3,),
    ),
]


def _attention(suffix: str, mask: str) -> list[Composite]:
    """Attention with or without a mask; the second contraction of the adjoints is that of ct with v."""
    weights = f"(softmax :axis a (div (ein :spec p q k) c){mask})"
    inner = f"(div (softmax_vjp :axis a (ein :spec r ct v) {weights}) c)"
    two: AttrVariables = (("p", "spec"), ("r", "spec"))
    three: AttrVariables = (*two, ("s", "spec"))
    axis: AttrVariables = (("a", "axis"),)
    last = ("m",) if mask else ()
    return [
        Composite(f"attention{suffix}", (*two, *axis), ("q", "k", "v", "c", *last), f"(ein :spec r {weights} v)"),
        Composite(
            f"attention_vjp_q{suffix}",
            (*three, *axis),
            ("ct", "q", "k", "v", "c", *last),
            f"(ein :spec s {inner} k)",
            adjoint_of=f"attention{suffix}",
        ),
        Composite(
            f"attention_vjp_k{suffix}",
            (*three, *axis),
            ("ct", "q", "k", "v", "c", *last),
            f"(ein :spec s {inner} q)",
            shares=f"attention_vjp_q{suffix}",
            adjoint_of=f"attention{suffix}",
        ),
        Composite(
            f"attention_vjp_v{suffix}",
            (*two, *axis),
            ("ct", "q", "k", "c", *last),
            f"(ein :spec r ct {weights})",
            shares=f"attention_vjp_q{suffix}",
            adjoint_of=f"attention{suffix}",
        ),
    ]


COMPOSITES: dict[str, Composite] = {
    row.name: row for row in (*_ROWS, *_attention("", ""), *_attention("_masked", " m"))
}
