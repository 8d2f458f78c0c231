"""Rows of the primitives that select, join and split axes, of `softmax` and of `ein`."""

from __future__ import annotations

from presk_rel.core.ein import ein_spec
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Key
from presk_rel.exec.torch.contract import Factor, contraction
from presk_rel.exec.torch.operand import Operand, Step, aligned


def row_index(step: Step) -> str:
    return f"torch.select({step.args[0].name}, {step.axis(0, step.attrs[0])}, {step.int(1)})"


def row_scatter_index(step: Step) -> str:
    ct, t = step.args
    axis = step.axis(1, step.attrs[0])
    return f"torch.ops.aten.select_backward({ct.name}, {t.sizes}, {axis}, {step.int(1)})"


def row_slice(step: Step) -> str:
    lo, hi = step.int(1), step.int(2)
    return f"torch.narrow({step.args[0].name}, {step.axis(0, step.attrs[0])}, {lo}, {hi - lo})"


def row_slice_vjp(step: Step) -> str:
    ct, t = step.args
    axis = step.axis(1, step.attrs[0])
    return f"torch.ops.aten.slice_backward({ct.name}, {t.sizes}, {axis}, {step.int(1)}, {step.int(2)}, 1)"


def row_concat(step: Step) -> str:
    x, y = step.args
    return f"torch.cat(({x.name}, {y.name}), {step.axis(0, step.attrs[0])})"


def row_reshape(step: Step) -> str:
    """`merge`, `split`, `reshape_like`: the entries in the same row-major order."""
    return f"{step.args[0].name}.reshape({step.sizes})"


def row_split_heads(step: Step) -> str:
    heads, width = step.int(0), step.int(1)
    *front, seq, _ = step.args[0].sizes
    return f"{step.args[0].name}.reshape({(*front, seq, heads, width)}).transpose(-3, -2)"


def row_merge_heads(step: Step) -> str:
    """The heads end up next to each other in memory: one copy."""
    moved = f"{step.args[0].name}.transpose(-3, -2)"
    return f"torch.clone({moved}, memory_format=torch.contiguous_format).reshape({step.sizes})"


# --------------------------------------------------------------------------------------------------- stacks of leaves


def row_slice_params(step: Step) -> str:
    (x,) = step.args
    return f"{x.name}[{step.int(0)}]" if isinstance(x.type, Key) else f"torch.select({x.name}, 0, {step.int(0)})"


def row_scatter_params(step: Step) -> str:
    ct, t = step.args
    return f"torch.ops.aten.select_backward({ct.name}, {t.sizes}, 0, {step.int(0)})"


def row_set_slice(step: Step) -> str:
    (p, v), i = step.args, step.int(0)
    if isinstance(p.type, Key):
        return f"(*{p.name}[:{i}], {v.name}, *{p.name}[{i + 1}:])"
    return f"torch.select_scatter({p.name}, {v.name}, 0, {i})"


def row_stack_params(step: Step) -> str:
    names = "".join(f"{a.name}, " for a in step.args)
    if isinstance(step.type, Key):
        return f"({names})"
    if not step.args:
        return f"torch.empty({step.sizes}, dtype=dtype, device=device)"
    return f"torch.stack(({names}))"


# -------------------------------------------------------------------------------------------------- softmax and ein


def row_softmax(step: Step) -> str:
    """Refused positions are 0, also where all are refused: torch gives NaN there."""
    x, *mask = step.args
    axis = step.axis(0, step.attrs[0])
    if not mask:
        return f"torch.softmax({x.name}, {axis})"
    text = aligned(mask[0], x.shape, x.sizes)
    refused = step.line(f"torch.logical_not({text})")
    scores = step.line(f'torch.masked_fill({x.name}, {refused}, float("-inf"))')
    if _allows_one(mask[0], x, axis, text):
        return f"torch.softmax({scores}, {axis})"
    return f"torch.masked_fill({step.line(f'torch.softmax({scores}, {axis})')}, {refused}, 0.0)"


def _allows_one(mask: Operand, x: Operand, axis: int, text: str) -> bool:
    """A causal mask along its second axis allows position 0 at least."""
    return mask.kind == "causal" and text == mask.name and axis == len(x.sizes) - 1


def row_ein(step: Step) -> str:
    spec = ein_spec(str(step.attrs[0]))
    if spec is None:
        raise PreskBug("torch", f"[{step.attrs[0]}] is no contraction")
    factors = [Factor(x.name, x.sizes, axes) for x, axes in zip(step.args, spec.operands, strict=True)]
    return contraction(factors, spec.result, step.line)
