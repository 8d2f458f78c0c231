"""The primitives of the interpreter of these tests that move entries, choose among them, draw and stack."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np

from presk_rel.core.ein import ein_spec
from tests.ad.interpreter_prims import Use, axis_of, exact, mapped, widen
from tests.ad.interpreter_values import Array, Value, asarray, is_real, lengths_of, random_value, stack, tree


def _softmax(u: Use) -> Value:
    x, axis = u.args[0], axis_of(u, 0)
    allowed = np.ones(x.shape, dtype=bool)
    if len(u.args) == 2:
        allowed = np.broadcast_to(widen(u.args[1], u.shape(1), u.shape(0), x.ndim), x.shape)
    weight = mapped(lambda a, ok: mp.exp(a) if ok else mp.mpf(0), x, allowed)
    total = np.sum(weight, axis=axis, keepdims=True)
    return mapped(lambda w, t: w / t if t else mp.mpf(0), weight, np.broadcast_to(total, x.shape))


def _ein(u: Use) -> Value:
    spec = ein_spec(u.attrs[0])
    assert spec is not None
    names = list(dict.fromkeys(n for axes in spec.operands for n in axes))
    product: Any = mp.mpf(1)
    for axes, x in zip(spec.operands, u.args, strict=True):
        order = sorted(range(len(axes)), key=lambda i, axes=axes: names.index(axes[i]))
        lengths = dict(zip(axes, x.shape, strict=True))
        product = product * x.transpose(order).reshape([lengths.get(n, 1) for n in names])
    left = [n for n in names if n in spec.result]
    summed = asarray(np.sum(asarray(product), axis=tuple(i for i, n in enumerate(names) if n not in left)))
    return summed.transpose([left.index(n) for n in spec.result])


def _at(u: Use, i: int) -> int:
    """The axis of an array that the place of a primitive means, `u.args[i]` having the static shape that it is of."""
    shape, place = u.shape(i), u.attrs[0]
    at = [a.name for a in shape.axes].index(place) if isinstance(place, str) else place
    return u.args[i].ndim - len(shape.axes) + at


def _part(u: Use, i: int) -> tuple[Any, ...]:
    bounds = u.dim(1) if len(u.attrs) == 2 else slice(u.dim(1), u.dim(2))
    return (*(slice(None) for _ in range(_at(u, i))), bounds)


def _put(u: Use) -> Value:
    out = np.full(u.args[1].shape, mp.mpf(0), dtype=object)
    out[_part(u, 1)] = u.args[0][()]  # the entry of a scalar, all of any other tensor
    return out


def _embed_vjp(u: Use) -> Value:
    ct, i, w = u.args
    out = np.full(w.shape, mp.mpf(0), dtype=object)
    for at in np.ndindex(i.shape):
        out[int(i[at])] = out[int(i[at])] + ct[at]
    return out


def _one_hot(u: Use) -> Value:
    i = u.args[0]
    out = np.full((*i.shape, int(u.result.axes[-1].length.evaluate(u.dims))), mp.mpf(0), dtype=object)
    for at in np.ndindex(i.shape):
        out[(*at, int(i[at]))] = mp.mpf(1)
    return out


def _probabilities(x: Array) -> Array:
    weight = mapped(mp.exp, x)
    return weight / np.sum(weight, axis=-1, keepdims=True)


def _cross_entropy(u: Use) -> Value:
    p, i = _probabilities(u.args[0]), u.args[1]
    out = np.empty(i.shape, dtype=object)
    for at in np.ndindex(i.shape):
        out[at] = -mp.log(p[(*at, int(i[at]))])
    return out


def _cross_entropy_vjp(u: Use) -> Value:
    ct, logits, i = u.args
    out = _probabilities(logits)
    for at in np.ndindex(i.shape):
        out[(*at, int(i[at]))] -= 1
    return out * np.expand_dims(ct, ct.ndim)


def _uniform(key: Any, rank: int) -> Fraction:
    return Fraction((int(key) * 2_654_435_761 + rank * 40_503_017 + 12_345) % 2**20, 2**20)


def _dropout_mask(u: Use) -> Value:
    (rate,), (key, x) = u.attrs, u.args
    out = np.empty(x.shape, dtype=object)
    for rank, at in enumerate(np.ndindex(x.shape)):
        out[at] = mp.mpf(0) if _uniform(key, rank) < rate else exact(1 / (1 - rate))
    return out


def _sample(u: Use) -> Value:
    key, p = u.args[0], _probabilities(u.args[1])
    out = np.zeros(p.shape[:-1], dtype=np.int64)
    for rank, at in enumerate(np.ndindex(out.shape)):
        below = np.cumsum(p[at])
        out[at] = next(i for i, c in enumerate(below) if c > exact(_uniform(key, rank)) or i == len(below) - 1)
    return out


def _argmax(u: Use) -> Value:
    x = u.args[0]
    out = np.zeros(x.shape[:-1], dtype=np.int64)
    for at in np.ndindex(out.shape):
        out[at] = max(range(x.shape[-1]), key=lambda i, at=at: (x[at][i], -i))
    return out


def _heads(u: Use) -> Value:
    x = u.args[0]
    h, e = u.attrs
    return np.swapaxes(x.reshape((*x.shape[:-1], h, e)), -2, -3)


def _merged_heads(u: Use) -> Value:
    x = np.swapaxes(u.args[0], -2, -3)
    return x.reshape((*x.shape[:-2], u.attrs[0] * u.attrs[1]))


def _shaped(u: Use) -> Value:
    """The entries in the shape of the result; a prefix keeps its lengths."""
    x = u.args[0]
    lead = x.shape[: x.ndim - len(u.shape(0).axes)]
    return x.reshape(lengths_of(u.result, u.dims, lead))


def _positions(u: Use) -> Value:
    return np.arange(int(u.result.axes[0].length.evaluate(u.dims)), dtype=np.int64)


def _causal_mask(u: Use) -> Value:
    n = int(u.result.axes[0].length.evaluate(u.dims))
    return np.tril(np.ones((n, n), dtype=bool))


def _slice_params(u: Use) -> Value:
    i = u.dim(0)
    return tree(lambda a: asarray(a[i]), u.args[0])


def _changed(i: int, whole: Array, piece: Value) -> Array:
    out = whole.copy()
    out[i] = piece[()]
    return out


def _set_slice(u: Use) -> Value:
    return tree(lambda a, v: _changed(u.dim(0), a, v), *u.args)


def _scatter_params(u: Use) -> Value:
    zeros = tree(lambda a: np.full(a.shape, mp.mpf(0), dtype=object) if is_real(a) else (), u.args[1])
    return tree(lambda a, v: _changed(u.dim(0), a, v), zeros, u.args[0])


def _stack_params(u: Use) -> Value:
    return stack(list(u.args)) if u.args else random_value(u.program, u.type, u.dims, (), lambda: 0)


def _split_key(u: Use) -> Value:
    return tuple(np.asarray((u.args[0] * 31 + i * 7 + 1) % 2**31) for i in range(u.attrs[0]))


AXES: dict[str, Callable[[Use], Value]] = {
    "split_key": _split_key,
    "softmax": _softmax,
    "ein": _ein,
    "embed": lambda u: u.args[0][u.args[1]],
    "embed_vjp": _embed_vjp,
    "one_hot": _one_hot,
    "cross_entropy": _cross_entropy,
    "cross_entropy_vjp": _cross_entropy_vjp,
    "argmax": _argmax,
    "sample": _sample,
    "merge": _shaped,
    "split": _shaped,
    "reshape_like": lambda u: u.args[0].reshape(u.args[1].shape),
    "split_heads": _heads,
    "merge_heads": _merged_heads,
    "positions": _positions,
    "causal_mask": _causal_mask,
    "index": lambda u: asarray(u.args[0][_part(u, 0)]),
    "scatter_index": _put,
    "slice": lambda u: u.args[0][_part(u, 0)],
    "slice_vjp": _put,
    "concat": lambda u: np.concatenate(u.args, axis=_at(u, 0)),
    "dropout_mask": _dropout_mask,
    "slice_params": _slice_params,
    "scatter_params": _scatter_params,
    "set_slice": _set_slice,
    "stack_params": _stack_params,
}
