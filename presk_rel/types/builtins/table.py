"""The builtins, one row each. A test finds one of the language that has no row."""

from __future__ import annotations

from presk_rel.elab.ty import Hyper
from presk_rel.types.builtins.axes import concat, merge, merge_heads, split, split_heads
from presk_rel.types.builtins.functions import derivative_hints, grad, grad_hints, jvp, vjp
from presk_rel.types.builtins.indices import (
    argmax,
    causal_mask,
    cross_entropy,
    dropout,
    embed,
    one_hot,
    positions,
    sample,
    split_key,
)
from presk_rel.types.builtins.operands import real_hint
from presk_rel.types.builtins.real import clamp, elementwise, extremum, injection, matmul, reduction, softmax
from presk_rel.types.builtins.row import Builtin

_ELEMENTWISE = ("gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos")

_ROWS = (
    *(Builtin(name, ("x",), elementwise, hints=real_hint) for name in _ELEMENTWISE),
    Builtin("mean", ("x",), reduction, axes=(0, 1), hints=real_hint),
    Builtin("sum", ("x",), reduction, axes=(0, 1), hints=real_hint),
    Builtin("softmax", ("x",), softmax, axes=(1,), named=("where",)),
    Builtin("real", ("x",), injection),
    Builtin("matmul", ("x", "w"), matmul, hints=real_hint),
    Builtin("max", ("x", "y"), extremum, hints=real_hint),
    Builtin("min", ("x", "y"), extremum, hints=real_hint),
    Builtin("clamp", ("x", "lo", "hi"), clamp, hints=real_hint),
    Builtin("embed", ("w", "t"), embed),
    Builtin("one_hot", ("t",), one_hot),
    Builtin("cross_entropy", ("logits", "y"), cross_entropy),
    Builtin("argmax", ("x",), argmax),
    Builtin("sample", ("key", "logits"), sample),
    Builtin("positions", (), positions, dims=1),
    Builtin("causal_mask", (), causal_mask, dims=1),
    Builtin("merge", ("x",), merge, axes=(2,)),
    Builtin("split", ("x",), split, axes=(1,), dims=2),
    Builtin("split_heads", ("x",), split_heads),
    Builtin("merge_heads", ("x",), merge_heads),
    Builtin("concat", ("x", "y"), concat, axes=(1,)),
    Builtin("split_key", ("key",), split_key),
    Builtin("dropout", ("rate", "key", "x"), dropout, hints=lambda _, __: (Hyper("f64"),)),
    Builtin("grad", ("f",), grad, hints=grad_hints),
    Builtin("vjp", ("f",), vjp, hints=derivative_hints),
    Builtin("jvp", ("f",), jvp, hints=derivative_hints),
)

BUILTINS: dict[str, Builtin] = {row.name: row for row in _ROWS}
