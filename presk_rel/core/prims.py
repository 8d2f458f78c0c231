"""The primitives of PSK-Core: one row each, one place. Adding a primitive = a row here (name, operands, attributes,
regularity per operand), a typing rule in `core.typing_rules`, a derivative row in `ad`, and a row in each executor;
tests fail for a primitive that misses one.

Semantics (x, y, t tensors of reals unless said; `t` only for its shape):

    const c            the exact rational c, as ℝ[] or as a hyperparameter (by the binding's type)
    dim d              the natural number a dimension expression denotes (nat or int)
    real n             injects a hyperparameter, or an index tensor entry by entry, into ℝ
    add sub mul div    x ∘ y with broadcasting (`elab.broadcast`); on two hyperparameters of one type; on two parameter
                       trees or tuples of one type leaf by leaf; on a tree and a scalar ℝ[] (either first) at every leaf
    neg  pow n         -x;  x to the natural power n (x^0 = 1); of a tree, leaf by leaf, as `sqrt` is
    max min            the greater, the smaller of x and y, broadcast as `add`; a tie gives y (value and derivative)
    lt le gt ge eq     comparisons: of two hyperparameters, a `bool`; of two real or two index tensors, broadcast as
                       `add`, a mask
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
    stack_params v…    trees, tuples, tensors or keys of one type stacked: every leaf with a new first axis (of the
                       binding's type, so that no tree at all stacks to leaves of length 0)
    slice_params i p   slice i of a stack: every leaf at i of its first axis
    scatter_params i ct, t  zeros of the type of the stack t, with ct in slice i
    set_slice i p, v   the stack p with slice i replaced
    softmax axis a x, m     along a; with a mask m, which broadcasts into x without widening it: over the positions m
                       allows, 0 where it refuses. m may be absent
    ein [spec] x…      the sum over the axes of the operands that the result lacks of the product of the operands; the
                       spec (`core.ein`) names the axes of every operand, in its own order, and those of the result
    embed w, i         the rows of w : ℝ[V, D] at i : idx[V][S], ℝ[S, D]
    embed_vjp ct, i, t the cotangent of the table t: ct's rows added up at i
    one_hot i          ℝ[S, V], 1 at i : idx[V][S], else 0
    cross_entropy l, i      -log softmax(l)[i] along the last axis of l : ℝ[S, V]
    cross_entropy_vjp ct, l, i   (softmax(l) - one_hot(i)) · ct
    argmax x           the least index of a greatest entry along the last axis
    sample k, l        the least index whose cumulative probability under softmax(l) exceeds the key's uniform draw
    merge axis a axis b x   the adjacent axes a, b read as one, row-major, unnamed
    split axis a m: M n: N x     the axis a read as two
    reshape_like x, t  x in t's shape, row-major, of as many entries
    split_heads HxE x  ℝ[…, seq, H·E] → ℝ[…, heads: H, seq, hd: E]
    merge_heads HxE x  its inverse
    positions          0, 1, …, T - 1 of the binding's type idx[T][T]
    causal_mask        of the binding's type bool[T, T]: true where the second index is at most the first
    index a: i x       the slice i of the axis a, which goes; -1 is the last one. a is a name, or the number of an axis
                       from the front, not counting a prefix
    scatter_index a: i ct, t     zeros of t's shape, with ct at i of the axis a
    slice a: i..j x    the axis a from i to before j
    slice_vjp a: i..j ct, t      zeros of t's shape, with ct there
    concat a x, y      x, then y, along the axis a
    dropout_mask r k, t     of t's shape: the entry of rank p is 0 where the key's uniform draw p is below r, else
                       1/(1 - r)
    sum_squares p      the sum of the squares of all entries of a tree, tuple or tensor
    pi                 π, as ℝ[]

`core.composites` defines further ones by these; only the optimizer makes them.
"""

from __future__ import annotations

from typing import Literal

from presk_rel.core.composites import COMPOSITES
from presk_rel.diagnostics.record import record

AttrKind = Literal["axis?", "axis", "name", "int", "rational", "dim", "spec", "place"]
"""`axis?`: zero or one axis name, written `axis a`. `name`: a field name. `int`: a natural or index. `rational`: an
exact number. `dim`: a dimension expression. `spec`: the axes of an `ein` (a str, `core.ein`). `place`: an axis, by name
(a str) or by number from the front, not counting a prefix (an int)."""

Class = Literal["Cinf", "C0plus", "Disc"]


@record
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
    PrimRow("slice_params", 1, ("dim",), view=True),
    PrimRow("scatter_params", 2, ("dim",), shape_only=(1,)),
    PrimRow("set_slice", 2, ("dim",)),
    PrimRow("max", 2, regularity=("C0plus",)),
    PrimRow("min", 2, regularity=("C0plus",)),
    PrimRow("lt", 2, regularity=("Disc",)),
    PrimRow("le", 2, regularity=("Disc",)),
    PrimRow("gt", 2, regularity=("Disc",)),
    PrimRow("ge", 2, regularity=("Disc",)),
    PrimRow("eq", 2, regularity=("Disc",)),
    PrimRow("softmax", None, ("axis",)),
    PrimRow("ein", None, ("spec",)),
    PrimRow("embed", 2, regularity=("Cinf", "Disc")),
    PrimRow("embed_vjp", 3, regularity=("Cinf", "Disc", "Cinf"), shape_only=(2,)),
    PrimRow("one_hot", 1, regularity=("Disc",)),
    PrimRow("cross_entropy", 2, regularity=("Cinf", "Disc")),
    PrimRow("cross_entropy_vjp", 3, regularity=("Cinf", "Cinf", "Disc")),
    PrimRow("argmax", 1, regularity=("Disc",)),
    PrimRow("sample", 2, regularity=("Disc",), effect="Rand"),
    PrimRow("merge", 1, ("axis", "axis"), view=True),
    PrimRow("split", 1, ("axis", "name", "dim", "name", "dim"), view=True),
    PrimRow("reshape_like", 2, view=True, shape_only=(1,)),
    PrimRow("split_heads", 1, ("int", "int"), view=True),
    PrimRow("merge_heads", 1, ("int", "int"), view=True),
    PrimRow("positions", 0),
    PrimRow("causal_mask", 0),
    PrimRow("index", 1, ("place", "dim"), view=True),
    PrimRow("scatter_index", 2, ("place", "dim"), shape_only=(1,)),
    PrimRow("slice", 1, ("place", "dim", "dim"), view=True),
    PrimRow("slice_vjp", 2, ("place", "dim", "dim"), shape_only=(1,)),
    PrimRow("concat", 2, ("axis",)),
    PrimRow("dropout_mask", 2, ("rational",), regularity=("Disc",), shape_only=(1,), effect="Rand"),
    PrimRow("sum_squares", 1),
    PrimRow("pi", 0),
)

PRIMS: dict[str, PrimRow] = {row.name: row for row in _ROWS} | {
    c.name: PrimRow(c.name, len(c.operands), tuple(k for _, k in c.attrs), c.regularity, shape_only=c.shape_only)
    for c in COMPOSITES.values()
}
