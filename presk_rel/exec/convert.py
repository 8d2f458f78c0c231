"""From a node (a literal or a file's content) to a value of a parameter's type. Wrong shapes, dtypes and values are
refused by name (E7013); lengths that mention dims are checked later, when the dims are solved (E7015)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from presk_rel.core.ir import Program
from presk_rel.elab.ty import (
    Hyper,
    Idx,
    Instance,
    Key,
    Mask,
    ModuleDef,
    Params,
    Real,
    Shape,
    TupleOf,
    Type,
    field_names,
    field_type,
)
from presk_rel.exec import keys
from presk_rel.exec.literals import Node, is_array, is_list, is_parts, number
from presk_rel.exec.shapes import Fact, facts_of, fail
from presk_rel.exec.values import (
    Array,
    HyperValue,
    IndexTensor,
    KeyValue,
    MaskTensor,
    RunAxes,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
)


def convert(program: Program, name: str, ty: Type, node: Node) -> Value:
    """The value of argument `name`."""
    if is_parts(node) and not isinstance(ty, Params) and "data" not in node:
        node = _of_archive(name, node)
    return _value(program.modules, f"`{name}`", ty, node)


def _of_archive(name: str, parts: dict[str, Node]) -> Node:
    """The one array of a file, or the one named like the argument."""
    if name in parts:
        return parts[name]
    if len(parts) == 1:
        return next(iter(parts.values()))
    return _refuse(f"`{name}`", f"its file has {len(parts)} arrays and none is named {name}")


def _value(modules: dict[str, ModuleDef], where: str, ty: Type, node: Node) -> Value:
    if is_parts(node) and "data" in node and not isinstance(ty, Params):
        node = node["data"]
    match ty:
        case Real(shape):
            return Tensor(*_tensor(where, ty, shape, node, _reals))
        case Mask(shape):
            return MaskTensor(*_tensor(where, ty, shape, node, _booleans))
        case Idx(_, shape):
            return IndexTensor(0, *_tensor(where, ty, shape, node, _integers))
        case Hyper(kind):
            return HyperValue(kind, _hyper(where, kind, node))
        case Key():
            return KeyValue(_key(where, node))
        case TupleOf(items):
            if not is_list(node) or len(node) != len(items):
                _refuse(where, f"{ty} takes {len(items)} components in a list or parentheses")
            parts = [_value(modules, f"{where}.{i}", t, n) for i, (t, n) in enumerate(zip(items, node, strict=True))]
            return TupleValue(tuple(parts))
        case Params(instance):
            return _tree(modules, where, instance, node)
        case _:
            return fail("E7019", f"{where} : {ty} cannot be given on a command line", None, exit_status=3)


def _refuse(where: str, why: str) -> NoReturn:
    fail("E7013", f"argument {where}: {why}", None)


# ------------------------------------------------------------------------------------------------------------- tensors


def _tensor(where: str, ty: Type, shape: Shape, node: Node, entries: Any) -> tuple[RunAxes, Array]:
    array = node if is_array(node) else _array(where, node)
    k = len(shape.front)
    rank = k + len(shape.axes)
    if array.ndim < rank or (shape.prefix is None and array.ndim != rank):
        at_least = "at least " if shape.prefix is not None else ""
        _refuse(where, f"{ty} has {at_least}{rank} axes, the value given has shape {list(array.shape)}")
    ahead, rest = array.shape[:k], array.shape[array.ndim - len(shape.axes) :]
    for axis, n in zip((*shape.front, *shape.axes), (*ahead, *rest), strict=True):
        if axis.length.is_constant and axis.length.const != n:
            _refuse(where, f"{ty} has axis {axis} where the value given has shape {list(array.shape)}")
    lead = tuple((None, n) for n in array.shape[: array.ndim - len(shape.axes)])
    named = tuple((a.name, n) for a, n in zip(shape.axes, rest, strict=True))
    return (*lead, *named), entries(where, ty, array)


def _array(where: str, node: Node) -> Array:
    """Nested lists as an object array; all lists of one depth have one length."""
    shape: list[int] = []
    level: list[Node] = [node]
    while level and all(isinstance(n, list) for n in level):
        lengths = {len(n) for n in level}
        if len(lengths) != 1:
            _refuse(where, f"lists of lengths {sorted(lengths)} stand side by side")
        shape.append(lengths.pop())
        if len(shape) > 32:
            _refuse(where, "lists nest deeper than 32")
        level = [item for n in level for item in n]
    if any(isinstance(n, list | dict) for n in level):
        _refuse(where, "lists and numbers stand side by side")
    out = np.empty(len(level), dtype=object)
    out[:] = level
    return out.reshape(shape)


def _reals(where: str, ty: Type, array: Array) -> Array:
    if array.dtype == object:
        flat = [_real(where, ty, n) for n in array.ravel().tolist()]
        out = np.empty(len(flat), dtype=object)
        out[:] = flat
        return out.reshape(array.shape)
    if array.dtype.kind == "b":
        _refuse(where, f"{ty} holds reals, the value given booleans")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = [int(k) for k in np.argwhere(~np.isfinite(array))[0]]
        _refuse(where, f"entry {at} is {array[tuple(at)]}, which is no real number")
    return array


def _shown(n: Node) -> str:
    """A value as it is written in an argument."""
    return (
        ("true" if n else "false") if isinstance(n, bool) else f"`{str(n)[:40]}`" if isinstance(n, str) else str(n)[:40]
    )


def _real(where: str, ty: Type, n: Node) -> Fraction:
    value = number(n) if isinstance(n, str) else n
    if not isinstance(value, Fraction):
        _refuse(where, f"{ty} holds reals, the value given holds {_shown(n)}")
    return value


def _integers(where: str, ty: Type, array: Array) -> Array:
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
            _refuse(where, f"the index {int(array.max())} is beyond 2^63")
        return array.astype(np.int64)
    if array.dtype != object:
        _refuse(where, f"{ty} holds integers, the value given {array.dtype}")
    flat = [_integer(where, ty, n) for n in array.ravel().tolist()]
    return np.array(flat, dtype=np.int64).reshape(array.shape)


def _integer(where: str, ty: Type, n: Node) -> int:
    if not isinstance(n, Fraction) or n.denominator != 1:
        _refuse(where, f"{ty} holds integers, the value given holds {_shown(n)}")
    if abs(n) >= 2**63:
        _refuse(where, f"the index {str(n)[:40]} is beyond 2^63")
    return n.numerator


def _booleans(where: str, ty: Type, array: Array) -> Array:
    if array.dtype.kind == "b":
        return array
    flat = array.ravel().tolist()
    if array.dtype != object or not all(isinstance(n, bool) for n in flat):
        _refuse(where, f"{ty} holds truth values: true and false")
    return np.array(flat, dtype=np.bool_).reshape(array.shape)


# ----------------------------------------------------------------------------------------------------- other parameters


def _hyper(where: str, kind: str, node: Node) -> Fraction:
    if is_array(node) and node.ndim == 0:
        entry: Node = node.item()
        node = entry if isinstance(entry, bool) else Fraction(entry)
    if kind == "bool":
        if not isinstance(node, bool):
            _refuse(where, "a bool is true or false")
        return Fraction(int(node))
    value: Node = number(node) if isinstance(node, str) else node
    if not isinstance(value, Fraction):
        _refuse(where, f"a {kind} is one number")
    if kind in ("nat", "int") and (value.denominator != 1 or (kind == "nat" and value < 0)):
        _refuse(where, f"{str(value)[:40]} is no {kind}")
    return value


def _key(where: str, node: Node) -> bytes:
    """A natural is a seed; 64 hexadecimal digits are the key itself."""
    if isinstance(node, Fraction) and node.denominator == 1 and 0 <= node < keys.SEED_LIMIT:
        return keys.master(node.numerator)
    if isinstance(node, str) and len(node) == 64 and all(c in "0123456789abcdef" for c in node):
        return bytes.fromhex(node)
    return _refuse(where, "a key is a seed (a natural below 2^64) or 64 hexadecimal digits")


def _tree(modules: dict[str, ModuleDef], where: str, instance: Instance, node: Node) -> Value:
    """From nested parts, or from parts named by dotted paths (`l1.w`)."""
    if not is_parts(node):
        _refuse(where, f"params {instance} is given by named arrays: a file, or a JSON object")
    parts = _nested(where, node)
    names = field_names(modules, instance)
    extra = sorted(set(parts) - set(names))
    if extra:
        _refuse(where, f"params {instance} has no field {extra[0]}; it has {', '.join(names)}")
    made: dict[str, Value] = {}
    for name in names:
        ty = field_type(modules, instance, name)
        if name not in parts or ty is None:
            _refuse(where, f"the field {name} of params {instance} is missing")
        made[name] = _value(modules, f"{where}.{name}", ty, parts[name])
    return TreeValue(made)


def _nested(where: str, parts: dict[str, Node]) -> dict[str, Node]:
    """One level of a tree: the parts below each field's name."""
    out: dict[str, Any] = {}
    for path, node in parts.items():
        head, dot, rest = path.partition(".")
        if not dot:
            out[head] = node
            continue
        below = out.setdefault(head, {})
        if not is_parts(below):
            _refuse(where, f"{head} is both an array and a tree")
        below[rest] = node
    return out


def facts(modules: dict[str, ModuleDef], ty: Type, value: Value, source: str) -> list[Fact]:
    """What an argument says about dims, through parameter trees too."""
    if not isinstance(ty, Params) or not isinstance(value, TreeValue):
        return facts_of(ty, value, source)
    found: list[Fact] = []
    for name, part in value.fields.items():
        below = field_type(modules, ty.instance, name)
        if below is not None:
            found += facts(modules, below, part, f"{source[:-1]}.{name}`")
    return found
