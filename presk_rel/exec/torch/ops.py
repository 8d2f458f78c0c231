"""One row per primitive: the torch expression that computes it.

A row gets the operands as names of generated code with their concrete types and returns an expression. Shapes are
static: every
dimension is a number here, so alignments, axis positions and counts are baked in. All names in an expression are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from presk_rel.core.ir import Attr
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Hyper, Real, Shape, Type
from presk_rel.smt.linear import Linear


@dataclass(frozen=True, slots=True)
class Operand:
    """A generated name and its type, all of whose lengths are numbers. `scalar` is the exact value of a constant, which
    an operation with a tensor takes as a Python number."""

    name: str
    type: Type
    scalar: Fraction | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        return sizes(shape_of(self.type))


MAX_INT = 2**53
"""Exponents from here on are passed as doubles; torch takes no larger integers."""

Row = Callable[[tuple[Attr, ...], tuple[Operand, ...], Type], str]


def shape_of(ty: Type) -> Shape:
    match ty:
        case Real(shape):
            return shape
        case Hyper():
            return Shape(None, ())
        case _:
            raise PreskBug("torch", f"a tensor was expected, not {ty}")


def sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(int(axis.length.const) for axis in shape.axes)


def number(value: Fraction) -> str:
    """A Python literal of the nearest double; a magnitude beyond the doubles is an infinity."""
    try:
        return repr(float(value))
    except OverflowError:
        return 'float("inf")' if value > 0 else 'float("-inf")'


def _same(a: Linear, b: Linear) -> bool:
    return a == b


def _aligned(x: Operand, target: Shape) -> str:
    """x viewed so that torch's trailing broadcasting against `target` is Presk's alignment."""
    shape = shape_of(x.type)
    where = align(shape, target, _same)
    if where is None:
        raise PreskBug("torch", f"{x.type} does not broadcast into {target}")
    rank = len(target.axes)
    if where == tuple(range(rank - len(where), rank)):
        return x.name
    order = sorted(range(len(where)), key=lambda k: where[k])
    text = x.name if order == list(range(len(where))) else f"{x.name}.permute({tuple(order)})"
    full = [1] * rank
    for k, i in enumerate(where):
        full[i] = x.sizes[k]
    return f"{text}.reshape({tuple(full)})"


def _pair(function: str) -> Row:
    def row(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
        left, right = args
        target = shape_of(result)
        texts = [_aligned(a, target) if a.scalar is None else number(a.scalar) for a in args]
        if left.scalar is not None and right.scalar is not None:
            texts[0] = left.name
        if left.scalar is not None and right.scalar is None:
            return _scalar_first(function, left, texts[1])
        return f"torch.{function}({texts[0]}, {texts[1]})"

    return row


def _scalar_first(function: str, left: Operand, right: str) -> str:
    if function in ("add", "mul"):
        return f"torch.{function}({right}, {number(left.scalar or Fraction(0))})"
    return f"torch.{function}({left.name}, {right})"


def _unary(text: str) -> Row:
    return lambda attrs, args, result: text.format(args[0].name)


def _axis(attrs: tuple[Attr, ...], shape: Shape) -> int | None:
    if not attrs:
        return None
    return next(i for i, a in enumerate(shape.axes) if a.name == attrs[0])


def _reduce(function: str) -> Row:
    def row(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
        axis = _axis(attrs, shape_of(args[0].type))
        return f"torch.{function}({args[0].name}{'' if axis is None else f', {axis}'})"

    return row


def _along(x: Operand, t: Operand, attrs: tuple[Attr, ...]) -> str:
    """x viewed along t's shape, with the axis that a reduction took put back at length one."""
    axis = _axis(attrs, shape_of(t.type))
    return f"{x.name}.unsqueeze({axis})" if axis is not None else _aligned(x, shape_of(t.type))


def _broadcast_like(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    return f"{_along(args[0], args[1], attrs)}.expand({args[1].sizes})"


def _mean_vjp(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    ct, x = args
    axis = _axis(attrs, shape_of(x.type))
    count = prod(x.sizes) if axis is None else x.sizes[axis]
    return f"torch.div({_along(ct, x, attrs)}, {count}).expand({x.sizes})"


def _sum_to(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    x, t = args
    where = align(shape_of(t.type), shape_of(x.type), _same)
    if where is None:
        raise PreskBug("torch", f"{x.type} does not sum to {t.type}")
    summed = tuple(i for i in range(len(x.sizes)) if i not in where)
    text = f"torch.sum({x.name}, {summed})" if summed else x.name
    order = tuple(sorted(range(len(where)), key=lambda k: where[k]))
    back = tuple(order.index(k) for k in range(len(where)))
    return text if back == tuple(range(len(where))) else f"{text}.permute({back})"


def _dot(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    x, w = args
    if len(w.sizes) == 2 or (len(w.sizes) == 1 and len(x.sizes) >= 1):
        return f"torch.matmul({x.name}, {w.name})"
    return f"torch.tensordot({x.name}, {w.name}, 1)"


def _dot_vjp_l(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    ct, w = args
    match len(w.sizes):
        case 1:
            return f"torch.mul({ct.name}.unsqueeze(-1), {w.name})"
        case 2:
            return f"torch.matmul({ct.name}, {w.name}.mT)"
        case rank:
            lead = len(ct.sizes) - rank + 1
            return f"torch.tensordot({ct.name}, {w.name}, ({list(range(lead, len(ct.sizes)))}, {list(range(1, rank))}))"


def _dot_vjp_r(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    x, ct = args
    lead = len(x.sizes) - 1
    if lead == 0:
        inner = (x.sizes[0],) + (1,) * len(ct.sizes)
        return f"torch.mul({x.name}.reshape({inner}), {ct.name})"
    rows, columns = prod(x.sizes[:-1]), prod(ct.sizes[lead:])
    left = x.name if lead == 1 else f"{x.name}.reshape(({rows}, {x.sizes[-1]}))"
    right = ct.name if len(ct.sizes) == 2 and lead == 1 else f"{ct.name}.reshape(({rows}, {columns}))"
    text = f"torch.matmul({left}.mT, {right})"
    return text if len(ct.sizes) - lead == 1 else f"{text}.reshape({sizes(shape_of(result))})"


def _filled(value: str) -> Row:
    return lambda attrs, args, result: f"torch.full({sizes(shape_of(result))}, {value}, dtype=dtype, device=device)"


def _pow(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
    exponent = attrs[0]
    assert isinstance(exponent, int)
    if exponent == 2:
        return f"torch.mul({args[0].name}, {args[0].name})"
    return f"torch.pow({args[0].name}, {exponent if exponent < MAX_INT else number(Fraction(exponent))})"


def _draw(call: str) -> Row:
    """A draw on the host, as exact doubles, injected: the same numbers as the exact executor's."""

    def row(attrs: tuple[Attr, ...], args: tuple[Operand, ...], result: Type) -> str:
        shape = sizes(shape_of(result))
        std = attrs[0] if attrs else Fraction(1)
        assert isinstance(std, Fraction)
        drawn = call.format(key=args[0].name, n=prod(shape), shape=shape, std=number(std))
        return f"torch.from_numpy({drawn}).reshape({shape}).to(dtype=dtype, device=device)"

    return row


ROWS: dict[str, Row] = {
    "add": _pair("add"),
    "sub": _pair("sub"),
    "mul": _pair("mul"),
    "div": _pair("div"),
    "neg": _unary("torch.neg({0})"),
    "pow": _pow,
    "gelu": _unary("torch.nn.functional.gelu({0})"),
    "relu": _unary("torch.relu({0})"),
    "exp": _unary("torch.exp({0})"),
    "tanh": _unary("torch.tanh({0})"),
    "sqrt": _unary("torch.sqrt({0})"),
    "abs": _unary("torch.abs({0})"),
    "log": _unary("torch.log({0})"),
    "sigmoid": _unary("torch.sigmoid({0})"),
    "sin": _unary("torch.sin({0})"),
    "cos": _unary("torch.cos({0})"),
    "gelu'": _unary("torch.ops.aten.gelu_backward(torch.ones_like({0}), {0})"),
    "normal_pdf": _unary("torch.exp({0} * {0} * -0.5) * 0.3989422804014327"),
    "heaviside": _unary("torch.gt({0}, 0).to(dtype)"),
    "sign": _unary("torch.sign({0})"),
    "dot": _dot,
    "dot_vjp_l": _dot_vjp_l,
    "dot_vjp_r": _dot_vjp_r,
    "mean": _reduce("mean"),
    "sum": _reduce("sum"),
    "mean_vjp": _mean_vjp,
    "broadcast_like": _broadcast_like,
    "sum_to": _sum_to,
    "zeros_like": _filled("0.0"),
    "ones_like": _filled("1.0"),
    "zeros": _filled("0.0"),
    "ones": _filled("1.0"),
    "normal": _draw("keys.standard_normal({key}, {n}) * {std}"),
    "xavier_uniform": _draw("keys.xavier_uniform({key}, {shape})"),
}
"""Tensor primitives. `const`, `dim`, `real`, and the primitives on trees, tuples and keys are `exec.torch.emit`'s
own."""
