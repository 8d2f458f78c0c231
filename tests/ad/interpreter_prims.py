"""The primitives of the interpreter of these tests, each as its row of `core.prims` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np

from presk_rel.core.ir import Program
from presk_rel.elab.broadcast import align, broadcast
from presk_rel.elab.ty import Hyper, Idx, Mask, Params, Real, Shape, Type, field_names
from presk_rel.smt.linear import Linear
from tests.ad.interpreter_values import Array, Value, asarray, is_real, lengths_of, scalar, tree

# --------------------------------------------------------------------------------------------------------- primitives


@dataclass(frozen=True)
class Use:
    program: Program
    attrs: tuple[Any, ...]
    args: list[Value]
    types: list[Type]
    type: Type
    dims: dict[str, int]
    lead: tuple[int, ...] = ()

    def shape(self, i: int) -> Shape:
        ty = self.types[i]
        assert isinstance(ty, Real | Idx | Mask), ty
        return ty.shape

    @property
    def result(self) -> Shape:
        assert isinstance(self.type, Real | Idx | Mask)
        return self.type.shape

    def dim(self, i: int) -> int:
        return int(self.attrs[i].evaluate(self.dims))


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
        if isinstance(u.type, Hyper):
            return f(x, y)
        rank = max(x.ndim, y.ndim)
        large = broadcast(u.shape(0), u.shape(1), _same)  # the declared type of the result may lack names
        assert large is not None
        wide = [widen(v, u.shape(i), large, rank) for i, v in enumerate((x, y))]
        return asarray(f(*wide))

    return binary


def mapped(f: Callable[..., Any], *arrays: Array) -> Array:
    """`f` entry by entry, as reals."""
    out = np.empty(arrays[0].shape, dtype=object)
    for i in np.ndindex(out.shape):
        out[i] = f(*(a[i] for a in arrays))
    return out


def entries(f: Callable[[Any], Any]) -> Callable[[Use], Value]:
    def unary(u: Use) -> Value:
        x = u.args[0]
        return tree(lambda a: mapped(f, a), x)

    return unary


def pdf(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def axis_of(u: Use, i: int) -> int:
    shape = u.shape(i)
    at = [a.name for a in shape.axes].index(u.attrs[0])
    return at - len(shape.axes)


def _sum(u: Use) -> Value:
    return asarray(np.sum(u.args[0], axis=axis_of(u, 0) if u.attrs else None))


def _mean(u: Use) -> Value:
    x = u.args[0]
    return asarray(_sum(u) / (x.shape[axis_of(u, 0)] if u.attrs else x.size))


def _broadcast_like(u: Use) -> Value:
    x, t = u.args
    if u.attrs:
        return np.broadcast_to(np.expand_dims(x, t.ndim + axis_of(u, 1)), t.shape)
    return np.broadcast_to(widen(x, u.shape(0), u.shape(1), t.ndim), t.shape)


def _mean_vjp(u: Use) -> Value:
    x = u.args[1]
    return asarray(_broadcast_like(u) / (x.shape[axis_of(u, 1)] if u.attrs else x.size))


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
        return np.full(v.shape, mp.mpf(value), dtype=object) if is_real(v) else ()

    return lambda u: tree(leaf, u.args[0])


def _filled(value: int) -> Callable[[Use], Value]:
    return lambda u: np.full(lengths_of(u.result, u.dims, u.lead), mp.mpf(value), dtype=object)


def exact(c: Fraction) -> Any:
    return mp.mpf(c.numerator) / c.denominator


def _const(u: Use) -> Value:
    return scalar(exact(u.attrs[0])) if isinstance(u.type, Real) else u.attrs[0]


def _real(u: Use) -> Value:
    x = u.args[0]
    return scalar(exact(Fraction(x))) if not isinstance(x, np.ndarray) else entries(lambda n: mp.mpf(int(n)))(u)


def _record(u: Use) -> Value:
    assert isinstance(u.type, Params)
    return dict(zip(field_names(u.program.modules, u.type.instance), u.args, strict=True))


def _compared(f: Callable[[Any, Any], Any]) -> Callable[[Use], Value]:
    compare = _leafwise(f)
    return lambda u: np.asarray(compare(u)).astype(bool) if isinstance(u.type, Mask) else bool(f(*u.args))


def _sum_squares(u: Use) -> Value:
    total = [mp.mpf(0)]
    tree(lambda a: total.extend(x * x for x in a.reshape(-1)), u.args[0])
    return scalar(mp.fsum(total))


PRIMITIVES: dict[str, Callable[[Use], Value]] = {
    "const": _const,
    "dim": lambda u: int(u.attrs[0].evaluate(u.dims)),
    "real": _real,
    "add": _leafwise(lambda a, b: a + b),
    "sub": _leafwise(lambda a, b: a - b),
    "mul": _leafwise(lambda a, b: a * b),
    "div": _leafwise(lambda a, b: a / b),
    "neg": lambda u: tree(lambda a: asarray(-a), u.args[0]),
    "pow": lambda u: tree(lambda a: asarray(a ** u.attrs[0]), u.args[0]),
    "gelu": entries(lambda x: x * cdf(x)),
    "gelu'": entries(lambda x: cdf(x) + x * pdf(x)),
    "normal_pdf": entries(pdf),
    "relu": entries(lambda x: x if x > 0 else mp.mpf(0)),
    "heaviside": entries(lambda x: mp.mpf(1 if x > 0 else 0)),
    "sign": entries(mp.sign),
    "exp": entries(mp.exp),
    "tanh": entries(mp.tanh),
    "sqrt": entries(mp.sqrt),
    "abs": entries(abs),
    "log": entries(mp.log),
    "sigmoid": entries(lambda x: 1 / (1 + mp.exp(-x))),
    "sin": entries(mp.sin),
    "cos": entries(mp.cos),
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
    "max": _leafwise(lambda a, b: mapped(lambda x, y: x if x > y else y, *np.broadcast_arrays(a, b))),
    "min": _leafwise(lambda a, b: mapped(lambda x, y: x if x < y else y, *np.broadcast_arrays(a, b))),
    "lt": _compared(lambda a, b: a < b),
    "le": _compared(lambda a, b: a <= b),
    "gt": _compared(lambda a, b: a > b),
    "ge": _compared(lambda a, b: a >= b),
    "eq": _compared(lambda a, b: a == b),
    "sum_squares": _sum_squares,
    "pi": lambda u: scalar(+mp.pi),
}
