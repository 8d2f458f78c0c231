"""Results as people and programs read them: text, the JSON VALUE of `docs/cli.md`, and stored arrays.

Reals are `Rounded` (`exec.values`): decimal strings from the exact executor, floats from others. A tensor's JSON is
`{"type", "shape", "axes", "data", "error_bound", "zeros_below"}`; the last two only where something is proven.
"""

from __future__ import annotations

import importlib
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from presk_rel.exec.shapes import fail
from presk_rel.exec.values import (
    Array,
    FunctionValue,
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    MaskTensor,
    Rounded,
    RunAxes,
    StackValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    leaves,
    shape_of,
)

TEXT_ENTRIES = 1_000
"""A tensor of more entries is shortened in text (never in JSON)."""


def axes_text(axes: RunAxes) -> str:
    return ", ".join(str(n) if name is None else f"{name}: {n}" for name, n in axes)


def type_text(value: Leaf) -> str:
    """The type of a leaf with its lengths: `ℝ[batch: 2, model: 4]`."""
    match value:
        case Tensor(axes, _):
            return f"ℝ[{axes_text(axes)}]"
        case IndexTensor(bound, axes, _):
            return f"idx[{bound}][{axes_text(axes)}]"
        case MaskTensor(axes, _):
            return f"bool[{axes_text(axes)}]"
        case HyperValue(kind, _):
            return kind
        case KeyValue():
            return "key"
        case FunctionValue(fn):
            return f"function {fn}"


# ----------------------------------------------------------------------------------------------------------------- JSON


def to_json(value: Value) -> Any:
    """The VALUE of a result."""
    match value:
        case Tensor(axes, Rounded() as rounded):
            proof: dict[str, Any] = {}
            if rounded.error_bound is not None:
                proof = {"error_bound": rounded.error_bound, "zeros_below": rounded.zeros_below}
            return {**_head(value, axes), "data": rounded.text.tolist(), **proof}
        case IndexTensor(_, axes, data) | MaskTensor(axes, data):
            return {**_head(value, axes), "data": np.asarray(data).tolist()}
        case HyperValue(kind, q):
            return {"type": kind, "data": _hyper(kind, q)}
        case KeyValue(key):
            return {"type": "key", "data": key.hex()}
        case TupleValue(items) | StackValue(items):
            return [to_json(v) for v in items]
        case TreeValue(fields):
            return {name: to_json(v) for name, v in fields.items()}
        case Tensor() | FunctionValue():
            raise TypeError(f"a result is no {type(value).__name__} of raw numbers")


def _head(value: Leaf, axes: RunAxes) -> dict[str, Any]:
    return {"type": type_text(value), "shape": list(shape_of(axes)), "axes": [name for name, _ in axes]}


def _hyper(kind: str, q: Fraction) -> Any:
    if kind == "bool":
        return bool(q)
    if q.denominator == 1 and kind in ("nat", "int"):
        return q.numerator
    return str(q)


# ----------------------------------------------------------------------------------------------------------------- text


def to_text(value: Value) -> str:
    """One block per leaf: its path and type, then its entries."""
    blocks: list[str] = []
    for path, leaf in leaves(value):
        head = f"{path} : {type_text(leaf)}" if path else type_text(leaf)
        blocks.append(f"{head}{_proof(leaf)} =\n{_entries(leaf)}")
    return "\n".join(blocks)


def _proof(leaf: Leaf) -> str:
    if not isinstance(leaf, Tensor) or not isinstance(leaf.data, Rounded) or leaf.data.error_bound is None:
        return ""
    below = leaf.data.zeros_below
    zeros = f", {below} only proven to be this small" if below else ""
    return f"  (error ≤ {leaf.data.error_bound}{zeros})"


def _entries(leaf: Leaf) -> str:
    match leaf:
        case Tensor(_, Rounded() as rounded):
            return _nested(rounded.text, "  ")
        case IndexTensor(_, _, data) | MaskTensor(_, data):
            words = np.asarray(data).astype(object, order="C")
            flat: list[Any] = words.ravel().tolist()
            words.reshape(-1)[:] = [str(x).lower() for x in flat]
            return _nested(words, "  ")
        case HyperValue(kind, q):
            return f"  {str(_hyper(kind, q)).lower()}"
        case KeyValue(key):
            return f"  {key.hex()}"
        case Tensor() | FunctionValue():
            raise TypeError(f"a result is no {type(leaf).__name__} of raw numbers")


def _nested(data: Array, indent: str) -> str:
    """Nested brackets, one innermost row a line; the middle of long axes is left out."""
    if data.ndim == 0:
        return f"{indent}{data[()]}"
    keep = data.shape[0] if data.size <= TEXT_ENTRIES else 3
    head, tail = range(min(keep, data.shape[0])), range(max(keep, data.shape[0] - keep), data.shape[0])
    if data.ndim == 1:
        parts = [str(data[i]) for i in head] + (["…"] if len(tail) + len(head) < len(data) else [])
        return f"{indent}[{', '.join(parts + [str(data[i]) for i in tail])}]"
    rows = [_nested(data[i], indent + " ") for i in head]
    if len(tail) + len(head) < len(data):
        rows.append(f"{indent} …")
    rows += [_nested(data[i], indent + " ") for i in tail]
    if not rows:
        return f"{indent}[]"
    return indent + "[" + ",\n".join(rows).lstrip() + "]"


# ---------------------------------------------------------------------------------------------------------------- files


def to_arrays(value: Value) -> dict[str, Array]:
    """Every tensor by its path (`value` for a single one): reals as the nearest doubles, indices as int64, masks as
    bool."""
    found: dict[str, Array] = {}
    for path, leaf in leaves(value):
        match leaf:
            case Tensor(_, Rounded() as rounded):
                flat = [float(x) for x in rounded.text.ravel().tolist()]
                found[path or "value"] = np.array(flat, dtype=np.float64).reshape(rounded.text.shape)
            case IndexTensor(_, _, data):
                found[path or "value"] = np.asarray(data, dtype=np.int64)
            case MaskTensor(_, data):
                found[path or "value"] = np.asarray(data, dtype=np.bool_)
            case _:
                continue
    return found


def store(value: Value, path: Path) -> None:
    """`--out FILE.npz|.safetensors`. E7012 when it cannot be written."""
    arrays = to_arrays(value)
    try:
        match path.suffix.lower():
            case ".npz":
                _store_npz(arrays, path)
            case ".safetensors":
                library: Any = importlib.import_module("safetensors.numpy")
                library.save_file({n: np.ascontiguousarray(a).reshape(a.shape) for n, a in arrays.items()}, str(path))
            case _:
                fail("E7012", f"{path} ends in neither .npz nor .safetensors", None, exit_status=2)
    except OSError as error:
        fail("E7012", f"{path} cannot be written: {error.strerror or error}", None)


def _store_npz(arrays: dict[str, Array], path: Path) -> None:
    """As `numpy.savez`, which takes the names as keywords of its own and so cannot store every name."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
