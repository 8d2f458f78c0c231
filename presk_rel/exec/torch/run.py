"""Runs a flat entry on torch: compiles the generated source once, moves values in and out.

Arguments are host data (`exec.values.HostReals`), results are numpy arrays of float64, so that they compare with the
exact executor's. `--device cuda` without a GPU is a request outside what can be executed here (exit status 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal

import numpy as np

from presk_rel.core.ir import Program
from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError
from presk_rel.elab.ty import Hyper, TupleOf, Type
from presk_rel.exec import keys
from presk_rel.exec.torch.emit import Branch, Emitted, Input, Node, Single, emit
from presk_rel.exec.torch.ops import Operand, shape_of
from presk_rel.exec.values import (
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    MaskTensor,
    Rounded,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    map_leaves,
)

Dtype = Literal["f64", "f32"]
_DTYPES = {"f64": "float64", "f32": "float32"}


@dataclass(frozen=True, slots=True)
class Compiled:
    """An entry ready to run: `function(inputs)` takes and returns a tuple of torch values in `emitted`'s order."""

    emitted: Emitted
    function: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    dtype: Any
    device: Any


@dataclass(frozen=True, slots=True)
class TorchResult:
    """The value of a run, its dims, and the generated source that computed it."""

    value: Value
    dims: Mapping[str, int]
    source: str
    kernels: int


def compile_entry(program: Program, entry: str, dims: Mapping[str, int], dtype: Dtype, device: str = "cpu") -> Compiled:
    """Generate and load the function of a flat entry at `dims`."""
    torch: Any = import_module("torch")
    place = _device(torch, device)
    emitted = emit(program, entry, dict(dims))
    namespace: dict[str, Any] = {}
    exec(compile(emitted.source, f"<presk {len(emitted.source)}>", "exec"), namespace)
    function, kind = namespace["entry"], getattr(torch, _DTYPES[dtype])

    def call(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        with torch.inference_mode():
            return function(inputs, torch, keys, kind, place)

    return Compiled(emitted, call, kind, place)


def _device(torch: Any, device: str) -> Any:
    if device.split(":")[0] not in ("cpu", "cuda"):
        raise PreskError(
            [Diagnostic("E7103", f"no such device: `{device}` (cpu, cuda or cuda:n)", None)], exit_status=2
        )
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise PreskError([Diagnostic("E7103", f"no such device: `{device}`", None)], exit_status=2) from error
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if place.type == "cuda" and (place.index or 0) >= found:
        message = f"the device `{device}` is not there: torch sees {found or 'no'} CUDA device{'s' * (found != 1)}"
        raise PreskError([Diagnostic("E7102", message, None, help="run with --device cpu")], exit_status=3)
    return place


def run_torch(compiled: Compiled, args: Mapping[str, Value]) -> Value:
    """The entry's value on host values `args` by parameter name."""
    torch: Any = import_module("torch")
    inputs = tuple(_to_torch(torch, compiled, _at(args[i.parameter], i)) for i in compiled.emitted.inputs)
    returned = compiled.function(inputs)
    return _value(compiled.emitted.result, returned)


def _at(value: Value, place: Input) -> Value:
    for name in place.path:
        match value:
            case TreeValue(fields):
                value = fields[name]
            case TupleValue(items):
                value = items[int(name)]
            case _:
                raise PreskBug("torch", f"`{place.parameter}` has no part `{'.'.join(place.path)}`")
    return value


def _to_torch(torch: Any, compiled: Compiled, value: Value) -> Any:
    match value:
        case Tensor(_, data):
            return torch.from_numpy(_doubles(data)).to(dtype=compiled.dtype, device=compiled.device)
        case IndexTensor(_, _, data) | MaskTensor(_, data):
            return torch.from_numpy(np.ascontiguousarray(data)).to(device=compiled.device)
        case HyperValue(_, number):
            return torch.scalar_tensor(float(number), dtype=compiled.dtype, device=compiled.device)
        case KeyValue(key):
            return key
        case _:
            raise PreskBug("torch", f"a {type(value).__name__} is no input of generated code")


def _doubles(data: Any) -> Any:
    """Host reals as float64: exact for doubles, correctly rounded for integers and fractions."""
    array = np.asarray(data)
    if array.dtype == object:
        flat = [float(Fraction(x)) for x in array.reshape(-1)]
        array = np.array(flat, dtype=np.float64).reshape(array.shape)
    return np.array(array, dtype=np.float64, copy=True, order="C")


def _value(node: Node, returned: tuple[Any, ...]) -> Value:
    match node:
        case Single(Operand(index, ty)):
            return _leaf(returned[int(index)], ty)
        case Branch(TupleOf(), parts):
            return TupleValue(tuple(_value(v, returned) for _, v in parts))
        case Branch(_, parts):
            return TreeValue({k: _value(v, returned) for k, v in parts})


def _leaf(tensor: Any, ty: Type) -> Value:
    if isinstance(tensor, bytes):
        return KeyValue(tensor)
    data = tensor.detach().to(device="cpu").double().numpy()
    if isinstance(ty, Hyper):
        return HyperValue(ty.kind, Fraction(float(data)))
    shape = shape_of(ty)
    return Tensor(tuple((a.name, int(a.length.const)) for a in shape.axes), data)


def printable(value: Value) -> Value:
    """The value with its doubles as the shortest decimals that read back as them, for `exec.render`."""

    def leaf(x: Leaf) -> Value:
        if not isinstance(x, Tensor):
            return x
        flat = np.asarray(x.data).reshape(-1).tolist()
        text = np.array([repr(v) for v in flat], dtype=object).reshape(np.shape(x.data))
        return Tensor(x.axes, Rounded(text, None, 0))

    return map_leaves(leaf, value)
