"""The header of a data file `*.psk.d` (spec: "data"): a safetensors file with one tensor per leaf of the sample, whose
leading axis counts samples, and the metadata `presk.sample`, the sample's type in source syntax.

Only the header is read: 8 bytes with its length, then JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, cast

from presk_rel.diagnostics.record import record
from presk_rel.elab.config.samples import leaves
from presk_rel.elab.dims import LARGEST
from presk_rel.elab.ty import Axis, Idx, Mask, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, constant
from presk_rel.syntax import ast
from presk_rel.syntax.parser import parse_type

LARGEST_HEADER = 10_000_000
"""Bytes; a header names a few tensors."""


class BadDataFile(Exception):
    """The file is there and is no data file; the message says why."""


@record
class DataHeader:
    """The type of one sample, with numbers for all lengths, and how many samples there are."""

    sample: Type
    samples: int


def read_header(path: str) -> DataHeader | None:
    """The header of the data file at `path`, None if there is no file. Raises BadDataFile."""
    if not os.path.exists(path):
        return None
    try:
        with open(path, "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if not 2 <= size <= LARGEST_HEADER:
                raise BadDataFile("it is no safetensors file")
            header: object = json.loads(file.read(size))
    except OSError as error:
        raise BadDataFile(f"it cannot be read: {(error.strerror or 'unknown').lower()}") from error
    except (ValueError, RecursionError) as error:
        raise BadDataFile("it is no safetensors file") from error
    if not isinstance(header, dict):
        raise BadDataFile("it is no safetensors file")
    return _header(cast(dict[str, Any], header))


def _header(header: dict[str, Any]) -> DataHeader:
    metadata = header.get("__metadata__")
    text = cast(dict[str, Any], metadata).get("presk.sample") if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise BadDataFile("it has no metadata `presk.sample`")
    parsed = parse_type(text).type
    sample = None if parsed is None else _closed(parsed)
    if sample is None:
        raise BadDataFile("its `presk.sample` is no type of tensors with numbers for all lengths")
    tensors = {name: _lengths(tensor) for name, tensor in header.items() if name != "__metadata__"}
    parts = dict(leaves(sample))
    if len(tensors) != len(parts):
        raise BadDataFile(f"it has {len(tensors)} tensors, and a sample has {len(parts)}")
    counts = {first for first, *_ in tensors.values()}
    if len(counts) != 1:
        raise BadDataFile("its tensors differ in their first axis, which counts the samples")
    _compare(tensors, parts)
    return DataHeader(sample, counts.pop())


def _lengths(tensor: Any) -> tuple[int, ...]:
    """The shape of a tensor: at least the axis that counts samples."""
    shape = cast(dict[str, Any], tensor).get("shape") if isinstance(tensor, dict) else None
    lengths = tuple(cast("list[Any]", shape)) if isinstance(shape, list) else ()
    if not lengths or not all(isinstance(n, int) and n >= 0 for n in lengths):
        raise BadDataFile("one of its tensors has no first axis, which counts the samples")
    return lengths


def _compare(tensors: dict[str, tuple[int, ...]], parts: dict[str, Type]) -> None:
    """Raises BadDataFile unless every part of a sample has its tensor: the one named by its path, `0` or `1.0`, or, in
    a file of other names, one of its shape."""
    wanted = {path: _numbers(part) for path, part in parts.items()}
    if wanted.keys() != tensors.keys():
        wanted = dict(zip(sorted(tensors, key=lambda n: tensors[n][1:]), sorted(wanted.values()), strict=True))
    for name, lengths in tensors.items():
        if lengths[1:] != wanted[name]:
            wants = [lengths[0], *wanted[name]]
            raise BadDataFile(f"its tensor `{name}` has the shape {list(lengths)}, and by `presk.sample` it is {wants}")


def _numbers(part: Type) -> tuple[int, ...]:
    axes = part.shape.axes if isinstance(part, Real | Idx | Mask) else ()
    return tuple(int(axis.length.const) for axis in axes)


def _closed(expr: ast.TypeExpr) -> Type | None:
    """The type of a tensor, or a tuple of such, without names of dimensions."""
    match expr:
        case ast.RealType(axes):
            shape = _shape(axes)
            return None if shape is None else Real(shape)
        case ast.MaskType(axes):
            shape = _shape(axes)
            return None if shape is None else Mask(shape)
        case ast.IdxType(bound, axes):
            limit, shape = _natural(bound), _shape(axes)
            return None if limit is None or shape is None else Idx(limit, shape)
        case ast.TupleType(items):
            types = [_closed(item) for item in items]
            known = tuple(t for t in types if t is not None)
            return TupleOf(known) if known and len(known) == len(types) else None
        case _:
            return None


def _shape(axes: tuple[ast.Axis, ...]) -> Shape | None:
    known = tuple(_axes(axes))
    return Shape(None, known) if len(known) == len(axes) else None


def _axes(axes: tuple[ast.Axis, ...]) -> Iterator[Axis]:
    for axis in axes:
        length = None if axis.dim is None else _natural(axis.dim)
        if length is not None:
            yield Axis(None if axis.name is None else axis.name.text, length)


def _natural(expr: ast.Expr) -> Linear | None:
    if not isinstance(expr, ast.Nat) or len(expr.text) > len(str(LARGEST)):
        return None
    return constant(int(expr.text)) if int(expr.text) <= LARGEST else None
