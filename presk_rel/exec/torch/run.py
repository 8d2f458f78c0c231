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
from presk_rel.diagnostics import Diagnostic, Diagnostics, PreskBug, PreskError
from presk_rel.elab.ty import Hyper, Idx, Key, Mask, TupleOf
from presk_rel.exec.shapes import Env, length
from presk_rel.exec.torch.bound import bound
from presk_rel.exec.torch.emit import Emitted, Input, emit, taken
from presk_rel.exec.torch.inductor import Code, Result, Runner, Status, Tier, auto_after, no_compiler
from presk_rel.exec.torch.layouts import Array
from presk_rel.exec.torch.loaded import Loaded, loaded
from presk_rel.exec.torch.nodes import Branch, Node, Single, operands_of
from presk_rel.exec.torch.operand import Operand, run_axes
from presk_rel.exec.torch.parts import on_host
from presk_rel.exec.values import (
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    MaskTensor,
    Rounded,
    StackValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    map_leaves,
)

Dtype = Literal["f64", "f32", "bf16"]
DTYPES = {"f64": "float64", "f32": "float32", "bf16": "bfloat16"}
"""The torch names of the types a program may run in; bf16 sums in f32 inside a kernel."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An entry ready to run: `function(inputs)` takes and returns a tuple of torch values in `emitted`'s order, by the
    plan where there is one (`bound`); `generated` is the file's function as it stands, without `inference_mode`.
    `parts` are the functions it consists of."""

    emitted: Emitted
    function: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    generated: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    parts: Loaded
    runner: Runner | None
    dtype: Any
    device: Any

    def called(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """As autograd calls it: without `inference_mode` and new tensors every time; machine code when that is due."""
        if self.runner is not None and self.runner.due():
            return self.runner.code.file.entry(inputs, self.runner)
        return self.generated(inputs)

    @property
    def status(self) -> Status:
        """How it ran last; `emit` before it ran."""
        return self.runner.status if self.runner else Status("emit", None, self.emitted.kernels)


@dataclass(frozen=True, slots=True)
class TorchResult:
    """The value of a run, its dims, and the generated source that computed it."""

    value: Value
    dims: Mapping[str, int]
    source: str
    kernels: int
    status: Status


def compile_entry(
    program: Program,
    entry: str,
    env: Env,
    dtype: Dtype,
    device: str = "cpu",
    *,
    unroll: bool = False,
    tier: Tier = "emit",
    often: bool = False,
    planned: bool = True,
) -> Compiled:
    """Generate and load the function of a flat entry in an environment that has all its dims and prefixes. `often` says
    that it will run more than once: `auto` then compiles it in time. Without `planned`, tier `emit` runs the generated
    function as it reads: which products a plan does as one (`exec.torch.families`) changes last bits, and those of a
    gradient are then the same however residuals are kept."""
    torch: Any = import_module("torch")
    place = place_of(torch, device)
    device = str(place)
    emitted = emit(program, entry, env, DTYPES[dtype], device, unroll=unroll)
    found = loaded(emitted.source)
    function = found.entry

    def code() -> Code:
        """The file for a compiler."""
        if device != "cpu":
            return Code(
                loaded(emit(program, entry, env, DTYPES[dtype], device, unroll=unroll, reader="compiler").source)
            )
        if no_compiler() is not None:
            return Code(found)
        fine = emit(program, entry, env, DTYPES[dtype], device, unroll=unroll, reader="machine")
        leaves = (taken(x, DTYPES[dtype]) for x in operands_of(fine.result) if not on_host(x))
        shapes = ((list(x.sizes), x.dtype) for x in leaves if isinstance(x, Array))
        results = (Result(*shape, n) for shape, n in zip(shapes, fine.slices, strict=True))
        return Code(loaded(fine.source), tuple(results))

    runner = _runner(emitted, code, device, tier, often=often)

    def call(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if runner is not None and runner.due():
            with torch.inference_mode():
                return runner.code.file.entry(inputs, runner)
        if planned and emitted.plan is not None:
            return bound(emitted, found.namespace, inputs).run()
        with torch.inference_mode():
            return function(inputs)

    return Compiled(emitted, call, function, found, runner, getattr(torch, DTYPES[dtype]), place)


def _runner(emitted: Emitted, code: Callable[[], Code], device: str, tier: Tier, *, often: bool) -> Runner | None:
    """What makes machine code of the tensors' part; None for tier `emit`."""
    if tier == "emit" or (tier == "auto" and not often):
        return None
    after = auto_after(emitted.kernels) if tier == "auto" else 0
    return Runner(code, device, emitted.kernels, after)


def fallen_back(status: Status) -> Diagnostics:
    """The warning that a tier could not be had, if so."""
    found = Diagnostics()
    if status.reason is not None:
        text = f"tier inductor cannot be had, and tier {status.tier} ran: {status.reason}"
        found.add(Diagnostic("W7104", text, None, severity="warning"))
    return found


def place_of(torch: Any, device: str) -> Any:
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
    if place.type == "cuda" and place.index is None:  # tensors name theirs, and the current one may be another later
        return torch.device("cuda", torch.cuda.current_device())
    return place


def run_torch(compiled: Compiled, args: Mapping[str, Value]) -> Value:
    """The entry's value on host values `args` by parameter name."""
    torch: Any = import_module("torch")
    inputs = tuple(to_torch(torch, compiled, at(args[i.parameter], i)) for i in compiled.emitted.inputs)
    returned = compiled.function(inputs)
    return _value(compiled.emitted.result, returned, compiled.emitted.env)


def at(value: Value, place: Input) -> Value:
    """The leaf of a parameter's value that an input takes."""
    for name in place.path:
        match value:
            case TreeValue(fields):
                value = fields[name]
            case TupleValue(items):
                value = items[int(name)]
            case _:
                raise PreskBug("torch", f"`{place.parameter}` has no part `{'.'.join(place.path)}`")
    return value


def to_torch(torch: Any, compiled: Compiled, value: Value) -> Any:
    """A leaf as generated code takes it."""
    match value:
        case Tensor(_, data):
            return torch.from_numpy(doubles(data)).to(dtype=compiled.dtype, device=compiled.device)
        case IndexTensor(_, _, data) | MaskTensor(_, data):
            return torch.from_numpy(np.ascontiguousarray(data)).to(device=compiled.device)
        case HyperValue(_, number):
            return number
        case KeyValue(key):
            return key
        case StackValue(items):
            return tuple(to_torch(torch, compiled, v) for v in items)
        case _:
            raise PreskBug("torch", f"a {type(value).__name__} is no input of generated code")


def doubles(data: Any) -> Any:
    """Host reals as float64: exact for doubles, correctly rounded for integers and fractions."""
    array = np.asarray(data)
    if array.dtype == object:
        flat = [float(Fraction(x)) for x in array.reshape(-1)]
        array = np.array(flat, dtype=np.float64).reshape(array.shape)
    return np.array(array, dtype=np.float64, copy=True, order="C")


def _value(node: Node, returned: tuple[Any, ...], env: Env) -> Value:
    match node:
        case Single(operand):
            return _leaf(returned[int(operand.name)], operand, env)
        case Branch(TupleOf(), parts):
            return TupleValue(tuple(_value(v, returned, env) for _, v in parts))
        case Branch(_, parts):
            return TreeValue({k: _value(v, returned, env) for k, v in parts})


def _leaf(found: Any, operand: Operand, env: Env) -> Value:
    if isinstance(operand.type, Key):
        key_bytes: Callable[[Any], bytes] = import_module("presk_rel.exec.torch.support").key_bytes
        if operand.type.shape.is_scalar:
            return KeyValue(key_bytes(found))
        return StackValue(tuple(KeyValue(key_bytes(k)) for k in found))
    if isinstance(operand.type, Hyper):
        return HyperValue(operand.type.kind, Fraction(found))
    host, run = found.detach().to(device="cpu"), run_axes(operand.type, env)
    match operand.type:
        case Idx(bound):
            return IndexTensor(length(bound, env, "the result"), run, host.numpy())
        case Mask():
            return MaskTensor(run, host.numpy())
        case _:
            return Tensor(run, host.double().numpy())


def printable(value: Value, digits: int | None = None) -> Value:
    """The value with its doubles as the shortest decimals that read back as them, or of so many digits, for
    `exec.render`."""

    def leaf(x: Leaf) -> Value:
        if not isinstance(x, Tensor):
            return x
        flat = np.asarray(x.data).reshape(-1).tolist()
        short = flat if digits is None else [float(f"{v:.{digits - 1}e}") for v in flat]
        text = np.array([repr(v) for v in short], dtype=object).reshape(np.shape(x.data))
        return Tensor(x.axes, Rounded(text, None, 0))

    return map_leaves(leaf, value)
