"""Rows of composite primitives: one call each, or one call for several of them. What a call computes besides is known
to later rows under a key of `Step.known`."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from presk_rel.diagnostics import PreskBug
from presk_rel.exec.torch.attention import FUSED
from presk_rel.exec.torch.operand import INTERLEAVED, Operand, Step, entries, number, run_axes
from presk_rel.exec.torch.precision import rounding
from presk_rel.exec.torch.rows_arithmetic import filled
from presk_rel.exec.torch.rows_indices import log_softmax

# ------------------------------------------------------------------------------------------------------------ norms


def _width(x: Operand) -> tuple[int]:
    return (x.sizes[-1],)


def _statistics(step: Step, x: Operand) -> tuple[str, str]:
    """Means and reciprocal deviations along the last axis: those of a call that has been made, or of one made now."""
    epsilon = number(step.rational(1))
    made = step.known.get(f"norm {x.name} {epsilon}") or _norm(step, x, "None", "None")
    return step.line(f"{made}[1]"), step.line(f"{made}[2]")


def _norm(step: Step, x: Operand, scale: str, shift: str) -> str:
    epsilon = number(step.rational(1))
    made = step.line(f"torch.native_layer_norm({x.name}, {_width(x)}, {scale}, {shift}, {epsilon})")
    step.known.setdefault(f"norm {x.name} {epsilon}", made)
    return made


def row_standardize(step: Step) -> str | Operand:
    if 0 in step.sizes:
        return filled(step, Fraction(0))
    return _norm(step, step.args[0], "None", "None") + "[0]"


def row_layer_norm(step: Step) -> str | Operand:
    x, scale, shift = step.args
    if 0 in step.sizes:
        return filled(step, Fraction(0))
    return f"{_norm(step, x, scale.name, shift.name)}[0]"


def row_standardize_vjp(step: Step) -> str | Operand:
    ct, x = step.args
    if 0 in x.sizes:
        return filled(step, Fraction(0))
    mean, reciprocal = _statistics(step, x)
    given = f"{ct.name}, {x.name}, {_width(x)}, {mean}, {reciprocal}, None, None, (True, False, False)"
    return f"torch.ops.aten.native_layer_norm_backward({given})[0]"


def row_layer_norm_vjp(step: Step) -> str | Operand:
    """The adjoint in x, or in the scale; the call also sums the cotangent, which is the adjoint in the shift."""
    ct, x, scale = step.args
    if 0 in x.sizes:
        return filled(step, Fraction(0))
    mean, reciprocal = _statistics(step, x)
    given = f"{ct.name}, {x.name}, {_width(x)}, {mean}, {reciprocal}, {scale.name}, {scale.name}, (True, True, True)"
    made = step.line(f"torch.ops.aten.native_layer_norm_backward({given})")
    shift = step.line(f"{made}[2]")
    step.known.setdefault(f"torch.sum({ct.name}, {tuple(range(len(ct.sizes) - 1))})", shift)
    return f"{made}[{0 if step.op == 'layer_norm_vjp' else 1}]"


# -------------------------------------------------------------------------------------------------------- attention

_PRODUCTS = frozenset({"linear", "dot", "dot_vjp_l"})
"""Their results lie in row-major order from where memory begins, or as far from it as others of their size."""


def _options(step: Step) -> tuple[bool, str]:
    """Whether it is causal, and its scale."""
    c = step.args[-2] if step.op.endswith("_masked") else step.args[-1]
    if c.scalar is None or c.scalar == 0:
        raise PreskBug("torch", f"{step.op}: the scale is no number that is known")
    return step.op.endswith("_masked"), number(1 / c.scalar)


def _key(step: Step, q: Operand, k: Operand) -> str:
    return f"attention {q.name} {k.name} {_options(step)}"


def _operand(step: Step, x: Operand) -> str:
    """An operand as the call takes it; `exec.torch.attention` says why."""
    if step.types.attention == "cpu":
        return x.name
    name = step.line(rounding(x.name, step.types)) if FUSED[step.types.attention].narrow else x.name
    heads = x.made if x.kind == INTERLEAVED else None
    source = heads.args[0].made if heads is not None else None
    if source is not None and source.op in _PRODUCTS:
        return name
    return step.line(f"torch.clone({name}, memory_format=torch.contiguous_format)")


def _heads(step: Step, text: str) -> Operand:
    """A result of the call."""
    if FUSED[step.types.attention].narrow:
        text = f"{step.line(text)}.to(dtype)"
    return Operand(step.line(text), step.type, run_axes(step.type, step.env), kind=INTERLEAVED)


def row_attention(step: Step) -> Operand:
    q, k, v = step.args[:3]
    if 0 in step.sizes or 0 in q.sizes:
        return _zeros(step)
    given = ", ".join(_operand(step, x) for x in (q, k, v))
    made = step.line(FUSED[step.types.attention].forward(given, _options(step)))
    step.known[_key(step, q, k)] = made
    step.known[_key(step, q, k) + " operands"] = given
    return _heads(step, f"{made}[0]")


def _zeros(step: Step) -> Operand:
    name = step.line(f"torch.zeros({step.sizes}, dtype=dtype, device=device)")
    return Operand(name, step.type, run_axes(step.type, step.env))


def row_attention_vjp(step: Step) -> Operand:
    """The adjoint in q, k or v, of one call on what the forward call kept."""
    ct, q, k = step.args[:3]
    if 0 in step.sizes or 0 in q.sizes:
        return _zeros(step)
    key = _key(step, q, k)
    given = f"{_operand(step, ct)}, {step.known[f'{key} operands']}"
    lengths = (q.sizes[-2], k.sizes[-2])
    adjoint = FUSED[step.types.attention].backward(given, step.known[key], lengths, _options(step))
    return _heads(step, f"{step.line(adjoint)}[{'qkv'.index(step.op.removesuffix('_masked')[-1])}]")


# ------------------------------------------------------------------------------------------------------------- gelu


def row_gelu(step: Step) -> str:
    (x,) = step.args
    return f"torch.mul({x.name}, {_normal(step, x)})" if step.machine else f"torch.nn.functional.gelu({x.name})"


def row_gelu_vjp(step: Step) -> str:
    ct, x = step.args
    if not step.machine:
        return f"torch.ops.aten.gelu_backward({ct.name}, {x.name})"
    density = f"torch.mul(torch.exp(torch.mul(torch.mul({x.name}, {x.name}), -0.5)), 0.3989422804014327)"
    return f"torch.mul({ct.name}, torch.add({_normal(step, x)}, torch.mul({x.name}, {density})))"


def _normal(step: Step, x: Operand) -> str:
    """Φ(x), which gelu and its adjoint share. A compiler would rather compute it twice than keep it, and erf takes as
    long as all the rest: what `as_strided` looks at has to be in memory."""
    value = step.line(f"torch.mul(torch.add(torch.erf(torch.mul({x.name}, 0.7071067811865476)), 1.0), 0.5)")
    strides = tuple(prod(x.sizes[i + 1 :]) for i in range(len(x.sizes)))
    return step.line(f"torch.as_strided({value}, {x.sizes}, {strides})")


# ------------------------------------------------------------------------------------------------- products and losses


def row_linear(step: Step) -> str:
    x, w, bias = step.args
    if 0 in step.sizes:
        return f"torch.zeros({step.sizes}, dtype=dtype, device=device)"
    rows = (entries(x.sizes[:-1]), x.sizes[-1])
    sizes = (1, *rows, w.sizes[-1])
    left, right = step.products.operands(sizes, x.name, w.name)
    if len(x.sizes) == 2:
        return step.products.added(sizes, bias.name, left, right)
    return f"{step.products.added(sizes, bias.name, f'{left}.reshape({rows})', right)}.reshape({step.sizes})"


def row_mse(step: Step) -> str:
    x, y = step.args
    return f"torch.nn.functional.mse_loss({x.name}, {y.name})"


def row_mse_vjp(step: Step) -> str:
    ct, x, y = step.args[:3]
    return f"torch.ops.aten.mse_loss_backward({ct.name}, {x.name}, {y.name}, 1)"


def row_softmax_vjp(step: Step) -> str:
    ct, y = step.args
    return f"torch.ops.aten._softmax_backward_data({ct.name}, {y.name}, {step.axis(1, step.attrs[0])}, dtype)"


def row_log_softmax(step: Step) -> str:
    (x,) = step.args
    return log_softmax(x.name, step.axis(0, step.attrs[0]) - len(x.sizes))


def row_log_softmax_vjp(step: Step) -> str:
    ct, y = step.args
    axis = step.axis(1, step.attrs[0]) - len(y.sizes)
    return f"torch.ops.aten._log_softmax_backward_data({ct.name}, {y.name}, {axis}, dtype)"


def row_logsumexp(step: Step) -> str:
    return f"torch.logsumexp({step.args[0].name}, {step.axis(0, step.attrs[0])})"
