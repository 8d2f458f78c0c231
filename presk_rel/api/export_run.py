"""The exported PyTorch at the arguments of an exact run, in f64: what `presk conform` compares besides presk's code."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from presk_rel.core.analysis import reached
from presk_rel.core.ir import Prim
from presk_rel.diagnostics import PreskError
from presk_rel.elab.ty import (
    Instance,
    Params,
    Real,
    Stacked,
    TupleOf,
    Type,
    field_names,
    field_type,
    map_dims,
    map_instance,
)
from presk_rel.exec.torch.run import doubles
from presk_rel.exec.values import (
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    MaskTensor,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    map_leaves,
    shape_of,
    stack,
)
from presk_rel.smt.linear import Linear, constant

if TYPE_CHECKING:
    from presk_rel.exec.exact.run import RunResult
    from presk_rel.export.torch_file import Exported
    from presk_rel.session import Session
    from presk_rel.types.tree import TFn


@dataclass(frozen=True, slots=True)
class ExportRun:
    """The value of the exported function, or why there is none: `failed` where it ought to have one."""

    value: Value | None
    reason: str | None = None
    failed: bool = False


def run_exported(session: Session, entry: str, exact: RunResult) -> ExportRun:
    """An entry of the exported file at the arguments of its exact run. What PyTorch draws by its own generator has no
    value to compare."""
    reason = _unlike(session, entry)
    if reason is not None:
        return ExportRun(None, reason)
    try:
        made = session.exported()
    except PreskError as error:
        return ExportRun(None, error.diagnostics[0].message)
    function = made.context.by_name.get(entry)
    if function is None or entry not in made.context.nodes:
        return ExportRun(None, "the exported file has no such function")
    try:
        with _double():
            return ExportRun(_At(made, function, dict(exact.dims)).value(exact))
    except Exception as error:  # whatever torch raises: the file is what is tested
        return ExportRun(None, f"the exported file fails: {type(error).__name__}: {error}"[:300], failed=True)


def _unlike(session: Session, entry: str) -> str | None:
    """Why the exported function gives other values."""
    if session.path.endswith(".core"):
        return "PSK-Core has no export"
    ops = {b.op.op for f in reached(session.core, entry) for b in f.bindings if isinstance(b.op, Prim)}
    if "sample" in ops or "dropout_mask" in ops:
        return "PyTorch draws by its own generator"
    return None


@contextmanager
def _double() -> Generator[None]:
    torch: Any = import_module("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@dataclass(frozen=True, slots=True)
class _At:
    """A function of the exported file at dims."""

    made: Exported
    function: TFn
    dims: Mapping[str, int]

    def value(self, exact: RunResult) -> Value:
        """What it gives for the arguments of a run, in the form of the run's value."""
        namespace: dict[str, Any] = {"__name__": "exported"}
        exec(compile(self.made.source, "<exported>", "exec"), namespace)
        types = [self._closed(p.type) for p in self.function.params]
        given = list(exact.args)
        if self.function.theta is None:
            call = namespace[self.made.context.functions[self.function.name]]
        else:
            call = self._method(namespace, self.function.theta.instance, given.pop(0))
        values = iter([self._argument(t, v) for t, v in zip(types, given, strict=True)])
        arguments = [
            next(values) if net is None else self._module(namespace, net)
            for net in self.made.parameters(self.function.name)
        ]
        keywords = {name: self.dims[dim] for dim, name in self.made.keywords(self.function.name).items()}
        return self._result(self._closed(self.function.result), call(*arguments, **keywords), exact.value)

    def _dim(self, form: Linear) -> Linear:
        return form.substitute({d: constant(n) for d, n in self.dims.items()})

    def _closed(self, ty: Type) -> Type:
        return map_dims(ty, self._dim)

    def _module(self, namespace: dict[str, Any], instance: Instance) -> Any:
        return eval(self.made.constructor(map_instance(instance, self._dim)), namespace)

    def _method(self, namespace: dict[str, Any], instance: Instance, tree: Value) -> Any:
        """A function of a module that owns the parameters."""
        module = self._module(namespace, instance)
        module.load_state_dict(self._argument(Params(map_instance(instance, self._dim)), tree))
        return getattr(module, self.made.context.method(self.function))

    def _argument(self, ty: Type, value: Value) -> Any:
        match ty, value:
            case Params(instance), _:
                return self.made.state(instance, _nested(value))
            case TupleOf(items), TupleValue(parts):
                return tuple(self._argument(t, v) for t, v in zip(items, parts, strict=True))
            case _:
                return _nested(value)

    def _result(self, ty: Type, found: Any, like: Value) -> Value:
        match ty, like:
            case Params(instance), _:
                return self._tree(instance, found, "", like)
            case TupleOf(items), TupleValue(parts):
                return TupleValue(tuple(self._result(t, x, v) for t, x, v in zip(items, found, parts, strict=True)))
            case _:
                return _leaf(found, like)

    def _tree(self, instance: Instance, state: Mapping[str, Any], front: str, like: Value) -> Value:
        """A state dict as a parameter tree."""
        modules = self.made.context.program.modules
        if isinstance(instance, Stacked):
            layers = [self._tree(instance.inner, state, f"{front}{i}.", like) for i in range(int(instance.count.const))]
            return stack(layers, layers[0]) if layers else map_leaves(_empty, like)
        assert isinstance(like, TreeValue)
        fields: dict[str, Value] = {}
        for name in field_names(modules, instance):
            key, below = f"{front}{self.made.context.field_path(instance, name)}", field_type(modules, instance, name)
            if isinstance(below, Real):
                fields[name] = Tensor((), state[key].detach().numpy())
            elif below is not None:
                fields[name] = self._tree(below.instance, state, f"{key}.", like.fields[name])
        return TreeValue(fields)


def _nested(value: Value) -> Any:
    """A value as exported code takes it, trees as nested dicts."""
    torch: Any = import_module("torch")
    match value:
        case TreeValue(fields):
            return {n: _nested(v) for n, v in fields.items()}
        case TupleValue(items):
            return tuple(_nested(v) for v in items)
        case Tensor(_, data):
            return torch.from_numpy(doubles(data))
        case IndexTensor(_, _, data) | MaskTensor(_, data):
            return torch.from_numpy(np.array(data))
        case HyperValue(kind, number):
            return int(number) if kind in ("nat", "int") else bool(number) if kind == "bool" else float(number)
        case KeyValue(key):
            return key
        case _:
            raise TypeError(type(value).__name__)


def _leaf(found: Any, like: Value) -> Value:
    """A result in the form of the proven one; a key, which PyTorch does not split, is taken as it is there."""
    match like:
        case Tensor(axes):
            return Tensor(axes, _array(found, axes))
        case IndexTensor(bound, axes):
            return IndexTensor(bound, axes, _array(found, axes))
        case MaskTensor(axes):
            return MaskTensor(axes, _array(found, axes))
        case HyperValue(kind):
            return HyperValue(kind, Fraction(found))
        case _:
            return like


def _empty(leaf: Leaf) -> Value:
    """What a stack of no layers has."""
    assert isinstance(leaf, Tensor)
    return Tensor(leaf.axes, np.zeros(shape_of(leaf.axes)))


def _array(found: Any, axes: tuple[tuple[str | None, int], ...]) -> Any:
    wanted = shape_of(axes)
    if tuple(found.shape) != wanted:
        raise ValueError(f"the result has the shape {list(found.shape)}, not {list(wanted)}")
    return found.detach().numpy()
