"""Rows of the primitives that select, join and split axes, of `softmax` and of `ein`."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from presk_rel.core.ein import SCORES, EinSpec, ein_spec, matrix_form
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Key
from presk_rel.exec.torch.contract import Factor, Onto, contraction
from presk_rel.exec.torch.operand import INTERLEAVED, Operand, Step, aligned, number, run_axes


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


def row_split_heads(step: Step) -> Operand:
    heads, width = step.int(0), step.int(1)
    *front, seq, _ = step.args[0].sizes
    name = step.line(f"{step.args[0].name}.reshape({(*front, seq, heads, width)}).transpose(-3, -2)")
    return Operand(name, step.type, run_axes(step.type, step.env), kind=INTERLEAVED)


def row_merge_heads(step: Step) -> str:
    """The heads end up next to each other in memory: one copy, unless they lie so."""
    (x,) = step.args
    moved = f"{x.name}.transpose(-3, -2)"
    if x.kind == INTERLEAVED:
        return f"{moved}.reshape({step.sizes})"
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
    masked = _masked_scores(step, x, mask[0]) if _allows_one(mask[0], x, axis, text) else None
    if masked is not None:
        return f"torch.softmax({step.line(masked)}, {axis})"
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
    if len(step.sizes) < 3 or matrix_form(str(step.attrs[0])) is None or 0 in step.sizes:
        factors = [Factor(x.name, x.sizes, axes) for x, axes in zip(step.args, spec.operands, strict=True)]
        return contraction(factors, spec.result, step.products)
    pairs = ((x, Fraction(1)) if step.compiled else _multiple_of(x) for x in step.args)
    given, numbers = zip(*pairs, strict=True)
    scale = prod(numbers, start=Fraction(1))
    return _of_heads(step, spec, given, None if scale == 1 else Onto(_nothing(step), 0, number(scale)))


def _nothing(step: Step) -> str:
    """What is added with the factor 0."""
    return step.line("torch.zeros((1, 1, 1), dtype=dtype, device=device)")


def _of_heads(step: Step, spec: EinSpec, given: tuple[Operand, ...], onto: Onto | None) -> str:
    """A product of batches of matrices. An operand of interleaved heads is copied, once for all that read it."""
    names = [_dense(step, x) for x in given]
    factors = [Factor(n, x.sizes, axes) for n, x, axes in zip(names, given, spec.operands, strict=True)]
    return contraction(factors, spec.result, step.products, onto)


def _dense(step: Step, x: Operand) -> str:
    if x.kind != INTERLEAVED:
        return x.name
    return step.line(f"torch.clone({x.name}, memory_format=torch.contiguous_format)")


def _multiple_of(x: Operand) -> tuple[Operand, Fraction]:
    """The tensor of which x is a known multiple, and the factor."""
    made = x.made
    if made is None or made.op not in ("mul", "div") or len(made.args) != 2:
        return x, Fraction(1)
    base, c = made.args
    if c.scalar is None or c.scalar == 0 or base.sizes != x.sizes or base.shape != x.shape:
        return x, Fraction(1)
    return base, c.scalar if made.op == "mul" else 1 / c.scalar


def _masked_scores(step: Step, x: Operand, mask: Operand) -> str | None:
    """Scores `q · k / c` where the mask allows, as one call: a product added to 0 and -∞."""
    if step.compiled:
        return f"torch.add({x.name}, {_barred(step, mask)})"
    base, scale = _multiple_of(x)
    made = base.made
    if made is None or made.op != "ein" or not made.alone or 0 in x.sizes or len(x.sizes) < 3:
        return None
    spec = ein_spec(str(made.attrs[0]))
    if spec is None or matrix_form(str(made.attrs[0])) != SCORES:
        return None
    return _of_heads(step, spec, made.args, Onto(_barred(step, mask), 1, number(scale)))


def _barred(step: Step, mask: Operand) -> str:
    """0 where a mask allows, else -∞."""
    refused = step.line(f"torch.logical_not({mask.name})")
    zeros = step.line(f"torch.zeros({mask.sizes}, dtype=dtype, device=device)")
    return step.line(f'torch.masked_fill({zeros}, {refused}, float("-inf"))')
