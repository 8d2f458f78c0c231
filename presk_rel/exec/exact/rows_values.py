"""Rows of the primitives that compute nothing: scalars, trees, tuples, tensors that repeat one entry, keys, draws."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper, Params, Real, TupleOf, Type, field_names, field_type
from presk_rel.exec import keys
from presk_rel.exec.exact.kernel import boxed, repeat
from presk_rel.exec.exact.step import Row, Step, index_of, rational_of
from presk_rel.exec.shapes import axes, fail, int_of, length
from presk_rel.exec.values import (
    UNIT,
    Array,
    HostReals,
    HyperValue,
    IndexTensor,
    KeyValue,
    MaskTensor,
    StackValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    shape_of,
    stack,
    take,
)
from presk_rel.smt.linear import Linear

MAX_KEYS = 1_000_000


def row_const(step: Step) -> Value:
    return _scalar(step, Fraction(rational_of(step.attrs[0])))


def _scalar(step: Step, q: Fraction) -> Value:
    if isinstance(step.type, Hyper):
        return HyperValue(step.type.kind, q)
    return step.result(step.kernel.rational(q))


def row_pi(step: Step) -> Value:
    return step.result(step.kernel.pi())


def row_dim(step: Step) -> Value:
    form = step.attrs[0]
    if not isinstance(form, Linear):
        raise PreskBug("exec", f"a dimension was expected, not {form!r}")
    if isinstance(step.type, Hyper) and step.type.kind == "int":
        missing = form.symbols - set(step.env.dims)
        if not missing:
            return _scalar(step, form.evaluate(step.env.dims))
    return _scalar(step, Fraction(length(form, step.env, step.where, step.site.span)))


def row_real(step: Step) -> Value:
    match step.args[0]:
        case HyperValue(_, q):
            return step.result(step.kernel.rational(q))
        case IndexTensor(_, _, data):
            return step.result(step.kernel.inject(np.asarray(data)))
        case other:
            raise PreskBug("exec", f"real of a {type(other).__name__} in {step.where}")


def row_field(step: Step) -> Value:
    tree = step.args[0]
    if not isinstance(tree, TreeValue):
        raise PreskBug("exec", f"no parameter tree in {step.where}")
    return tree.fields[str(step.attrs[0])]


def row_set_field(step: Step) -> Value:
    tree = step.args[0]
    if not isinstance(tree, TreeValue):
        raise PreskBug("exec", f"no parameter tree in {step.where}")
    return TreeValue({n: step.args[1] if n == step.attrs[0] else v for n, v in tree.fields.items()})


def row_record(step: Step) -> Value:
    if not isinstance(step.type, Params):
        raise PreskBug("exec", f"a record of type {step.type} in {step.where}")
    return TreeValue(dict(zip(field_names(step.modules, step.type.instance), step.args, strict=True)))


def row_tuple(step: Step) -> Value:
    return TupleValue(step.args)


def _items(step: Step) -> tuple[Value, ...]:
    value = step.args[0]
    if not isinstance(value, TupleValue):
        raise PreskBug("exec", f"no tuple in {step.where}")
    return value.items


def row_proj(step: Step) -> Value:
    return _items(step)[index_of(step)]


def row_set_elem(step: Step) -> Value:
    items = list(_items(step))
    items[index_of(step)] = step.args[1]
    return TupleValue(tuple(items))


# ---------------------------------------------------------------------------------------------------- filled, drawn


def row_like(value: int) -> Row:
    return lambda step: _like(step, step.args[0], value)


def _like(step: Step, template: Value, value: int) -> Value:
    """Of the shape of `template`, every entry `value`; the unit where there are no reals."""
    entry = step.kernel.rational(Fraction(value))

    def like(v: Value) -> Value:
        match v:
            case Tensor(run):
                return Tensor(run, repeat(entry, shape_of(run)))
            case TupleValue(items):
                return TupleValue(tuple(like(i) for i in items))
            case TreeValue(fields):
                return TreeValue({n: like(i) for n, i in fields.items()})
            case _:
                return UNIT

    return like(template)


def row_filled(value: int) -> Row:
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


def row_stack_params(step: Step) -> Value:
    """Trees of one type stacked. Of none: every leaf of the binding's type, which has length 0."""
    if not step.args:
        return _of_type(step, step.type, step.kernel.rational(Fraction(0)))
    return stack(list(step.args), step.args[0])


def _slice_number(step: Step) -> int:
    form = step.attrs[0]
    if not isinstance(form, Linear):
        raise PreskBug("exec", f"a dimension was expected, not {form!r}")
    return int_of(form, step.env, step.where, step.site.span)


def row_slice_params(step: Step) -> Value:
    return take(step.args[0], _slice_number(step))


def row_set_slice(step: Step) -> Value:
    return with_slice(step.args[0], _slice_number(step), step.args[1])


def row_scatter_params(step: Step) -> Value:
    return with_slice(_like(step, step.args[1], 0), _slice_number(step), step.args[0])


def with_slice(whole: Value, i: int, part: Value) -> Value:
    """A stack with slice `i` replaced; a unit stays."""
    match whole, part:
        case ((Tensor() | IndexTensor() | MaskTensor()), (Tensor() | IndexTensor() | MaskTensor())):
            data = np.array(whole.data)
            data[i, ...] = part.data
            return replace(whole, data=data)
        case StackValue(items), _:
            return StackValue((*items[:i], part, *items[i + 1 :]))
        case TupleValue(items), TupleValue(parts):
            return TupleValue(tuple(with_slice(v, i, p) for v, p in zip(items, parts, strict=True)))
        case TreeValue(fields), TreeValue(parts):
            return TreeValue({n: with_slice(v, i, parts[n]) for n, v in fields.items()})
        case _:
            raise PreskBug("exec", f"no stack of {type(part).__name__}: {type(whole).__name__}")


def row_split_key(step: Step) -> Value:
    n = index_of(step)
    if n > MAX_KEYS:
        fail(
            "E7006",
            f"{n} keys are split at once in {step.site}; at most {MAX_KEYS} are",
            step.site.span,
            exit_status=3,
        )
    return TupleValue(tuple(KeyValue(k) for k in keys.split(step.key(), n)))


def row_drawn(step: Step) -> Value:
    std = Fraction(rational_of(step.attrs[0])) if step.attrs else None
    data = step.draws(step.op, step.key(), shape_of(step.target()), std)
    return step.result(boxed(step.kernel.inject(data)))


def draw(op: str, key: bytes, shape: tuple[int, ...], number: Fraction | None) -> HostReals:
    """The draws of a primitive, of `shape`: an initializer's reals, the uniforms of `sample`, or what `dropout_mask`
    drops. `number` is the standard deviation, or the rate."""
    n = int(np.prod(shape, dtype=object))
    match op:
        case "xavier_uniform":
            flat = keys.xavier_uniform(key, shape)
        case "sample":
            flat = keys.uniform(key, n)
        case "dropout_mask":
            flat = keys.dropped(key, n, number or Fraction(0))
        case _:
            flat = keys.normal(key, n, Fraction(1) if number is None else number)
    return flat.reshape(shape)
