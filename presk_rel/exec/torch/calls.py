"""Every torch call of generated code: what it gives, how many kernels it launches, how it writes into a buffer.

One row per call; a call that has none is an error a test finds. `launches` counts what torch dispatches, which a test
compares with what it did dispatch. `into` is how the same kernel writes where it is told: the function, and the name
of the argument (more names for more results).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from presk_rel.exec.torch.layouts import Array, completed, expanded, fresh, pointwise, viewed

Result = Any
"""An `Array`, or a tuple of them."""


@dataclass(frozen=True, slots=True)
class Call:
    """`result(*args, **keywords)`; None of `launches`: a view where it can be one, else a copy."""

    result: Callable[..., Result]
    launches: int = 1
    into: tuple[str, ...] = ()
    more: tuple[Any, ...] = ()
    """What the function of `into` takes besides."""


def _arrays(args: Sequence[Any]) -> list[Array]:
    return [a for a in args if isinstance(a, Array)]


def _real(*args: Any, **_: Any) -> Array:
    """Entry by entry; the type of the operands (an operand without axes does not widen)."""
    arrays = _arrays(args)
    return pointwise(arrays, max(arrays, key=lambda a: (bool(a.sizes), _WIDTH[a.dtype])).dtype)


_WIDTH = {"bool": 0, "int64": 1, "bfloat16": 2, "float32": 3, "float64": 4}


def _truth(*args: Any, **_: Any) -> Array:
    return pointwise(_arrays(args), "bool")


def _like(x: Array, *_: Any, **__: Any) -> Array:
    return pointwise([x], x.dtype)


def _dense_like(x: Array, *_: Any, **__: Any) -> Array:
    return fresh(x.sizes, x.dtype)


def _reduced(x: Array, dims: int | tuple[int, ...] = (), **_: Any) -> Array:
    axes = dims if isinstance(dims, tuple) else (dims,)
    gone = {d % len(x.sizes) for d in axes} if axes else set(range(len(x.sizes)))
    return fresh((n for i, n in enumerate(x.sizes) if i not in gone), x.dtype)


def _argmax(x: Array, dim: int) -> Array:
    return fresh((n for i, n in enumerate(x.sizes) if i != dim % len(x.sizes)), "int64")


def _mm(x: Array, y: Array, *, out_dtype: str = "", **_: Any) -> Array:
    return fresh((*x.sizes[:-1], y.sizes[-1]), out_dtype or x.dtype)


def _mv(x: Array, y: Array, **_: Any) -> Array:
    return fresh(x.sizes[:-1], x.dtype)


def _addmm(_: Array, x: Array, y: Array, **__: Any) -> Array:
    return _mm(x, y)


def _addbmm(_: Any, x: Array, y: Array, **__: Any) -> Array:
    return fresh((x.sizes[1], y.sizes[2]), x.dtype)


def _cat(parts: tuple[Array, ...], dim: int = 0) -> Array:
    sizes = list(parts[0].sizes)
    sizes[dim] = sum(p.sizes[dim] for p in parts)
    return fresh(sizes, parts[0].dtype)


def _stack(parts: tuple[Array, ...]) -> Array:
    return fresh((len(parts), *parts[0].sizes), parts[0].dtype)


def _filled(sizes: Any, *_: Any, dtype: str = "float32", **__: Any) -> Array:
    return fresh(sizes, dtype)


def _scalar(_: Any, dtype: str = "float32", **__: Any) -> Array:
    return fresh((), dtype)


def _backward_of(position: int) -> Callable[..., Array]:
    """A gradient of the shape that argument `position` gives."""
    return lambda *args, **_: fresh(args[position], args[0].dtype)


def _embedding(w: Array, i: Array) -> Array:
    return fresh((*i.sizes, w.sizes[-1]), w.dtype)


def _embedding_backward(ct: Array, _: Array, rows: int, *__: Any) -> Array:
    return fresh((rows, ct.sizes[-1]), ct.dtype)


def _layer_norm(x: Array, sizes: Any, *_: Any) -> tuple[Array, ...]:
    rows = x.sizes[: len(x.sizes) - len(sizes)] + (1,) * len(sizes)
    return fresh(x.sizes, x.dtype), fresh(rows, x.dtype), fresh(rows, x.dtype)


def _layer_norm_backward(ct: Array, x: Array, sizes: Any, *rest: Any) -> tuple[Any, ...]:
    mask = rest[-1]
    shapes = (x.sizes, tuple(sizes), tuple(sizes))
    return tuple(fresh(s, x.dtype) if m else None for s, m in zip(shapes, mask))


def _nll(x: Array, y: Array, _: Any, reduction: int, *__: Any) -> tuple[Array, ...]:
    return fresh(y.sizes if reduction == 0 else (), x.dtype), fresh((), x.dtype)


def _nll_backward(_: Array, x: Array, *__: Any) -> Array:
    return fresh(x.sizes, x.dtype)


def _cross_entropy(x: Array, y: Array, **_: Any) -> Array:
    return fresh(y.sizes, x.dtype)


def _mse(x: Array, *_: Any) -> Array:
    return fresh((), x.dtype)


def _mse_backward(_: Array, x: Array, y: Array, *__: Any) -> Array:
    return pointwise([x, y], x.dtype)


def _interleaved(x: Array) -> Array:
    """A tensor of heads that lies in memory with the heads' axis after the positions'."""
    _, heads, seq, width = x.sizes
    return fresh(x.sizes, x.dtype).viewed(x.sizes, (seq * heads * width, width, heads * width, 1))


def _attention(q: Array, k: Array, v: Array, *_: Any, **__: Any) -> tuple[Array, ...]:
    return _interleaved(q), fresh(q.sizes[:-1], "float32" if q.dtype == "bfloat16" else q.dtype)


def _attention_backward(ct: Array, q: Array, k: Array, v: Array, *_: Any, **__: Any) -> tuple[Array, ...]:
    return _interleaved(q), _interleaved(k), _interleaved(v)


def _efficient(q: Array, *_: Any, **__: Any) -> tuple[Array, ...]:
    """Sums for a multiple of 32 queries, and numbers of the generator of draws."""
    batch, heads, queries, _width = q.sizes
    sums = fresh((batch, heads, -(-queries // 32) * 32), "float32")
    return _interleaved(q), sums, fresh((), "int64"), fresh((), "int64")


def _efficient_backward(ct: Array, q: Array, k: Array, v: Array, *_: Any, **__: Any) -> tuple[Array | None, ...]:
    return _interleaved(q), _interleaved(k), _interleaved(v), None


def _flash(q: Array, *_: Any, **__: Any) -> tuple[Array | None, ...]:
    """The value, sums, nothing of operands of several lengths, numbers of the generator of draws, and no mask."""
    draws = (fresh((2,), "uint64"), fresh((), "uint64"), fresh((0,), q.dtype))
    return _interleaved(q), fresh(q.sizes[:-1], "float32"), None, None, None, None, *draws


def _sample(_: Array, logits: Array) -> Array:
    return fresh(logits.sizes[:-1], "int64")


def _arange(count: int, **_: Any) -> Array:
    return fresh((count,), "int64")


# ---------------------------------------------------------------------------------------------------------- views


def _select(x: Array, dim: int, index: int) -> Array:
    at = dim % len(x.sizes)
    start = index % max(x.sizes[at], 1) * x.strides[at]
    return x.viewed(x.sizes[:at] + x.sizes[at + 1 :], x.strides[:at] + x.strides[at + 1 :], start)


def _narrow(x: Array, dim: int, start: int, length: int) -> Array:
    at = dim % len(x.sizes)
    return x.viewed((*x.sizes[:at], length, *x.sizes[at + 1 :]), x.strides, start * x.strides[at])


def _unbind(x: Array) -> tuple[Array, ...]:
    return tuple(_select(x, 0, i) for i in range(x.sizes[0]))


def _transpose(x: Array, a: int, b: int) -> Array:
    order = list(range(len(x.sizes)))
    a, b = a % len(order), b % len(order)
    order[a], order[b] = b, a
    return _permute(x, tuple(order))


def _permute(x: Array, order: tuple[int, ...]) -> Array:
    return x.viewed((x.sizes[i] for i in order), (x.strides[i] for i in order))


def _swapped(x: Array) -> Array:
    return _transpose(x, -1, -2)


def _reversed(x: Array) -> Array:
    return _permute(x, tuple(range(len(x.sizes)))[::-1])


def _unsqueeze(x: Array, dim: int) -> Array:
    at = dim % (len(x.sizes) + 1)
    step = x.sizes[at] * x.strides[at] if at < len(x.sizes) else 1
    return x.viewed((*x.sizes[:at], 1, *x.sizes[at:]), (*x.strides[:at], step, *x.strides[at:]))


def _squeeze(x: Array, dim: int) -> Array:
    return _select(x, dim, 0)


def _reshape(x: Array, sizes: int | tuple[int, ...]) -> Array:
    """A view where the strides allow it, else a copy (which has no root)."""
    target = completed(sizes if isinstance(sizes, tuple) else (sizes,), prod(x.sizes))
    strides = viewed(x.sizes, x.strides, target)
    return fresh(target, x.dtype) if strides is None else x.viewed(target, strides)


def _expand(x: Array, sizes: Any) -> Array:
    return expanded(x, sizes)


def _to(x: Array, dtype: str) -> Array:
    return x if x.dtype == dtype else pointwise([x], dtype)


def _as_strided(x: Array, sizes: Any, strides: Any, start: int = 0) -> Array:
    return replace(x, sizes=tuple(sizes), strides=tuple(strides), offset=start)


_ENTRYWISE = (
    "add sub mul div neg exp tanh sqrt abs log sigmoid sin cos sign pow maximum minimum addcmul addcdiv where erf "
    "rsqrt reciprocal square log1p expm1"
)
_COMPARED = "lt le gt ge eq ne logical_not logical_and"


def _torch(names: str, result: Callable[..., Result], into: str = "out", **options: Any) -> dict[str, Call]:
    return {f"torch.{n}": Call(result, into=(f"torch.{n}", into) if into else (), **options) for n in names.split()}


def _aten(name: str, result: Callable[..., Result], overload: str, *into: str) -> dict[str, Call]:
    """A call of `torch.ops.aten`; the buffer overload is a kernel of its own or copies, in one dispatch either way."""
    names = (f"torch.ops.aten.{name}.{overload}", *(into or (overload,))) if overload else ()
    return {f"torch.ops.aten.{name}": Call(result, into=names)}


CALLS: dict[str, Call] = {
    **_torch(_ENTRYWISE, _real),
    **_torch(_COMPARED, _truth),
    "torch.relu": Call(_real, into=("torch.clamp_min", "out"), more=(0,)),
    "torch.rsub": Call(_real, into=("torch.sub", "out")),
    **_torch("sum mean logsumexp", _reduced),
    **_torch("softmax log_softmax _softmax _log_softmax cumsum", _dense_like),
    **_torch("mm bmm", _mm),
    **_torch("addmm baddbmm", _addmm),
    **_torch("addbmm", _addbmm),
    **_torch("mv dot", _mv),
    **_torch("cat", _cat),
    **_torch("stack", _stack),
    **_torch("argmax", _argmax),
    **_torch("scatter_add", _like),
    **_torch("masked_fill clone select_scatter ones_like zeros_like", _like, ""),
    **_torch("full empty ones zeros", _filled, ""),
    **_torch("scalar_tensor", _scalar, ""),
    "torch.tril": Call(_dense_like),
    "torch.arange": Call(_arange),
    "torch.embedding": Call(_embedding),
    "torch.native_layer_norm": Call(_layer_norm, into=("torch.ops.aten.native_layer_norm.out", "out0", "out1", "out2")),
    "torch.nn.functional.gelu": Call(_like, into=("torch._C._nn.gelu", "out")),
    "torch.nn.functional.cross_entropy": Call(_cross_entropy, launches=2),
    **_aten("gelu_backward", _real, "grad_input"),
    **_aten("threshold_backward", _real, "grad_input"),
    **_aten("tanh_backward", _real, "grad_input"),
    **_aten("sigmoid_backward", _real, "grad_input"),
    **_aten("_softmax_backward_data", _dense_like, "out", "grad_input"),
    **_aten("_log_softmax_backward_data", _dense_like, "out"),
    **_aten("select_backward", _backward_of(1), "out"),
    **_aten("slice_backward", _backward_of(1), "out"),
    **_aten("embedding_dense_backward", _embedding_backward, "out"),
    **_aten("native_layer_norm", _layer_norm, "out", "out0", "out1", "out2"),
    **_aten("native_layer_norm_backward", _layer_norm_backward, "out", "out0", "out1", "out2"),
    **_aten("nll_loss_forward", _nll, "output", "output", "total_weight"),
    **_aten("nll_loss_backward", _nll_backward, "grad_input"),
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": Call(_attention),
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward": Call(_attention_backward),
    "torch.ops.aten._scaled_dot_product_efficient_attention": Call(_efficient),
    "torch.ops.aten._scaled_dot_product_efficient_attention_backward": Call(_efficient_backward),
    "torch.ops.aten._scaled_dot_product_flash_attention": Call(_flash),
    "torch.ops.aten._scaled_dot_product_flash_attention_backward": Call(_attention_backward),
    "torch.nn.functional.mse_loss": Call(_mse),
    **_aten("mse_loss_backward", _mse_backward, "grad_input"),
    "support.sample": Call(_sample, launches=5),
}
"""Calls that launch kernels. `_softmax_backward_data`'s buffer overload has another name than its default."""

VIEWS: dict[str, Callable[..., Result]] = {
    "select": _select,
    "narrow": _narrow,
    "unbind": _unbind,
    "transpose": _transpose,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "as_strided": _as_strided,
    "mT": _swapped,
    "T": _reversed,
}
"""`torch.select(x, …)` and `x.permute(…)`: no kernel."""

COPIES: dict[str, Callable[..., Result]] = {"reshape": _reshape, "view": _reshape, "to": _to}
"""Methods that give a view or the tensor itself where they can, else one copy."""

POINTWISE = frozenset(
    (
        *(f"torch.{n}" for n in _ENTRYWISE.split()),
        *(f"torch.{n}" for n in _COMPARED.split()),
        "torch.rsub", "torch.relu", "torch.nn.functional.gelu", "torch.ops.aten.gelu_backward",
        "torch.ops.aten.threshold_backward", "torch.ops.aten.tanh_backward", "torch.ops.aten.sigmoid_backward",
    )
)  # fmt: skip
"""Calls that compute entry by entry, with broadcasting."""

_BY_NUMPY = ("float64", "float32")
DRAWS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "support.normal": (1, _BY_NUMPY),
    "support.xavier_uniform": (1, _BY_NUMPY),
    "support.dropout_mask": (1, _BY_NUMPY),
    "support.uniform": (1, _BY_NUMPY),
}
"""Draws: which argument is their shape, and the types that numpy makes; torch converts to others, in one kernel."""

FREE = frozenset({"torch.empty"})
"""Calls that launch nothing."""
