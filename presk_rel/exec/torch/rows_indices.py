"""Rows of the primitives on index tensors, masks and keys."""

from __future__ import annotations

from presk_rel.elab.ty import Hyper
from presk_rel.exec.torch.operand import Operand, Step, entries, number, run_axes
from presk_rel.exec.torch.rows_arithmetic import filled, renamed


def row_real(step: Step) -> str | Operand:
    (n,) = step.args
    if not isinstance(n.type, Hyper):
        return f"{n.name}.to(dtype)"
    if n.scalar is not None:
        return filled(step, n.scalar)
    return f"torch.scalar_tensor(support.double({n.name}), dtype=dtype, device=device)"


def row_embed(step: Step) -> str | Operand:
    """Rows of a table; all of them, in order, where the indices are `positions`."""
    w, i = step.args
    if i.kind == "positions":
        return renamed(w, step)
    return f"torch.embedding({w.name}, {i.name})"


def row_embed_vjp(step: Step) -> str | Operand:
    ct, i, w = step.args
    if i.kind == "positions":
        return renamed(ct, step)
    return f"torch.ops.aten.embedding_dense_backward({ct.name}, {i.name}, {w.sizes[0]}, -1, False)"


def row_one_hot(step: Step) -> str:
    classes = step.line(f"torch.arange({step.sizes[-1]}, device=device)")
    return f"torch.eq({step.args[0].name}.unsqueeze(-1), {classes}).to(dtype)"


def log_softmax(name: str, axis: int) -> str:
    """Written alike wherever it is, so that it is computed once; `axis` counts from the end."""
    return f"torch.log_softmax({name}, {axis})"


def row_cross_entropy(step: Step) -> str:
    logits, y = step.args
    logs = step.line(log_softmax(logits.name, -1))
    flat = f"{logs}.reshape({(entries(y.sizes), logits.sizes[-1])}), {y.name}.reshape(-1)"
    picked = step.line(f"torch.ops.aten.nll_loss_forward({flat}, None, 0, -100)")
    return f"{picked}[0].reshape({y.sizes})"


def row_cross_entropy_vjp(step: Step) -> str:
    """(softmax(l) - one_hot(y))·ct, without the one-hot tensor."""
    ct, logits, y = step.args
    if log_softmax(logits.name, -1) in step.known:
        return _of_logs(step, step.known[log_softmax(logits.name, -1)])
    p = step.line(f"torch.softmax({logits.name}, -1)")
    minus = step.line(f"torch.full({(*y.sizes, 1)}, -1.0, dtype=dtype, device=device)")
    difference = step.line(f"torch.scatter_add({p}, -1, {y.name}.unsqueeze(-1), {minus})")
    if ct.scalar is not None:
        return f"torch.mul({difference}, {number(ct.scalar)})"
    return f"torch.mul({difference}, {ct.name}.unsqueeze(-1))"


def _of_logs(step: Step, logs: str) -> str:
    """From the logarithms that the value has computed."""
    ct, logits, y = step.args
    rows = entries(y.sizes)
    given = ct.name
    if ct.scalar is not None:
        given = step.line(f"torch.full({(rows,)}, {number(ct.scalar)}, dtype=dtype, device=device)")
    flat = f"{given}.reshape(-1), {logs}.reshape({(rows, logits.sizes[-1])}), {y.name}.reshape(-1)"
    unused = step.line("torch.zeros((), dtype=dtype, device=device)")
    picked = step.line(f"torch.ops.aten.nll_loss_backward({flat}, None, 0, -100, {unused})")
    return f"torch.ops.aten._log_softmax_backward_data({picked}.reshape({logits.sizes}), {logs}, -1, dtype)"


def row_argmax(step: Step) -> str:
    """torch gives the first of equal entries."""
    return f"torch.argmax({step.args[0].name}, -1)"


def row_positions(step: Step) -> Operand:
    name = step.line(f"torch.arange({step.sizes[0]}, device=device)")
    return Operand(name, step.type, run_axes(step.type, step.env), kind="positions")


def row_causal_mask(step: Step) -> Operand:
    name = step.line(f"torch.tril(torch.ones({step.sizes}, dtype=torch.bool, device=device))")
    return Operand(name, step.type, run_axes(step.type, step.env), kind="causal")


# ------------------------------------------------------------------------------------------------------------- draws


def row_normal(step: Step) -> str:
    return f"support.normal({step.args[0].name}, {step.sizes}, {number(step.rational(0))}, dtype, device)"


def row_xavier_uniform(step: Step) -> str:
    return f"support.xavier_uniform({step.args[0].name}, {step.sizes}, dtype, device)"


def row_dropout_mask(step: Step) -> str:
    rate = step.rational(0)
    pair = f"Fraction({rate.numerator}, {rate.denominator})"
    return f"support.dropout_mask({step.args[0].name}, {step.sizes}, {pair}, dtype, device)"


def row_sample(step: Step) -> str:
    key, logits = step.args
    draws = step.line(f"support.uniform({key.name}, {(*step.sizes, 1)}, device)")
    return f"support.sample({draws}, {logits.name})"
