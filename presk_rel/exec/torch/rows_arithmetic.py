"""Rows of arithmetic: entry by entry, contractions, reductions and their adjoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from presk_rel.exec.torch.contract import Factor, contraction
from presk_rel.exec.torch.operand import Operand, Row, Step, aligned, entries, number, positions, run_axes

MAX_INT = 2**53
"""Exponents from here on are passed as doubles; torch takes no larger integers."""

_EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


def row_pair(step: Step) -> str | Operand:
    """`add`, `sub`, `mul`, `div`."""
    left, right = step.args
    sizes, shape = step.sizes, step.result_shape
    texts = [aligned(a, shape, sizes) for a in step.args]
    a, b = left.scalar, right.scalar
    if a is not None and b is not None and not (step.op == "div" and b == 0):
        return filled(step, _EXACT[step.op](a, b))
    if b is not None and left.sizes == sizes and not (step.op == "div" and b == 0):
        return _by_number(step, left, texts[0], b)
    if a is not None and right.sizes == sizes:
        return _number_by(step, right, texts[1], a, left.name)
    return f"torch.{step.op}({texts[0]}, {texts[1]})"


def _by_number(step: Step, x: Operand, text: str, c: Fraction) -> str | Operand:
    if step.op in ("mul", "div") and x.name == text:
        return _multiple(step, x, c if step.op == "mul" else 1 / c)
    return f"torch.{step.op}({text}, {number(c)})"


def _number_by(step: Step, x: Operand, text: str, c: Fraction, name: str) -> str | Operand:
    match step.op:
        case "mul" if x.name == text:
            return _multiple(step, x, c)
        case "mul" | "add":
            return f"torch.{step.op}({text}, {number(c)})"
        case "sub":
            return f"torch.rsub({text}, {number(c)})"
        case _:
            return f"torch.div({name}, {text})"


def _multiple(step: Step, x: Operand, c: Fraction) -> Operand:
    """c·x; of a multiple, one multiplication instead of two; once x, where dimensions make c one (a mean of one)."""
    base, factor = x.scale or (x.name, Fraction(1))
    whole = factor * c
    if whole == 1:
        name = base
    elif whole.denominator != 1 and whole.numerator in (1, -1) and whole.denominator < MAX_INT:
        name = step.line(f"torch.div({base}, {number(Fraction(whole.denominator * whole.numerator))})")
    else:
        name = step.line(f"torch.mul({base}, {number(whole)})")
    return Operand(name, step.type, run_axes(step.type, step.env), scale=(base, whole))


def filled(step: Step, value: Fraction) -> Operand:
    """A tensor whose entries are all `value`."""
    sizes = step.sizes
    text = f"torch.full({sizes}, {number(value)}, dtype=dtype, device=device)"
    if not sizes:
        text = f"torch.scalar_tensor({number(value)}, dtype=dtype, device=device)"
    return Operand(step.line(text), step.type, run_axes(step.type, step.env), scalar=value)


def row_filled(value: int) -> Row:
    return lambda step: filled(step, Fraction(value))


def row_const(step: Step) -> Operand:
    return filled(step, step.rational(0))


def row_pi(step: Step) -> Operand:
    return filled(step, Fraction(math.pi))


def row_extremum(step: Step) -> str:
    """A tie gives the second operand, which is the same number."""
    left, right = (aligned(a, step.result_shape, step.sizes) for a in step.args)
    return f"torch.{'maximum' if step.op == 'max' else 'minimum'}({left}, {right})"


def row_compare(step: Step) -> str:
    left, right = (aligned(a, step.result_shape, step.sizes) for a in step.args)
    scalar = step.args[1].scalar
    if scalar is not None and step.args[0].sizes == step.sizes:
        right = number(scalar)
    return f"torch.{step.op}({left}, {right})"


_KNOWN: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "neg": lambda x: -x,
}


def row_unary(text: str) -> Row:
    """A function of one tensor, `{0}`."""

    def row(step: Step) -> str | Operand:
        known, function = step.args[0].scalar, _KNOWN.get(step.op)
        if known is not None and function is not None:
            value = _value(function, known)
            return text.format(step.args[0].name) if value is None else filled(step, value)
        return text.format(step.args[0].name)

    return row


def _value(function: Callable[[float], float], known: Fraction) -> Fraction | None:
    try:
        return Fraction(function(float(known)))
    except (OverflowError, ValueError):
        return None


def row_call(text: str) -> Row:
    """One call on the operands, `{0}`, `{1}`, …, which line up as they are."""

    def row(step: Step) -> str:
        return text.format(*(a.name for a in step.args))

    return row


def row_pow(step: Step) -> str | Operand:
    (x,), exponent = step.args, step.int(0)
    if x.scalar is not None and exponent < 64:
        return filled(step, x.scalar**exponent)
    if exponent == 2:
        return f"torch.mul({x.name}, {x.name})"
    return f"torch.pow({x.name}, {exponent if exponent < MAX_INT else number(Fraction(exponent))})"


# ---------------------------------------------------------------------------------------------------- reductions


def row_reduce(step: Step) -> str:
    axis = step.axis_or_none(0)
    return f"torch.{step.op}({step.args[0].name}{'' if axis is None else f', {axis}'})"


def _along(step: Step) -> str:
    """The first operand viewed along the second, with the axis that a reduction took put back at length one."""
    axis = step.axis_or_none(1)
    x, t = step.args
    return f"{x.name}.unsqueeze({axis})" if axis is not None else aligned(x, t.shape, t.sizes)


def _repeated(step: Step, text: str, divisor: int) -> Operand:
    x, t = step.args
    known = None if x.scalar is None or not divisor else x.scalar / divisor
    name = step.line(f"{text}.expand({t.sizes})")
    return Operand(name, step.type, run_axes(step.type, step.env), scalar=known)


def row_broadcast_like(step: Step) -> Operand:
    return _repeated(step, _along(step), 1)


def row_mean_vjp(step: Step) -> Operand:
    t = step.args[1]
    axis = step.axis_or_none(1)
    count = entries(t.sizes) if axis is None else t.sizes[axis]
    return _repeated(step, step.line(f"torch.div({_along(step)}, {count})"), count)


def row_sum_to(step: Step) -> str:
    x, t = step.args
    where = positions(t, x.shape, x.sizes)
    summed = tuple(i for i in range(len(x.sizes)) if i not in where)
    text = f"torch.sum({x.name}, {summed})" if summed else x.name
    order = tuple(sorted(range(len(where)), key=lambda k: where[k]))
    back = tuple(order.index(k) for k in range(len(where)))
    return text if back == tuple(range(len(where))) else f"{text}.permute({back})"


# --------------------------------------------------------------------------------------------------- contractions


def row_dot(step: Step) -> str:
    x, w = step.args
    lead, inner = range(len(x.sizes) - 1), -1
    right = tuple(range(100, 99 + len(w.sizes)))
    return contraction(
        (Factor(x.name, x.sizes, (*lead, inner)), Factor(w.name, w.sizes, (inner, *right))),
        (*lead, *right),
        step.products,
    )


def row_dot_vjp_l(step: Step) -> str:
    ct, w = step.args
    lead, inner = range(len(ct.sizes) - len(w.sizes) + 1), -1
    right = tuple(range(100, 99 + len(w.sizes)))
    return contraction(
        (Factor(ct.name, ct.sizes, (*lead, *right)), Factor(w.name, w.sizes, (inner, *right))),
        (*lead, inner),
        step.products,
    )


def row_dot_vjp_r(step: Step) -> str:
    x, ct = step.args
    lead, inner = range(len(x.sizes) - 1), -1
    right = tuple(range(100, 101 + len(ct.sizes) - len(x.sizes)))
    return contraction(
        (Factor(x.name, x.sizes, (*lead, inner)), Factor(ct.name, ct.sizes, (*lead, *right))),
        (inner, *right),
        step.products,
    )


def row_sum_squares(step: Step) -> str:
    """Of one tensor; `structure` adds those of a tree."""
    flat = step.args[0].name if len(step.args[0].sizes) == 1 else f"{step.args[0].name}.reshape(-1)"
    return f"torch.dot({flat}, {flat})"


def renamed(x: Operand, step: Step) -> Operand:
    """The same tensor with the binding's type."""
    return replace(x, type=step.type, axes=run_axes(step.type, step.env), made=None)
