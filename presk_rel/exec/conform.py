"""How far a measured result is from the proven one, entry by entry, in exact arithmetic.

The distance is normalised by the largest entry of the whole result, never per tensor: a gradient that is analytically
0 has rounding noise for its only entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from presk_rel.diagnostics import PreskBug
from presk_rel.exec.values import HyperValue, IndexTensor, KeyValue, MaskTensor, Rounded, Tensor, Value, leaves

BOUNDS = {"f64": Fraction(1, 10**12), "f32": Fraction(2, 10**6), "bf16": Fraction(1, 20)}
"""What is allowed of every function; of one that magnifies changes of its inputs, `exec.condition` allows more."""
FAR = 5000
"""A decimal exponent beyond those of every float."""


MOST = Fraction(10) ** 300
"""The numbers of a `Distance` are cut here: they are printed as floats."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the two results have no distance: what each holds there, as text."""

    where: str
    measured: str
    proven: str


@dataclass(frozen=True, slots=True)
class Distance:
    """`relative` is the largest difference over `scale`, the largest magnitude of the proven result (1 if that is 0);
    `where` is the entry it occurs at; `exact_error` the largest error bound of the proven side. `entries` counts reals,
    `discrete` what is compared for equality: indices, truth values, keys, numbers of hyperparameter type. `differing`
    counts what has no distance, by entry: discrete values that are not equal, and reals measured as an infinity or NaN;
    `first` is the first of them, and `where` its place."""

    relative: Fraction
    scale: Fraction
    where: str
    exact_error: Fraction
    entries: int
    differing: int
    discrete: int = 0
    first: Difference | None = None


def distance(proven: Value, measured: Value) -> Distance:
    """The distance of `measured` (doubles) from `proven` (correctly rounded decimals)."""
    pairs = list(zip(leaves(proven), leaves(measured), strict=True))
    largest, scale, error = Fraction(0), Fraction(0), Fraction(0)
    where, entries, discrete = "", 0, 0
    lost: list[Difference] = []
    for (path, exact), (_, other) in pairs:
        match exact, other:
            case Tensor(_, Rounded() as rounded), Tensor(_, data):
                error = max(error, _exact(rounded.error_bound or "0"))
                exacts = [_exact(t) for t in rounded.text.reshape(-1).tolist()]
                others = np.asarray(data).reshape(-1).tolist()
                entries += len(exacts)
                scale = max([scale, *map(abs, exacts)])
                for index, (a, b) in enumerate(zip(exacts, others, strict=True)):
                    if not np.isfinite(b):
                        proven_text = str(rounded.text.reshape(-1)[index])
                        lost.append(Difference(_at(path, index, np.shape(data)), str(b), proven_text))
                    elif abs(a - Fraction(b)) > largest:
                        largest, where = abs(a - Fraction(b)), _at(path, index, np.shape(data))
            case _:
                here = _discrete(path, exact, other)
                discrete += len(here)
                lost += [d for d in here if d.measured != d.proven]
    relative, scale, error = (min(x, MOST) for x in (largest / (scale or 1), scale, error))
    first = lost[0] if lost else None
    return Distance(relative, scale, first.where if first else where, error, entries, len(lost), discrete, first)


def change(a: Value, b: Value) -> Fraction:
    """The largest difference of two proven results over the largest entry of the first; discrete values count for
    nothing."""
    largest, scale = Fraction(0), Fraction(0)
    for (_, x), (_, y) in zip(leaves(a), leaves(b), strict=True):
        match x, y:
            case Tensor(_, Rounded(text)), Tensor(_, Rounded(other)):
                pairs = zip(text.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)
                exact = [(_exact(p), _exact(q)) for p, q in pairs]
                scale = max([scale, *(abs(p) for p, _ in exact)])
                largest = max([largest, *(abs(p - q) for p, q in exact)])
            case _:
                continue
    return largest / (scale or 1)


def _at(path: str, index: int, shape: tuple[int, ...]) -> str:
    return f"{path or 'result'}[{', '.join(map(str, np.unravel_index(index, shape))) if shape else ''}]"


def _exact(text: str) -> Fraction:
    """The number of a decimal. One beyond all floats counts as 10^±`FAR`: no integer of its length is made."""
    digits, _, exponent = text.partition("e")
    if abs(int(exponent or "0")) <= FAR:
        return Fraction(text)
    return Fraction(0) if exponent.startswith("-") else Fraction(digits) * Fraction(10) ** FAR


def _discrete(path: str, exact: Value, other: Value) -> list[Difference]:
    """The values of the two, entry by entry, whether they differ or not."""
    match exact, other:
        case (IndexTensor(_, _, a), IndexTensor(_, _, b)) | (MaskTensor(_, a), MaskTensor(_, b)):
            proven, measured = np.asarray(a), np.asarray(b)
            if proven.shape != measured.shape:
                raise PreskBug("conform", f"the shape {measured.shape} against {proven.shape}")
            pairs = zip(proven.reshape(-1).tolist(), measured.reshape(-1).tolist(), strict=True)
            return [Difference(_at(path, i, proven.shape), _text(q), _text(p)) for i, (p, q) in enumerate(pairs)]
        case (HyperValue(_, p), HyperValue(_, q)):
            return [Difference(path or "result", repr(float(q)), repr(float(p)))]
        case KeyValue(a), KeyValue(b):
            return [Difference(path or "result", b.hex(), a.hex())]
        case _:
            raise PreskBug("conform", f"a {type(exact).__name__} against a {type(other).__name__}")


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(int(value))
