"""The primitives of PSK-Core: one row each, one place. Adding a primitive = a row here (name, operands, attributes,
regularity per operand), a typing rule in `core.typing_rules`, a derivative row in `ad`, and a row in each executor;
tests fail for a primitive that misses one.

Semantics (x, y, t tensors of reals unless said; `t` only for its shape):

    const c            the exact rational c, as ℝ[] or as a hyperparameter (by the binding's type)
    dim d              the natural number a dimension expression denotes (nat or int)
    real n             injects a hyperparameter, or an index tensor entry by entry, into ℝ
    add sub mul div    x ∘ y with broadcasting (`elab.broadcast`); on two hyperparameters of one type; `add`, `sub` of
                       two parameter trees or tuples leaf by leaf; `mul`, `div` of a tree by a scalar on every leaf
    neg  pow n         -x;  x to the natural power n (x^0 = 1)
    gelu relu exp tanh sqrt abs log sigmoid sin cos            entry by entry; gelu is x·Φ(x)
    gelu' heaviside sign   adjoint primitives: Φ(x) + x·φ(x);  1 where x > 0, else 0;  -1, 0, 1
    normal_pdf         φ(x) = e^(-x²/2) / √(2π), the adjoint of gelu': gelu'' = φ(x)·(2 - x²), φ' = -x·φ(x)
    dot x, w           contracts the last axis of x with the first of w
    dot_vjp_l ct, w    the cotangent of x: contracts ct's last rank(w)-1 axes with w's last ones
    dot_vjp_r x, ct    the cotangent of w: contracts the first rank(x)-1 axes of both
    mean, sum          of all entries (ℝ[]), or `mean axis a` over one axis, which goes
    mean_vjp ct, x     ct / (number of entries averaged) broadcast to x's shape (`mean_vjp axis a ct, x`)
    broadcast_like x, t     x repeated to t's shape, lined up by `elab.broadcast.align`; with `axis a`: x is t without
                       axis a
    sum_to x, t        x summed down to t's shape along the same alignment
    zeros_like t, ones_like t   of the type of t (trees and tuples leaf by leaf; keys, indices, hyperparameters are left
                       as the unit tuple: `core.shapes.tangent`)
    zeros, ones        of the binding's type
    field n θ          θ.n   (written `θ.n`)
    set_field n θ, v   θ with field n replaced
    record v…          the parameter tree of the binding's type, from its fields in order
    tuple v…           (written `(a, b)`)
    proj i p           component i from 0 (written `p.0`)
    set_elem i p, v    the tuple with component i replaced
    split_key n k      a tuple of n independent keys
    normal s k, xavier_uniform k     initializers: draws of the binding's type from a key (spec: "Initializers")
    stack_params v…    parameter trees of one type stacked: every leaf with a new first axis (of the binding's type, so
                       that no tree at all stacks to leaves of length 0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttrKind = Literal["axis?", "axis", "name", "int", "rational", "dim"]
"""`axis?`: zero or one axis name, written `axis a`. `name`: a field name. `int`: a natural or index. `rational`: an
exact number. `dim`: a dimension expression."""

Class = Literal["Cinf", "C0plus", "Disc"]


@dataclass(frozen=True, slots=True)
class PrimRow:
    """`arity` None means any number of operands. `regularity[i]` is the class of operand i (the last one repeats).
    `view`: moves no data, so it is no kernel. `shape_only`: operands read for their type only. `effect`: draws."""

    name: str
    arity: int | None
    attrs: tuple[AttrKind, ...] = ()
    regularity: tuple[Class, ...] = ("Cinf",)
    view: bool = False
    shape_only: tuple[int, ...] = ()
    effect: str | None = None


_ROWS = (
    PrimRow("const", 0, ("rational",), view=True),
    PrimRow("dim", 0, ("dim",), view=True),
    PrimRow("real", 1, view=True),
    PrimRow("add", 2),
    PrimRow("sub", 2),
    PrimRow("mul", 2),
    PrimRow("div", 2),
    PrimRow("neg", 1),
    PrimRow("pow", 1, ("int",)),
    PrimRow("gelu", 1),
    PrimRow("relu", 1, regularity=("C0plus",)),
    PrimRow("exp", 1),
    PrimRow("tanh", 1),
    PrimRow("sqrt", 1),
    PrimRow("abs", 1, regularity=("C0plus",)),
    PrimRow("log", 1),
    PrimRow("sigmoid", 1),
    PrimRow("sin", 1),
    PrimRow("cos", 1),
    PrimRow("gelu'", 1),
    PrimRow("normal_pdf", 1),
    PrimRow("heaviside", 1, regularity=("Disc",)),
    PrimRow("sign", 1, regularity=("Disc",)),
    PrimRow("dot", 2),
    PrimRow("dot_vjp_l", 2),
    PrimRow("dot_vjp_r", 2),
    PrimRow("mean", 1, ("axis?",)),
    PrimRow("sum", 1, ("axis?",)),
    PrimRow("mean_vjp", 2, ("axis?",), shape_only=(1,)),
    PrimRow("broadcast_like", 2, ("axis?",), shape_only=(1,)),
    PrimRow("sum_to", 2, shape_only=(1,)),
    PrimRow("zeros_like", 1, shape_only=(0,)),
    PrimRow("ones_like", 1, shape_only=(0,)),
    PrimRow("zeros", 0),
    PrimRow("ones", 0),
    PrimRow("field", 1, ("name",), view=True),
    PrimRow("set_field", 2, ("name",), view=True),
    PrimRow("record", None, view=True),
    PrimRow("tuple", None, view=True),
    PrimRow("proj", 1, ("int",), view=True),
    PrimRow("set_elem", 2, ("int",), view=True),
    PrimRow("split_key", 1, ("int",), regularity=("Disc",), effect="Rand"),
    PrimRow("normal", 1, ("rational",), regularity=("Disc",), effect="Rand"),
    PrimRow("xavier_uniform", 1, regularity=("Disc",), effect="Rand"),
    PrimRow("stack_params", None),
)

PRIMS: dict[str, PrimRow] = {row.name: row for row in _ROWS}
