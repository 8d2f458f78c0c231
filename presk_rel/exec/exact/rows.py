"""The primitives of PSK-Core on exact values: one row each (semantics: `core.prims`). A row sees one `Step` and nothing
else; a primitive that has no row here is found by a test. Arithmetic is the kernel's; everything about axes is decided
on the static types, here, once for all kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from presk_rel.core.ir import Attr
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper, ModuleDef, Params, Real, Shape, TupleOf, Type, field_names, field_type
from presk_rel.exec import keys
from presk_rel.exec.exact.kernel import BINARY, ELEMENTWISE, Kernel, Site, boxed, repeat, undefined
from presk_rel.exec.shapes import Env, alignment, axes, axis_index, fail, length
from presk_rel.exec.values import (
    UNIT,
    Array,
    HostReals,
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    count,
    map_leaves,
    shape_of,
)
from presk_rel.smt.linear import Linear

Draws: TypeAlias = Callable[[str, bytes, tuple[int, ...], Fraction | None], HostReals]


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive about to be executed: its operands' values and static types, the binding's type, and where."""

    kernel: Kernel
    modules: dict[str, ModuleDef]
    env: Env
    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Value, ...]
    types: tuple[Type, ...]
    type: Type
    site: Site
    draws: Draws

    @property
    def where(self) -> str:
        return str(self.site)

    def data(self, i: int) -> Array:
        value = self.args[i]
        if not isinstance(value, Tensor):
            raise PreskBug("exec", f"operand {i} of {self.op} is a {type(value).__name__} in {self.where}")
        return value.data

    def shape(self, i: int) -> Shape:
        return shape_in(self.types[i], self.where)

    def result(self, data: Array) -> Tensor:
        run = axes(shape_in(self.type, self.where), self.env, self.where, self.site.span)
        if data.shape != shape_of(run):
            raise PreskBug("exec", f"{self.op} made shape {data.shape} for {self.type} in {self.where}")
        return Tensor(run, data)


Row: TypeAlias = Callable[[Step], Value]


def shape_in(ty: Type, where: str) -> Shape:
    if not isinstance(ty, Real):
        raise PreskBug("exec", f"a real tensor was expected, not {ty}, in {where}")
    return ty.shape


# ------------------------------------------------------------------------------------------------ scalars and views


def _const(step: Step) -> Value:
    return _scalar(step, Fraction(_fraction(step.attrs[0])))


def _fraction(attr: Attr) -> Fraction | int:
    if isinstance(attr, Fraction | int):
        return attr
    raise PreskBug("exec", f"a number was expected, not {attr!r}")


def _scalar(step: Step, q: Fraction) -> Value:
    if isinstance(step.type, Hyper):
        return HyperValue(step.type.kind, q)
    return step.result(step.kernel.rational(q))


def _dim(step: Step) -> Value:
    form = step.attrs[0]
    if not isinstance(form, Linear):
        raise PreskBug("exec", f"a dimension was expected, not {form!r}")
    if isinstance(step.type, Hyper) and step.type.kind == "int":
        missing = form.symbols - set(step.env.dims)
        if not missing:
            return _scalar(step, form.evaluate(step.env.dims))
    return _scalar(step, Fraction(length(form, step.env, step.where, step.site.span)))


def _real(step: Step) -> Value:
    match step.args[0]:
        case HyperValue(_, q):
            return step.result(step.kernel.rational(q))
        case IndexTensor(_, _, data):
            return step.result(step.kernel.inject(np.asarray(data)))
        case other:
            raise PreskBug("exec", f"real of a {type(other).__name__} in {step.where}")


def _field(step: Step) -> Value:
    tree = step.args[0]
    if not isinstance(tree, TreeValue):
        raise PreskBug("exec", f"no parameter tree in {step.where}")
    return tree.fields[str(step.attrs[0])]


def _set_field(step: Step) -> Value:
    tree = step.args[0]
    if not isinstance(tree, TreeValue):
        raise PreskBug("exec", f"no parameter tree in {step.where}")
    return TreeValue({n: step.args[1] if n == step.attrs[0] else v for n, v in tree.fields.items()})


def _record(step: Step) -> Value:
    if not isinstance(step.type, Params):
        raise PreskBug("exec", f"a record of type {step.type} in {step.where}")
    return TreeValue(dict(zip(field_names(step.modules, step.type.instance), step.args, strict=True)))


def _tuple(step: Step) -> Value:
    return TupleValue(step.args)


def _items(step: Step) -> tuple[Value, ...]:
    value = step.args[0]
    if not isinstance(value, TupleValue):
        raise PreskBug("exec", f"no tuple in {step.where}")
    return value.items


def _index(step: Step) -> int:
    return int(_fraction(step.attrs[0]))


def _proj(step: Step) -> Value:
    return _items(step)[_index(step)]


def _set_elem(step: Step) -> Value:
    items = list(_items(step))
    items[_index(step)] = step.args[1]
    return TupleValue(tuple(items))


# -------------------------------------------------------------------------------------------------------- arithmetic


def _unary(step: Step) -> Value:
    match step.args[0]:
        case HyperValue(kind, q) if step.op == "neg":
            return HyperValue("int" if kind == "nat" else kind, -q)
        case TreeValue() | TupleValue() as tree:
            return _leafwise(step, (tree,))
        case _:
            return step.result(step.kernel.unary(step.op, step.data(0), step.site))


def _pow(step: Step) -> Value:
    n = _index(step)
    if isinstance(step.args[0], HyperValue):
        return HyperValue(step.args[0].kind, step.args[0].value ** n)
    return step.result(step.kernel.power(step.data(0), n, step.site))


def _binary(step: Step) -> Value:
    match step.args:
        case (HyperValue(_, a), HyperValue(_, b)):
            return _hyper(step, a, b)
        case (Tensor(_, a), Tensor(_, b)):
            return step.result(_tensors(step, a, b))
        case (a, b):
            return _leafwise(step, (a, b))
        case _:
            raise PreskBug("exec", f"{step.op} takes two operands, in {step.where}")


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
        case _:
            q = a / b
    whole = step.type.kind in ("nat", "int")
    return HyperValue(step.type.kind, Fraction(int(q)) if whole else q)


def _tensors(step: Step, a: Array, b: Array) -> Array:
    """The larger operand gives the shape; of two equally large ones the first (`elab.broadcast.broadcast`)."""
    sa, sb = step.shape(0), step.shape(1)
    if step.op == "sub" and a is b:
        return repeat(step.kernel.rational(Fraction(0)), a.shape)
    if (sa.prefix is not None, len(sa.axes)) >= (sb.prefix is not None, len(sb.axes)):
        return step.kernel.binary(step.op, a, spread(step, b, sb, sa), step.site)
    return step.kernel.binary(step.op, spread(step, a, sa, sb), b, step.site)


def spread(step: Step, x: Array, small: Shape, large: Shape) -> Array:
    """`x`, of static shape `small`, with its axes where `large` has them and length 1 elsewhere; no copy."""
    where = alignment(small, large, step.where)
    lead, ahead = step.env.rank(small), step.env.rank(large)
    order = sorted(range(len(where)), key=lambda i: where[i])
    x = x.transpose((*range(lead), *(lead + i for i in order)))
    front: list[Any] = [slice(None)] * lead if lead else [None] * ahead
    rest = [slice(None) if i in where else None for i in range(len(large.axes))]
    return x[(*front, *rest)]


def _leafwise(step: Step, args: tuple[Value, ...]) -> Value:
    """`add`, `sub`, `neg` of trees and tuples; `mul`, `div` of one by a scalar. A unit stays a unit."""
    if any(a == UNIT for a in args if isinstance(a, TupleValue)):
        return UNIT
    parts = [_parts(a) for a in args]
    keys_ = next((p for p in parts if p is not None), None)
    if keys_ is not None:
        results = {
            k: _leafwise(step, tuple(a if p is None else p[k] for a, p in zip(args, parts, strict=True))) for k in keys_
        }
        like = next(a for a, p in zip(args, parts, strict=True) if p is not None)
        return TreeValue(results) if isinstance(like, TreeValue) else TupleValue(tuple(results.values()))
    return _leaf(step, args)


def _parts(value: Value) -> dict[str, Value] | None:
    match value:
        case TreeValue(fields):
            return dict(fields)
        case TupleValue(items):
            return {str(i): v for i, v in enumerate(items)}
        case _:
            return None


def _leaf(step: Step, args: tuple[Value, ...]) -> Value:
    match args:
        case (Tensor(run, x),):
            return Tensor(run, step.kernel.unary(step.op, x, step.site))
        case (Tensor(ra, a), Tensor(rb, b)):
            return Tensor(ra if len(ra) >= len(rb) else rb, step.kernel.binary(step.op, a, b, step.site))
        case _:
            raise PreskBug("exec", f"{step.op} of a leaf that is no real tensor in {step.where}")


# ------------------------------------------------------------------------------------------ contractions, reductions


def _flat(x: Array, left: int) -> Array:
    """As a matrix: the first `left` axes against the others."""
    rows = int(np.prod(x.shape[:left], dtype=object))
    columns = int(np.prod(x.shape[left:], dtype=object))
    return x.reshape(rows, columns)


def _dot(step: Step) -> Value:
    x, w = step.data(0), step.data(1)
    product = step.kernel.matmul(_flat(x, x.ndim - 1), _flat(w, 1))
    return step.result(product.reshape((*x.shape[:-1], *w.shape[1:])))


def _dot_vjp_l(step: Step) -> Value:
    ct, w = step.data(0), step.data(1)
    kept = ct.ndim - (w.ndim - 1)
    product = step.kernel.matmul(_flat(ct, kept), _flat(w, 1).T)
    return step.result(product.reshape((*ct.shape[:kept], w.shape[0])))


def _dot_vjp_r(step: Step) -> Value:
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


def _sum(step: Step) -> Value:
    return step.result(step.kernel.total(step.data(0), _over(step, 0)))


def _number(step: Step, operand: int) -> Array:
    """How many entries a mean is over, as a scalar."""
    value = step.args[operand]
    run = value.axes if isinstance(value, Tensor) else ()
    n = count(tuple(run[i] for i in _over(step, operand)))
    if n == 0:
        fail("E7003", f"a mean over no element in {step.where}", step.site.span)
    return step.kernel.rational(Fraction(n))


def _mean(step: Step) -> Value:
    total = step.kernel.total(step.data(0), _over(step, 0))
    return step.result(step.kernel.binary("div", total, _number(step, 0), step.site))


def _mean_vjp(step: Step) -> Value:
    part = step.kernel.binary("div", step.data(0), _number(step, 1), step.site)
    return step.result(_expand(step, part, _over(step, 1)))


def _expand(step: Step, x: Array, gone: tuple[int, ...]) -> Array:
    """`x` repeated along the axes `gone` of operand 1."""
    target = step.args[1]
    run = target.axes if isinstance(target, Tensor) else ()
    index = tuple(None if i in gone else slice(None) for i in range(len(run)))
    return repeat(x[index], shape_of(run))


def _broadcast_like(step: Step) -> Value:
    if step.attrs:
        return step.result(_expand(step, step.data(0), _over(step, 1)))
    target = step.args[1]
    run = target.axes if isinstance(target, Tensor) else ()
    return step.result(repeat(spread(step, step.data(0), step.shape(0), step.shape(1)), shape_of(run)))


def _sum_to(step: Step) -> Value:
    x, large, small = step.data(0), step.shape(0), step.shape(1)
    where = alignment(small, large, step.where)
    ahead, lead = step.env.rank(large), step.env.rank(small)
    kept = (*range(lead), *(ahead + i for i in where))
    total = step.kernel.total(x, tuple(i for i in range(x.ndim) if i not in kept))
    order = sorted(kept)
    return step.result(total.transpose(tuple(order.index(i) for i in kept)))


# ---------------------------------------------------------------------------------------------------- filled, drawn


def _like(value: int) -> Row:
    def row(step: Step) -> Value:
        entry = step.kernel.rational(Fraction(value))

        def leaf(v: Leaf) -> Value:
            return Tensor(v.axes, repeat(entry, shape_of(v.axes))) if isinstance(v, Tensor) else UNIT

        return map_leaves(leaf, step.args[0])

    return row


def _filled(value: int) -> Row:
    def row(step: Step) -> Value:
        return _of_type(step, step.type, step.kernel.rational(Fraction(value)))

    return row


def _of_type(step: Step, ty: Type, entry: Array) -> Value:
    match ty:
        case Real(shape):
            run = axes(shape, step.env, step.where, step.site.span)
            return Tensor(run, repeat(entry, shape_of(run)))
        case TupleOf(items):
            return TupleValue(tuple(_of_type(step, t, entry) for t in items))
        case Params(instance):
            fields: dict[str, Value] = {}
            for name in field_names(step.modules, instance):
                below = field_type(step.modules, instance, name)
                if below is not None:
                    fields[name] = _of_type(step, below, entry)
            return TreeValue(fields)
        case _:
            return UNIT


def _key(step: Step) -> bytes:
    value = step.args[0]
    if not isinstance(value, KeyValue):
        raise PreskBug("exec", f"no key in {step.where}")
    return value.key


def _split_key(step: Step) -> Value:
    return TupleValue(tuple(KeyValue(k) for k in keys.split(_key(step), _index(step))))


def _drawn(step: Step) -> Value:
    run = axes(shape_in(step.type, step.where), step.env, step.where, step.site.span)
    std = Fraction(_fraction(step.attrs[0])) if step.attrs else None
    data = step.draws(step.op, _key(step), shape_of(run), std)
    return step.result(boxed(step.kernel.inject(data)))


def draw(op: str, key: bytes, shape: tuple[int, ...], std: Fraction | None) -> HostReals:
    """The draws of an initializer, of `shape`."""
    n = int(np.prod(shape, dtype=object))
    flat = (
        keys.xavier_uniform(key, shape)
        if op == "xavier_uniform"
        else keys.normal(key, n, Fraction(1) if std is None else std)
    )
    return flat.reshape(shape)


ROWS: dict[str, Row] = {
    "const": _const,
    "dim": _dim,
    "real": _real,
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(ELEMENTWISE, _unary),
    "pow": _pow,
    "dot": _dot,
    "dot_vjp_l": _dot_vjp_l,
    "dot_vjp_r": _dot_vjp_r,
    "mean": _mean,
    "sum": _sum,
    "mean_vjp": _mean_vjp,
    "broadcast_like": _broadcast_like,
    "sum_to": _sum_to,
    "zeros_like": _like(0),
    "ones_like": _like(1),
    "zeros": _filled(0),
    "ones": _filled(1),
    "field": _field,
    "set_field": _set_field,
    "record": _record,
    "tuple": _tuple,
    "proj": _proj,
    "set_elem": _set_elem,
    "split_key": _split_key,
    "normal": _drawn,
    "xavier_uniform": _drawn,
}

STRUCTURAL = frozenset({"field", "set_field", "record", "tuple", "proj", "set_elem", "split_key", "const", "dim"})
"""The rows that touch no entry of a tensor (`const` makes one scalar)."""
