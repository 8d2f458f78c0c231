"""Fused torch operations, recovered from pairs of primitives of the extracted program.

One row per pattern. A pattern looks at the operation about to be generated and through its operands (`Operand.made`);
what it replaces goes where nothing else reads it. Where something does, the fused operation still costs no more than
the plain one, and whether a value is kept for something else (`--remat`) then changes no bit of the result. Only
`linear`, which would contract twice, looks through what nothing else reads. Every pattern has a test.
"""

from __future__ import annotations

from collections.abc import Callable

from presk_rel.exec.torch.operand import Made, Operand, Step, aligned, entries, number

Pattern = Callable[[Step], "str | None"]


def _sides(step: Step, op: str) -> list[tuple[Operand, Made, Operand]]:
    """The ways to see a binary operation as one on an operand made by `op`: the operand, how it was made, the other."""
    left, right = step.args
    pairs = ((left, right), (right, left))
    return [(x, x.made, other) for x, other in pairs if x.made is not None and x.made.op == op]


def linear(step: Step) -> str | None:
    """x · w + b: addmm."""
    for product, made, bias in _sides(step, "dot"):
        x, w = made.args
        if (
            not made.alone
            or len(w.sizes) != 2
            or product.sizes != step.sizes
            or len(bias.sizes) > 2
            or len(x.sizes) < 2
        ):
            continue
        if aligned(bias, step.result_shape, step.sizes) != bias.name or 0 in step.sizes:
            continue
        if len(x.sizes) == 2:
            return f"torch.addmm({bias.name}, {x.name}, {w.name})"
        if len(bias.sizes) == 1:
            rows = (entries(x.sizes[:-1]), x.sizes[-1])
            return f"torch.addmm({bias.name}, {x.name}.reshape({rows}), {w.name}).reshape({step.sizes})"
    return None


def gelu_backward(step: Step) -> str | None:
    """ct · gelu'(x)."""
    for derivative, made, ct in _sides(step, "gelu'"):
        if ct.sizes == derivative.sizes and ct.scalar is None:
            return f"torch.ops.aten.gelu_backward({ct.name}, {made.args[0].name})"
    return None


def threshold_backward(step: Step) -> str | None:
    """ct · [x > 0]."""
    for derivative, made, ct in _sides(step, "heaviside"):
        if ct.sizes == derivative.sizes and ct.scalar is None:
            return f"torch.ops.aten.threshold_backward({ct.name}, {made.args[0].name}, 0)"
    return None


def tanh_backward(step: Step) -> str | None:
    """ct · (1 - y²)."""
    for factor, made, ct in _sides(step, "sub"):
        one, square = made.args
        if one.scalar != 1 or square.made is None or square.made.op != "pow" or square.made.attrs != (2,):
            continue
        if ct.sizes == factor.sizes == square.sizes and ct.scalar is None:
            return f"torch.ops.aten.tanh_backward({ct.name}, {square.made.args[0].name})"
    return None


def sigmoid_backward(step: Step) -> str | None:
    """ct · (y · (1 - y))."""
    for factor, made, ct in _sides(step, "mul"):
        for y, rest in (made.args, made.args[::-1]):
            inner = rest.made
            if inner is None or inner.op != "sub" or inner.args[0].scalar != 1 or inner.args[1].name != y.name:
                continue
            if ct.sizes == factor.sizes == y.sizes and ct.scalar is None:
                return f"torch.ops.aten.sigmoid_backward({ct.name}, {y.name})"
    return None


def scaled_sum(step: Step) -> str | None:
    """x + c·y, x - c·y with a constant c."""
    x, y = step.args
    if step.op == "add" and y.scale is None:
        x, y = y, x
    if y.scale is None or y.made is None or x.sizes != step.sizes or y.sizes != step.sizes or x.scalar is not None:
        return None
    base, factor = y.scale
    if _order(x, step) or _order(y, step):
        return None
    return f"torch.{step.op}({x.name}, {base}, alpha={number(factor)})"


def _order(x: Operand, step: Step) -> bool:
    """Whether x has to be permuted to line up."""
    return aligned(x, step.result_shape, step.sizes) != x.name


def multiply_add(step: Step) -> str | None:
    """a + b·c, a - b·c: addcmul."""
    return _add_with(step, "mul", "addcmul")


def divide_add(step: Step) -> str | None:
    """a + b/c, a - b/c: addcdiv."""
    return _add_with(step, "div", "addcdiv")


def _add_with(step: Step, op: str, function: str) -> str | None:
    for term, made, rest in _sides(step, op):
        if step.op == "sub" and term is not step.args[1]:
            continue
        shape, sizes = term.shape, term.sizes
        if sizes != step.sizes or rest.scalar is not None or _order(term, step):
            continue
        if any(f.scalar is not None for f in made.args):
            continue
        b, c = (aligned(f, shape, sizes) for f in made.args)
        a = aligned(rest, step.result_shape, step.sizes)
        return f"torch.{function}({a}, {b}, {c}{', value=-1' if step.op == 'sub' else ''})"
    return None


def softmax_backward(step: Step) -> str | None:
    """y·ct - y·Σ y·ct and y·(ct - Σ y·ct) along one axis."""
    if step.op != "mul":
        return None
    for factor, made, y in _sides(step, "sub"):
        ct, spread = made.args
        axis = _summed_product(spread, ct, y)
        if axis is not None and factor.sizes == y.sizes == ct.sizes == step.sizes and ct.scalar is None:
            return f"torch.ops.aten._softmax_backward_data({ct.name}, {y.name}, {axis}, dtype)"
    return None


def _summed_product(spread: Operand, ct: Operand, y: Operand) -> int | None:
    """The axis along which `spread` repeats the sum of ct·y."""
    made = spread.made
    if made is None or made.op != "broadcast_like" or len(made.attrs) != 1:
        return None
    total = made.args[0].made
    if total is None or total.op != "sum" or total.attrs != made.attrs:
        return None
    product = total.args[0].made
    if product is None or product.op != "mul" or {a.name for a in product.args} != {ct.name, y.name}:
        return None
    names = [a.name for a in total.args[0].shape.axes]
    axis = str(total.attrs[0])
    return total.args[0].lead + names.index(axis) if axis in names else None


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "add": (linear, scaled_sum, multiply_add, divide_add),
    "sub": (scaled_sum, multiply_add, divide_add),
    "mul": (gelu_backward, threshold_backward, tanh_backward, sigmoid_backward, softmax_backward),
}


def fused(step: Step) -> str | None:
    """The fused operation that computes this step, if a pattern finds one."""
    for pattern in PATTERNS.get(step.op, ()):
        text = pattern(step)
        if text is not None:
            return text
    return None
