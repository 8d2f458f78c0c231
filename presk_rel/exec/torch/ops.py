"""One row per primitive: the torch expression that computes it. `STRUCTURE` and the hyperparameters are
`exec.torch.structure`'s; a test finds a primitive that has neither."""

from __future__ import annotations

from presk_rel.exec.torch import rows_arithmetic as arithmetic
from presk_rel.exec.torch import rows_axes as axes
from presk_rel.exec.torch import rows_composites as composites
from presk_rel.exec.torch import rows_indices as indices
from presk_rel.exec.torch.operand import Row

_UNARY = {
    "neg": "torch.neg({0})",
    "relu": "torch.relu({0})",
    "exp": "torch.exp({0})",
    "tanh": "torch.tanh({0})",
    "sqrt": "torch.sqrt({0})",
    "abs": "torch.abs({0})",
    "log": "torch.log({0})",
    "sigmoid": "torch.sigmoid({0})",
    "sin": "torch.sin({0})",
    "cos": "torch.cos({0})",
    "gelu'": "torch.ops.aten.gelu_backward(torch.ones_like({0}), {0})",
    "normal_pdf": "torch.mul(torch.exp(torch.mul(torch.mul({0}, {0}), -0.5)), 0.3989422804014327)",
    "heaviside": "torch.gt({0}, 0).to(dtype)",
    "sign": "torch.sign({0})",
}

_ADJOINTS = {
    "relu_vjp": "torch.ops.aten.threshold_backward({0}, {1}, 0)",
    "tanh_vjp": "torch.ops.aten.tanh_backward({0}, {1})",
    "sigmoid_vjp": "torch.ops.aten.sigmoid_backward({0}, {1})",
}

ROWS: dict[str, Row] = {
    **{op: arithmetic.row_unary(text) for op, text in _UNARY.items()},
    **dict.fromkeys(("add", "sub", "mul", "div"), arithmetic.row_pair),
    **dict.fromkeys(("max", "min"), arithmetic.row_extremum),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq"), arithmetic.row_compare),
    "const": arithmetic.row_const,
    "pi": arithmetic.row_pi,
    "real": indices.row_real,
    "pow": arithmetic.row_pow,
    "dot": arithmetic.row_dot,
    "dot_vjp_l": arithmetic.row_dot_vjp_l,
    "dot_vjp_r": arithmetic.row_dot_vjp_r,
    "mean": arithmetic.row_reduce,
    "sum": arithmetic.row_reduce,
    "sum_squares": arithmetic.row_sum_squares,
    "mean_vjp": arithmetic.row_mean_vjp,
    "broadcast_like": arithmetic.row_broadcast_like,
    "sum_to": arithmetic.row_sum_to,
    "zeros_like": arithmetic.row_filled(0),
    "ones_like": arithmetic.row_filled(1),
    "zeros": arithmetic.row_filled(0),
    "ones": arithmetic.row_filled(1),
    "softmax": axes.row_softmax,
    "ein": axes.row_ein,
    "merge": axes.row_reshape,
    "split": axes.row_reshape,
    "reshape_like": axes.row_reshape,
    "split_heads": axes.row_split_heads,
    "merge_heads": axes.row_merge_heads,
    "index": axes.row_index,
    "scatter_index": axes.row_scatter_index,
    "slice": axes.row_slice,
    "slice_vjp": axes.row_slice_vjp,
    "concat": axes.row_concat,
    "slice_params": axes.row_slice_params,
    "scatter_params": axes.row_scatter_params,
    "set_slice": axes.row_set_slice,
    "stack_params": axes.row_stack_params,
    "embed": indices.row_embed,
    "embed_vjp": indices.row_embed_vjp,
    "one_hot": indices.row_one_hot,
    "cross_entropy": indices.row_cross_entropy,
    "cross_entropy_vjp": indices.row_cross_entropy_vjp,
    "argmax": indices.row_argmax,
    "positions": indices.row_positions,
    "causal_mask": indices.row_causal_mask,
    "normal": indices.row_normal,
    "xavier_uniform": indices.row_xavier_uniform,
    "dropout_mask": indices.row_dropout_mask,
    "sample": indices.row_sample,
    **{op: arithmetic.row_call(text) for op, text in _ADJOINTS.items()},
    "gelu": composites.row_gelu,
    "gelu_vjp": composites.row_gelu_vjp,
    "standardize": composites.row_standardize,
    "standardize_vjp": composites.row_standardize_vjp,
    "layer_norm": composites.row_layer_norm,
    "layer_norm_vjp": composites.row_layer_norm_vjp,
    "layer_norm_vjp_scale": composites.row_layer_norm_vjp,
    "softmax_vjp": composites.row_softmax_vjp,
    "log_softmax": composites.row_log_softmax,
    "log_softmax_vjp": composites.row_log_softmax_vjp,
    "logsumexp": composites.row_logsumexp,
    "linear": composites.row_linear,
    "mse": composites.row_mse,
    "mse_vjp": composites.row_mse_vjp,
    **dict.fromkeys(("attention", "attention_masked"), composites.row_attention),
    **dict.fromkeys((f"attention_vjp_{x}{m}" for x in "qkv" for m in ("", "_masked")), composites.row_attention_vjp),
}

WRITTEN_OUT = frozenset({"deviation"})
"""Composites that torch has no call for."""

HYPER = frozenset({"dim"})
"""Primitives on hyperparameters only."""
