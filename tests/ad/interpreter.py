"""A small interpreter of PSK-Core over mpmath, written for these tests only (independent of `exec/`).

A real tensor is a numpy array of mpf, a parameter tree a dict, a tuple a tuple, a key an int, a hyperparameter a
number. Axes line up by the *static* types of the bindings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np

from presk_rel.core.ir import Apply, Call, Closure, Fold, Grad, Op, Prim, Program
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Params, Real, Shape, TupleOf, Type, field_names, leaves
from presk_rel.smt.linear import Linear

Value = Any
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class FunctionValue:
    fn: str
    dims: dict[str, int]
    captured: tuple[Value, ...]


def evaluate(program: Program, name: str, dims: dict[str, int], args: list[Value]) -> Value:
    """The value of a function at concrete dims and arguments."""
    f = program.functions[name]
    types: dict[str, Type] = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    env: dict[str, Value] = {p.name: a for p, a in zip(f.params, args, strict=True)}
    for b in f.bindings:
        env[b.name] = _operation(program, b.op, b.type, dims, env, types)
    return env[f.ret]


def _dims(dim_args: tuple[tuple[str, Linear], ...], dims: dict[str, int]) -> dict[str, int]:
    return {d: int(form.evaluate(dims)) for d, form in dim_args}


def _operation(
    program: Program, op: Op, ty: Type, dims: dict[str, int], env: dict[str, Value], types: dict[str, Type]
) -> Value:
    match op:
        case Prim(name, attrs, args):
            use = Use(program, attrs, [env[v] for v in args], [types[v] for v in args], ty, dims)
            return PRIMITIVES[name](use)
        case Call(fn, dim_args, args):
            return evaluate(program, fn, _dims(dim_args, dims), [env[v] for v in args])
        case Closure(fn, dim_args, captured):
            return FunctionValue(fn, _dims(dim_args, dims), tuple(env[v] for v in captured))
        case Apply(fn, args):
            value = env[fn]
            return evaluate(program, value.fn, value.dims, [*value.captured, *(env[v] for v in args)])
        case Fold():
            return _fold(program, op, dims, env)
        case Grad():
            raise AssertionError("grad is left")


def _fold(program: Program, op: Fold, dims: dict[str, int], env: dict[str, Value]) -> Value:
    count, acc, seen = int(op.count.evaluate(dims)), env[op.acc], []
    for i in reversed(range(count)) if op.reverse else range(count):
        seen.append(acc)
        slices = [tree(lambda a, i=i: asarray(a[i]), env[v]) for v in op.stacked]
        acc = evaluate(program, op.body, _dims(op.dim_args, dims), [*slices, acc, *(env[v] for v in op.extras)])
    if not op.scan:
        return acc
    assert seen, "a scan of no iteration"
    return acc, stack(seen[::-1] if op.reverse else seen)


def stack(values: list[Value]) -> Value:
    match values[0]:
        case dict() as first:
            return {k: stack([v[k] for v in values]) for k in first}
        case tuple() as first:
            return tuple(stack([v[k] for v in values]) for k in range(len(first)))
        case _:
            return np.stack(values)


def tree(f: Callable[..., Value], *values: Value) -> Value:
    """`f` of the leaves."""
    match values[0]:
        case dict() as first:
            return {k: tree(f, *(v[k] for v in values)) for k in first}
        case tuple() as first:
            return tuple(tree(f, *(v[k] for v in values)) for k in range(len(first)))
        case _:
            return f(*values)


# --------------------------------------------------------------------------------------------------------- primitives


@dataclass(frozen=True)
class Use:
    program: Program
    attrs: tuple[Any, ...]
    args: list[Value]
    types: list[Type]
    type: Type
    dims: dict[str, int]

    def shape(self, i: int) -> Shape:
        ty = self.types[i]
        assert isinstance(ty, Real), ty
        return ty.shape

    @property
    def result(self) -> Shape:
        assert isinstance(self.type, Real)
        return self.type.shape


def scalar(x: Any) -> Array:
    out = np.empty((), dtype=object)
    out[()] = x
    return out


def asarray(x: Value) -> Array:
    return x if isinstance(x, np.ndarray) else scalar(x)


def _same(a: Linear, b: Linear) -> bool:
    return a == b


def _places(x: Array, small: Shape, large: Shape, rank: int) -> list[int]:
    """The axis of an array of `rank` and static shape `large` that each axis of `x` lines up with."""
    where = align(small, large, _same)
    assert where is not None, (small, large)
    front = rank - len(large.axes)
    lead = x.ndim - len(small.axes)
    return [*range(lead), *(front + w for w in where)]


def widen(x: Array, small: Shape, large: Shape, rank: int) -> Array:
    """`x` with its axes where they line up in `large`, length 1 elsewhere."""
    places = _places(x, small, large, rank)
    order = sorted(range(x.ndim), key=lambda i: places[i])
    shape = [1] * rank
    for i in range(x.ndim):
        shape[places[i]] = x.shape[i]
    return x.transpose(order).reshape(shape)


def _leafwise(f: Callable[[Any, Any], Any]) -> Callable[[Use], Value]:
    def binary(u: Use) -> Value:
        x, y = u.args
        if isinstance(x, (dict, tuple)) and isinstance(y, (dict, tuple)):
            return tree(lambda a, b: asarray(f(a, b)), x, y)
        if isinstance(x, (dict, tuple)):
            return tree(lambda a: asarray(f(a, y)), x)
        if isinstance(y, (dict, tuple)):
            return tree(lambda b: asarray(f(x, b)), y)
        if not isinstance(u.type, Real):
            return f(x, y)
        rank = max(x.ndim, y.ndim)
        wide = [widen(v, u.shape(i), u.result, rank) for i, v in enumerate((x, y))]
        return asarray(f(*wide))

    return binary


def _entries(f: Callable[[Any], Any]) -> Callable[[Use], Value]:
    def unary(u: Use) -> Value:
        x = u.args[0]
        out = np.empty(x.shape, dtype=object)
        for i in np.ndindex(x.shape):
            out[i] = f(x[i])
        return out

    return unary


def pdf(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _axis(u: Use, i: int) -> int:
    shape = u.shape(i)
    at = [a.name for a in shape.axes].index(u.attrs[0])
    return at - len(shape.axes)


def _sum(u: Use) -> Value:
    return asarray(np.sum(u.args[0], axis=_axis(u, 0) if u.attrs else None))


def _mean(u: Use) -> Value:
    x = u.args[0]
    return asarray(_sum(u) / (x.shape[_axis(u, 0)] if u.attrs else x.size))


def _broadcast_like(u: Use) -> Value:
    x, t = u.args
    if u.attrs:
        return np.broadcast_to(np.expand_dims(x, t.ndim + _axis(u, 1)), t.shape)
    return np.broadcast_to(widen(x, u.shape(0), u.shape(1), t.ndim), t.shape)


def _mean_vjp(u: Use) -> Value:
    x = u.args[1]
    return asarray(_broadcast_like(u) / (x.shape[_axis(u, 1)] if u.attrs else x.size))


def _sum_to(u: Use) -> Value:
    x, t = u.args
    places = _places(t, u.shape(1), u.shape(0), x.ndim)
    summed = asarray(np.sum(x, axis=tuple(i for i in range(x.ndim) if i not in places)))
    kept = sorted(places)
    return summed.transpose([kept.index(p) for p in places])


def _dot_vjp_l(u: Use) -> Value:
    ct, w = u.args
    k = w.ndim - 1
    return asarray(np.tensordot(ct, w, axes=(list(range(ct.ndim - k, ct.ndim)), list(range(1, w.ndim)))))


def _dot_vjp_r(u: Use) -> Value:
    x, ct = u.args
    k = list(range(x.ndim - 1))
    return asarray(np.tensordot(x, ct, axes=(k, k)))


def _like(value: int) -> Callable[[Use], Value]:
    def leaf(v: Value) -> Value:
        return np.full(v.shape, mp.mpf(value), dtype=object) if isinstance(v, np.ndarray) else ()

    return lambda u: tree(leaf, u.args[0])


def _filled(value: int) -> Callable[[Use], Value]:
    return lambda u: np.full([int(a.length.evaluate(u.dims)) for a in u.result.axes], mp.mpf(value), dtype=object)


def exact(c: Fraction) -> Any:
    return mp.mpf(c.numerator) / c.denominator


def _const(u: Use) -> Value:
    return scalar(exact(u.attrs[0])) if isinstance(u.type, Real) else u.attrs[0]


def _real(u: Use) -> Value:
    x = u.args[0]
    return scalar(exact(Fraction(x))) if not isinstance(x, np.ndarray) else _entries(mp.mpf)(u)


def _record(u: Use) -> Value:
    assert isinstance(u.type, Params)
    return dict(zip(field_names(u.program.modules, u.type.instance), u.args, strict=True))


PRIMITIVES: dict[str, Callable[[Use], Value]] = {
    "const": _const,
    "dim": lambda u: int(u.attrs[0].evaluate(u.dims)),
    "real": _real,
    "add": _leafwise(lambda a, b: a + b),
    "sub": _leafwise(lambda a, b: a - b),
    "mul": _leafwise(lambda a, b: a * b),
    "div": _leafwise(lambda a, b: a / b),
    "neg": lambda u: asarray(-u.args[0]),
    "pow": lambda u: asarray(u.args[0] ** u.attrs[0]),
    "gelu": _entries(lambda x: x * cdf(x)),
    "gelu'": _entries(lambda x: cdf(x) + x * pdf(x)),
    "normal_pdf": _entries(pdf),
    "relu": _entries(lambda x: x if x > 0 else mp.mpf(0)),
    "heaviside": _entries(lambda x: mp.mpf(1 if x > 0 else 0)),
    "sign": _entries(mp.sign),
    "exp": _entries(mp.exp),
    "tanh": _entries(mp.tanh),
    "sqrt": _entries(mp.sqrt),
    "abs": _entries(abs),
    "log": _entries(mp.log),
    "sigmoid": _entries(lambda x: 1 / (1 + mp.exp(-x))),
    "sin": _entries(mp.sin),
    "cos": _entries(mp.cos),
    "dot": lambda u: asarray(np.tensordot(u.args[0], u.args[1], axes=([-1], [0]))),
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
    "field": lambda u: u.args[0][u.attrs[0]],
    "set_field": lambda u: u.args[0] | {u.attrs[0]: u.args[1]},
    "record": _record,
    "tuple": lambda u: tuple(u.args),
    "proj": lambda u: u.args[0][u.attrs[0]],
    "set_elem": lambda u: (*u.args[0][: u.attrs[0]], u.args[1], *u.args[0][u.attrs[0] + 1 :]),
    "split_key": lambda u: tuple(u.args[0] * 31 + i for i in range(u.attrs[0])),
}

# ------------------------------------------------------------------------------------------------ values of a type


def random_value(
    program: Program, ty: Type, dims: dict[str, int], lead: tuple[int, ...], draw: Callable[[], Any]
) -> Value:
    """A value of a type, its reals drawn by `draw`; a prefix stands for the axes `lead`."""
    match ty:
        case Real(shape):
            lengths = [*(lead if shape.prefix else ()), *(int(a.length.evaluate(dims)) for a in shape.axes)]
            out = np.empty(lengths, dtype=object)
            for i in np.ndindex(out.shape):
                out[i] = draw()
            return out
        case TupleOf(items):
            return tuple(random_value(program, t, dims, lead, draw) for t in items)
        case Params(instance):
            out_tree: dict[str, Value] = {}
            for path, leaf in leaves(program.modules, instance):
                _set(out_tree, path.split("."), random_value(program, leaf, dims, lead, draw))
            return out_tree
        case _:
            return 7


def _set(into: dict[str, Value], path: list[str], value: Value) -> None:
    for step in path[:-1]:
        into = into.setdefault(step, {})
    into[path[-1]] = value


def flat(value: Value) -> list[Any]:
    """The real entries, in order; keys and hyperparameters are none."""
    match value:
        case dict():
            return [x for v in value.values() for x in flat(v)]
        case tuple():
            return [x for v in value for x in flat(v)]
        case np.ndarray():
            return [*value.reshape(-1)]
        case _:
            return []
