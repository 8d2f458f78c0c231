"""Rows of arithmetic: everything about axes is decided on the static types; the numbers are the kernel's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper, Shape, TupleOf
from presk_rel.exec.exact.kernel import repeat, undefined
from presk_rel.exec.exact.step import Step, index_of
from presk_rel.exec.shapes import alignment, axis_index, fail
from presk_rel.exec.values import (
    Array,
    HyperValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    count,
    leaves,
    shape_of,
)

MAX_HYPER_BITS = 1_000_000


def row_unary(step: Step) -> Value:
    match step.args[0]:
        case HyperValue(kind, q) if step.op == "neg":
            return HyperValue("int" if kind == "nat" else kind, -q)
        case value:
            return _each(value, lambda x: step.kernel.unary(step.op, x, step.site), step)


def row_pow(step: Step) -> Value:
    n = index_of(step)
    match step.args[0]:
        case HyperValue(kind, q):
            if _bits(q) * n > MAX_HYPER_BITS and abs(q) != 1:
                fail("E7006", f"a hyperparameter to the power {n}, in {step.site}, is too large", step.site.span)
            return HyperValue(kind, q**n)
        case value:
            return _each(value, lambda x: step.kernel.power(x, n, step.site), step)


def _each(value: Value, f: Callable[[Array], Array], step: Step) -> Value:
    """`f` at a tensor, or at every tensor of a tree or tuple; what is no real stays."""
    match value:
        case Tensor(run, x):
            return Tensor(run, f(x))
        case TreeValue(fields):
            return TreeValue({n: _each(v, f, step) for n, v in fields.items()})
        case TupleValue(items):
            return TupleValue(tuple(_each(v, f, step) for v in items))
        case _:
            raise PreskBug("exec", f"{step.op} of a {type(value).__name__} in {step.where}")


def row_sum_squares(step: Step) -> Value:
    """Over every tensor of a tree, tuple, or the one."""
    sum_of: Array = step.kernel.rational(Fraction(0))
    for _, leaf in leaves(step.args[0]):
        if isinstance(leaf, Tensor):
            squares = step.kernel.power(leaf.data, 2, step.site)
            sum_of = step.kernel.binary(
                "add", sum_of, step.kernel.total(squares, tuple(range(squares.ndim))), step.site
            )
    return step.result(sum_of)


def row_binary(step: Step) -> Value:
    match step.args:
        case (HyperValue(_, a), HyperValue(_, b)):
            return _hyper(step, a, b)
        case (Tensor(_, a), Tensor(_, b)):
            return step.result(_tensors(step, a, b))
        case (HyperValue() | Tensor(), HyperValue() | Tensor()):
            raise PreskBug("exec", f"{step.op} of a hyperparameter and a tensor in {step.where}")
        case _:
            return _compound(step)


def _hyper(step: Step, a: Fraction, b: Fraction) -> Value:
    """Of one hyperparameter type; the quotient of naturals or integers is the integer quotient, towards zero."""
    if not isinstance(step.type, Hyper):
        raise PreskBug("exec", f"{step.op} of hyperparameters has type {step.type} in {step.where}")
    if step.op == "div" and b == 0:
        undefined(step.site, "division by zero")
    match step.op:
        case "add":
            q = a + b
        case "sub":
            q = a - b
        case "mul":
            q = a * b
        case "max":
            q = max(a, b)
        case "min":
            q = min(a, b)
        case _:
            q = a / b
    if _bits(q) > MAX_HYPER_BITS:
        fail("E7006", f"a hyperparameter of {_bits(q)} bits, in {step.site}, is too large", step.site.span)
    whole = step.type.kind in ("nat", "int")
    return HyperValue(step.type.kind, Fraction(int(q)) if whole else q)


def _bits(q: Fraction) -> int:
    return max(q.numerator.bit_length(), q.denominator.bit_length())


def _tensors(step: Step, a: Array, b: Array) -> Array:
    if a is b and step.op in ("sub", "max", "min"):
        return repeat(step.kernel.rational(Fraction(0)), a.shape) if step.op == "sub" else a
    return step.kernel.binary(step.op, *aligned(step), step.site)


def aligned(step: Step) -> tuple[Array, Array]:
    """The two operands as numpy broadcasts them. The larger one gives the shape; of two equally large ones the first
    (`elab.broadcast.broadcast`)."""
    a, b, sa, sb = step.data(0), step.data(1), step.shape(0), step.shape(1)
    if (sa.prefix is not None, len(sa.axes)) >= (sb.prefix is not None, len(sb.axes)):
        return a, spread(step, b, sb, sa)
    return spread(step, a, sa, sb), b


def spread(step: Step, x: Array, small: Shape, large: Shape) -> Array:
    """`x`, of static shape `small`, with its axes where `large` has them and length 1 elsewhere; no copy."""
    where = alignment(small, large, step.where)
    lead, ahead = step.env.rank(small), step.env.rank(large)
    order = sorted(range(len(where)), key=lambda i: where[i])
    x = x.transpose((*range(lead), *(lead + i for i in order)))
    front: list[Any] = [slice(None)] * lead if lead else [None] * ahead
    rest = [slice(None) if i in where else None for i in range(len(large.axes))]
    return x[(*front, *rest, ...)]


def _compound(step: Step) -> Value:
    """`add`, `sub` of trees and tuples leaf by leaf; `mul`, `div` of one by a scalar. A unit stays a unit."""
    if any(isinstance(a, TupleValue) for a in step.args):
        n = max(len(a.items) for a in step.args if isinstance(a, TupleValue))
        return TupleValue(tuple(row_binary(_item(step, i)) for i in range(n)))
    return _trees(step, step.args)


def _item(step: Step, i: int) -> Step:
    """The step at component `i` of its tuples; a scalar factor is shared."""
    args = tuple(a.items[i] if isinstance(a, TupleValue) else a for a in step.args)
    types = tuple(t.items[i] if isinstance(t, TupleOf) else t for t in step.types)
    return replace(
        step, args=args, types=types, type=step.type.items[i] if isinstance(step.type, TupleOf) else step.type
    )


def _trees(step: Step, args: tuple[Value, ...]) -> Value:
    match args:
        case (Tensor(ra, a), Tensor(rb, b)):
            return Tensor(ra if len(ra) >= len(rb) else rb, step.kernel.binary(step.op, a, b, step.site))
        case (TreeValue(xs), TreeValue(ys)):
            return TreeValue({n: _trees(step, (x, ys[n])) for n, x in xs.items()})
        case (TreeValue(xs), Tensor() as scalar):
            return TreeValue({n: _trees(step, (x, scalar)) for n, x in xs.items()})
        case (Tensor() as scalar, TreeValue(ys)):
            return TreeValue({n: _trees(step, (scalar, y)) for n, y in ys.items()})
        case _:
            raise PreskBug("exec", f"{step.op} of {[type(a).__name__ for a in args]} in {step.where}")


# ------------------------------------------------------------------------------------------ contractions, reductions


def _flat(x: Array, left: int) -> Array:
    """As a matrix: the first `left` axes against the others."""
    rows = int(np.prod(x.shape[:left], dtype=object))
    columns = int(np.prod(x.shape[left:], dtype=object))
    return x.reshape(rows, columns)


def row_dot(step: Step) -> Value:
    x, w = step.data(0), step.data(1)
    product = step.kernel.matmul(_flat(x, x.ndim - 1), _flat(w, 1))
    return step.result(product.reshape((*x.shape[:-1], *w.shape[1:])))


def row_dot_vjp_l(step: Step) -> Value:
    ct, w = step.data(0), step.data(1)
    kept = ct.ndim - (w.ndim - 1)
    product = step.kernel.matmul(_flat(ct, kept), _flat(w, 1).T)
    return step.result(product.reshape((*ct.shape[:kept], w.shape[0])))


def row_dot_vjp_r(step: Step) -> Value:
    x, ct = step.data(0), step.data(1)
    product = step.kernel.matmul(_flat(x, x.ndim - 1).T, _flat(ct, x.ndim - 1))
    return step.result(product.reshape((x.shape[-1], *ct.shape[x.ndim - 1 :])))


def _over(step: Step, operand: int) -> tuple[int, ...]:
    """The axes, at run time, that `mean axis a` and its kin reduce: one, or all."""
    shape = step.shape(operand)
    lead = step.env.rank(shape)
    if not step.attrs:
        return tuple(range(lead + len(shape.axes)))
    return (lead + axis_index(shape, str(step.attrs[0]), step.where),)


def row_sum(step: Step) -> Value:
    return step.result(step.kernel.total(step.data(0), _over(step, 0)))


def averaged(step: Step, operand: int) -> Array:
    """How many entries a mean is over, as a scalar; E7003 when there is none."""
    value = step.args[operand]
    run = value.axes if isinstance(value, Tensor) else ()
    n = count(tuple(run[i] for i in _over(step, operand)))
    if n == 0:
        fail("E7003", f"a mean over no element in {step.site}", step.site.span)
    return step.kernel.rational(Fraction(n))


def row_mean(step: Step) -> Value:
    total = step.kernel.total(step.data(0), _over(step, 0))
    return step.result(step.kernel.binary("div", total, averaged(step, 0), step.site))


def row_mean_vjp(step: Step) -> Value:
    part = step.kernel.binary("div", step.data(0), averaged(step, 1), step.site)
    return step.result(_expand(step, part, _over(step, 1)))


def _expand(step: Step, x: Array, gone: tuple[int, ...]) -> Array:
    """`x` repeated along the axes `gone` of operand 1."""
    target = step.args[1]
    run = target.axes if isinstance(target, Tensor) else ()
    index = tuple(None if i in gone else slice(None) for i in range(len(run)))
    return repeat(x[(*index, ...)], shape_of(run))


def row_broadcast_like(step: Step) -> Value:
    if step.attrs:
        return step.result(_expand(step, step.data(0), _over(step, 1)))
    target = step.args[1]
    run = target.axes if isinstance(target, Tensor) else ()
    return step.result(repeat(spread(step, step.data(0), step.shape(0), step.shape(1)), shape_of(run)))


def row_sum_to(step: Step) -> Value:
    x, large, small = step.data(0), step.shape(0), step.shape(1)
    where = alignment(small, large, step.where)
    ahead, lead = step.env.rank(large), step.env.rank(small)
    kept = (*range(lead), *(ahead + i for i in where))
    total = step.kernel.total(x, tuple(i for i in range(x.ndim) if i not in kept))
    order = sorted(kept)
    return step.result(total.transpose(tuple(order.index(i) for i in kept)))
