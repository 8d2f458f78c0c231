"""One typing rule per primitive of PSK-Core (`core.prims`): from the attributes, the operands' types and the type the
binding declares, the type of the result or an error text.

A rule sees attributes of the kinds its row says and as many operands as it has (`verify` checks both first). Its result
is compared with the declared type modulo axis names that one of them lacks. A primitive whose type its operands do not
say (`zeros`, `const`, `record`, `normal`) answers with the declared type, once that is of the right form.
"""

from __future__ import annotations

from presk_rel.core import typing_axes as axes
from presk_rel.core import typing_indices as indices
from presk_rel.core import typing_structure as structure
from presk_rel.core import typing_tensors as tensors
from presk_rel.core.composites import COMPOSITES
from presk_rel.core.ir import Attr
from presk_rel.core.prims import PrimRow
from presk_rel.core.rule import Rule, RuleError, Use, attribute_problem
from presk_rel.elab.ty import ModuleDef, Type


def infer(
    row: PrimRow, attrs: tuple[Attr, ...], args: tuple[Type, ...], declared: Type, modules: dict[str, ModuleDef]
) -> Type | str:
    """The type of a primitive's result, or the text of an error: wrong number or kind of attributes or operands, or
    operands its rule does not allow."""
    problem = attribute_problem(row, attrs)
    if problem is not None:
        return problem
    if row.arity is not None and len(args) != row.arity:
        return f"{row.name} takes {row.arity} operands, not {len(args)}"
    try:
        return RULES[row.name](Use(row.name, attrs, args, declared, modules))
    except RuleError as error:
        return str(error)


def _rule_composite(u: Use) -> Type:
    """What the definition's own typing rules say."""
    from presk_rel.core.expand import composite_type  # which reads this table

    found = composite_type(u.op, u.attrs, u.args, u.modules)
    if isinstance(found, str):
        raise RuleError(found)
    return found


_ELEMENTWISE = (
    "gelu", "relu", "exp", "tanh", "abs", "log", "sigmoid", "sin", "cos", "gelu'", "normal_pdf", "heaviside",
    "sign",
)  # fmt: skip

RULES: dict[str, Rule] = {
    "const": tensors.rule_const,
    "dim": tensors.rule_dim,
    "real": tensors.rule_injection,
    "add": tensors.rule_arithmetic,
    "sub": tensors.rule_arithmetic,
    "mul": tensors.rule_arithmetic,
    "div": tensors.rule_arithmetic,
    "neg": tensors.rule_neg,
    "pow": tensors.rule_pow,
    **dict.fromkeys(_ELEMENTWISE, tensors.rule_elementwise),
    "sqrt": tensors.rule_sqrt,
    "max": tensors.rule_extremum,
    "min": tensors.rule_extremum,
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq"), indices.rule_comparison),
    "dot": tensors.rule_dot,
    "dot_vjp_l": tensors.rule_dot_vjp_l,
    "dot_vjp_r": tensors.rule_dot_vjp_r,
    "mean": tensors.rule_reduction,
    "sum": tensors.rule_reduction,
    "mean_vjp": tensors.rule_mean_vjp,
    "broadcast_like": tensors.rule_broadcast_like,
    "sum_to": tensors.rule_sum_to,
    "zeros_like": tensors.rule_like,
    "ones_like": tensors.rule_like,
    "zeros": tensors.rule_filled,
    "ones": tensors.rule_filled,
    "field": structure.rule_field,
    "set_field": structure.rule_set_field,
    "record": structure.rule_record,
    "tuple": structure.rule_tuple_of,
    "proj": structure.rule_proj,
    "set_elem": structure.rule_set_elem,
    "split_key": structure.rule_split_key,
    "normal": structure.rule_normal,
    "xavier_uniform": structure.rule_draw,
    "stack_params": structure.rule_stack_params,
    "slice_params": structure.rule_slice_params,
    "scatter_params": structure.rule_scatter_params,
    "set_slice": structure.rule_set_slice,
    "softmax": axes.rule_softmax,
    "ein": axes.rule_ein,
    "embed": indices.rule_embed,
    "embed_vjp": indices.rule_embed_vjp,
    "one_hot": indices.rule_one_hot,
    "cross_entropy": indices.rule_cross_entropy,
    "cross_entropy_vjp": indices.rule_cross_entropy_vjp,
    "argmax": indices.rule_argmax,
    "sample": indices.rule_sample,
    "merge": axes.rule_merge,
    "split": axes.rule_split,
    "reshape_like": axes.rule_reshape_like,
    "split_heads": axes.rule_split_heads,
    "merge_heads": axes.rule_merge_heads,
    "positions": indices.rule_positions,
    "causal_mask": indices.rule_causal_mask,
    "index": axes.rule_index,
    "scatter_index": axes.rule_scatter_index,
    "slice": axes.rule_slice,
    "slice_vjp": axes.rule_slice_vjp,
    "concat": axes.rule_concat,
    "dropout_mask": indices.rule_dropout_mask,
    "sum_squares": tensors.rule_sum_squares,
    "pi": tensors.rule_pi,
    **dict.fromkeys(COMPOSITES, _rule_composite),
}
"""Every row of `PRIMS` has its rule here."""
