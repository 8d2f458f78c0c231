"""The primitives of PSK-Core on exact values: one row each (semantics: `core.prims`). A row sees one `Step` and nothing
else; a primitive that has no row here is found by a test. Arithmetic is the kernel's; everything about axes is decided
on the static types, here, once for all kernels."""

from __future__ import annotations

from presk_rel.exec.exact import rows_arithmetic as arithmetic
from presk_rel.exec.exact import rows_scores as scores
from presk_rel.exec.exact import rows_values as values
from presk_rel.exec.exact import rows_views as views
from presk_rel.exec.exact.kernel import BINARY, COMPARISONS, ELEMENTWISE
from presk_rel.exec.exact.rows_ein import row_ein
from presk_rel.exec.exact.step import Row

ROWS: dict[str, Row] = {
    "const": values.row_const,
    "dim": values.row_dim,
    "real": values.row_real,
    **dict.fromkeys(BINARY, arithmetic.row_binary),
    **dict.fromkeys(ELEMENTWISE, arithmetic.row_unary),
    "pow": arithmetic.row_pow,
    "dot": arithmetic.row_dot,
    "dot_vjp_l": arithmetic.row_dot_vjp_l,
    "dot_vjp_r": arithmetic.row_dot_vjp_r,
    "mean": arithmetic.row_mean,
    "sum": arithmetic.row_sum,
    "mean_vjp": arithmetic.row_mean_vjp,
    "broadcast_like": arithmetic.row_broadcast_like,
    "sum_to": arithmetic.row_sum_to,
    "zeros_like": values.row_like(0),
    "ones_like": values.row_like(1),
    "zeros": values.row_filled(0),
    "ones": values.row_filled(1),
    "field": values.row_field,
    "set_field": values.row_set_field,
    "record": values.row_record,
    "tuple": values.row_tuple,
    "proj": values.row_proj,
    "set_elem": values.row_set_elem,
    "stack_params": values.row_stack_params,
    "split_key": values.row_split_key,
    "normal": values.row_drawn,
    "xavier_uniform": values.row_drawn,
    "slice_params": values.row_slice_params,
    "scatter_params": values.row_scatter_params,
    "set_slice": values.row_set_slice,
    "pi": values.row_pi,
    "sum_squares": arithmetic.row_sum_squares,
    **dict.fromkeys(COMPARISONS, scores.row_compare),
    "softmax": scores.row_softmax,
    "cross_entropy": scores.row_cross_entropy,
    "cross_entropy_vjp": scores.row_cross_entropy_vjp,
    "ein": row_ein,
    "embed": scores.row_embed,
    "embed_vjp": scores.row_embed_vjp,
    "one_hot": scores.row_one_hot,
    "argmax": scores.row_argmax,
    "sample": scores.row_sample,
    "dropout_mask": scores.row_dropout_mask,
    "positions": scores.row_positions,
    "causal_mask": scores.row_causal_mask,
    "merge": views.row_reshape,
    "split": views.row_reshape,
    "reshape_like": views.row_reshape,
    "split_heads": views.row_split_heads,
    "merge_heads": views.row_merge_heads,
    "index": views.row_select,
    "scatter_index": views.row_scatter,
    "slice": views.row_select,
    "slice_vjp": views.row_scatter,
    "concat": views.row_concat,
}

STRUCTURAL = frozenset({"field", "set_field", "record", "tuple", "proj", "set_elem", "split_key", "const", "dim"})
"""The rows that touch no entry of a tensor (`const` makes one scalar)."""
