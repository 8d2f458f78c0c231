"""What generated code calls besides torch: the draws of `exec.keys`, which are the exact executor's numbers, made on
the host and injected, and the arithmetic of hyperparameters, which are exact rationals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from presk_rel.exec import keys

torch: Any = import_module("torch")


class Split:
    """The children of a key, computed when something is drawn from one: a split costs as much as fifty kernels, and a
    key that is only passed on is never needed."""

    __slots__ = ("count", "made", "parent")

    def __init__(self, parent: bytes | Child, count: int) -> None:
        self.parent = parent
        self.count = count
        self.made: tuple[bytes, ...] | None = None

    def __getitem__(self, i: int) -> Child:
        return Child(self, i)


class Child:
    __slots__ = ("number", "split")

    def __init__(self, split: Split, number: int) -> None:
        self.split = split
        self.number = number


Key = bytes | Child


def key_bytes(key: Key) -> bytes:
    """The key itself."""
    waiting: list[Split] = []
    at = key
    while isinstance(at, Child) and at.split.made is None:
        waiting.append(at.split)
        at = at.split.parent
    for split in reversed(waiting):
        split.made = keys.split(_known(split.parent), split.count)
    return _known(key)


def _known(key: Key) -> bytes:
    if isinstance(key, bytes):
        return key
    assert key.split.made is not None
    return key.split.made[key.number]


def _tensor(data: Any, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    host = np.ascontiguousarray(data).reshape(shape)
    if dtype is torch.float32:
        host = host.astype(np.float32)  # rounds as torch does
    return torch.from_numpy(host).to(dtype=dtype, device=device)


def normal(key: Key, shape: tuple[int, ...], std: float, dtype: Any, device: Any) -> Any:
    """Normal draws of mean 0, of `shape`."""
    return _tensor(keys.standard_normal(key_bytes(key), math.prod(shape)) * std, shape, dtype, device)


def xavier_uniform(key: Key, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    return _tensor(keys.xavier_uniform(key_bytes(key), shape), shape, dtype, device)


def dropout_mask(key: Key, shape: tuple[int, ...], rate: Fraction, dtype: Any, device: Any) -> Any:
    """0 where the draw is below `rate`, which is compared exactly, else 1/(1 - rate)."""
    dropped = keys.dropped(key_bytes(key), math.prod(shape), rate)
    return _tensor(np.where(dropped, 0.0, float(1 / (1 - rate))), shape, dtype, device)


def uniform(key: Key, shape: tuple[int, ...], device: Any) -> Any:
    """Uniform draws of `shape`, in doubles whatever the program runs in."""
    return _tensor(keys.uniform(key_bytes(key), math.prod(shape)), shape, torch.float64, device)


def sample(draws: Any, logits: Any) -> Any:
    """The least index whose cumulative probability exceeds its position's draw (`draws`: 1 for the classes), in
    doubles."""
    cumulative = torch.cumsum(torch.softmax(logits.to(torch.float64), -1), -1)
    return torch.clamp(torch.sum(cumulative <= draws, -1), max=logits.shape[-1] - 1)


def double(value: Fraction) -> float:
    """The nearest double; an infinity beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _greater(x: float, y: float) -> float:
    return x if x > y or math.isnan(x) else y


def _less(x: float, y: float) -> float:
    return x if x < y or math.isnan(x) else y


def _positive(x: float) -> float:
    return x if x > 0 or math.isnan(x) else 0.0


_SCALARS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (operator.add, np.add),
    "sub": (operator.sub, np.subtract),
    "mul": (operator.mul, np.multiply),
    "div": (float.__truediv__, np.divide),
    "neg": (operator.neg, np.negative),
    "pow": (math.pow, np.float_power),
    "max": (_greater, np.maximum),
    "min": (_less, np.minimum),
    "relu": (_positive, _positive),
    "abs": (abs, np.abs),
    "exp": (math.exp, np.exp),
    "log": (math.log, np.log),
    "sqrt": (math.sqrt, np.sqrt),
    "sin": (math.sin, np.sin),
    "cos": (math.cos, np.cos),
    "tanh": (math.tanh, np.tanh),
}
"""Each primitive on doubles where it is defined and finite, at a tenth of the price, and everywhere."""


def scalar(op: str, *given: float) -> float:
    """A primitive on doubles: infinities and no numbers as IEEE 754 has them."""
    common, everywhere = _SCALARS[op]
    try:
        return common(*given)
    except (ArithmeticError, ValueError):
        with np.errstate(all="ignore"):
            return float(everywhere(*map(np.float64, given)))


def whole_quotient(a: Fraction, b: Fraction) -> Fraction:
    """The quotient of naturals or integers: towards zero."""
    return Fraction(int(a / b))


class small:
    """Torch's own kernels for what oneDNN is slow at on small tensors: the switch is torch's, for the whole process."""

    __slots__ = ("was",)

    def __enter__(self) -> None:
        self.was = torch._C._get_mkldnn_enabled()
        torch._C._set_mkldnn_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch._C._set_mkldnn_enabled(self.was)
