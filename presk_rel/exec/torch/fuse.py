"""Fused torch operations, recovered from pairs of primitives of the extracted program.

One row per pattern. A pattern looks at the operation about to be generated and through its operands (`Operand.made`);
what it replaces goes where nothing else reads it. Where something does, the fused operation still costs no more than
the plain one, and whether a value is kept for something else (`--remat`) then changes no bit of the result. Only
`product_sum`, which would contract twice, looks through what nothing else reads. What libraries have as one operation
is no pattern here but a composite primitive, found by rules (`egraph.recognise`). Every pattern has a test.
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


def product_sum(step: Step) -> str | None:
    """x · w + b, and ct · wᵀ + b, with b of the shape of the sum: addmm."""
    if 0 in step.sizes or len(step.sizes) < 2 or step.machine:
        return None
    for op in ("dot", "dot_vjp_l"):
        for product, made, rest in _sides(step, op):
            x, w = made.args
            if not made.alone or len(w.sizes) != 2 or product.sizes != step.sizes or rest.scalar is not None:
                continue
            if rest.sizes != step.sizes or _order(rest, step):
                continue
            return _addmm(rest, x, w, step, turned=op != "dot")
    return None


def _addmm(rest: Operand, x: Operand, w: Operand, step: Step, *, turned: bool) -> str:
    rows = entries(x.sizes[:-1])
    sizes = (1, rows, x.sizes[-1], rest.sizes[-1])
    left, matrix = step.products.operands(sizes, x.name, w.name)
    matrix = f"{matrix}.mT" if turned else matrix
    if len(x.sizes) == 2:
        return step.products.added(sizes, rest.name, left, matrix)
    bias = f"{rest.name}.reshape({(rows, rest.sizes[-1])})"
    return f"{step.products.added(sizes, bias, f'{left}.reshape({(rows, x.sizes[-1])})', matrix)}.reshape({step.sizes})"


def scaled_sum(step: Step) -> str | None:
    """x + c·y, x - c·y with a constant c. Not where Inductor reads it (torch 2.13), which makes `addmm(x, a, b)` of
    `add(x, mm(a, b), alpha=c)`: its patterns look at the arguments that they name, and not at others."""
    if step.compiled:
        return None
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


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "add": (product_sum, scaled_sum, multiply_add, divide_add),
    "sub": (scaled_sum, multiply_add, divide_add),
}


def fused(step: Step) -> str | None:
    """The fused operation that computes this step, if a pattern finds one."""
    for pattern in PATTERNS.get(step.op, ()):
        text = pattern(step)
        if text is not None:
            return text
    return None
