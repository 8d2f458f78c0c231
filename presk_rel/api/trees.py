"""Trees of tensors: tuples, and dicts by field, as the Python API takes and gives them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from presk_rel.elab.ty import TupleOf
from presk_rel.exec.torch.nodes import Branch, Node, Single
from presk_rel.exec.values import TreeValue, TupleValue, Value

Tree = Any
"""A tensor, a tuple of trees, or a dict of trees by field."""


def part(value: Tree, name: str, path: tuple[str, ...]) -> Any:
    """A leaf of a tree. A dict may also be flat, its keys paths (`l1.w`), as a state dict is."""
    whole = ".".join(path)
    found: Any = value
    try:
        if isinstance(value, dict) and whole in value:
            return cast("dict[str, Any]", value)[whole]
        for step in path:
            found = found[int(step) if isinstance(found, tuple | list) else step]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TypeError(f"`{name}` has no part `{whole}`") from error
    return found


def tensor_of(torch: Any, value: Any, dtype: Any) -> Any:
    """What was given for a leaf, in its own precision: Python's numbers are doubles, whatever torch's default is."""
    if isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "__array__"):
        return torch.as_tensor(np.asarray(value, order="C"))  # torch refuses negative strides
    return torch.as_tensor(value, dtype=torch.float64 if dtype.is_floating_point else None)


def tree_of(node: Node, returned: tuple[Any, ...]) -> Tree:
    """Returned leaves as a tree."""
    match node:
        case Single(operand):
            return returned[int(operand.name)]
        case Branch(TupleOf(), parts):
            return tuple(tree_of(v, returned) for _, v in parts)
        case Branch(_, parts):
            return {k: tree_of(v, returned) for k, v in parts}


def nested(paths: list[tuple[str, ...]], leaves: list[Any], like: Value) -> Tree:
    """Leaves by path as a tree of the form of a value."""
    table = dict(zip(paths, leaves, strict=True))

    def build(value: Value, path: tuple[str, ...]) -> Tree:
        match value:
            case TreeValue(fields):
                return {n: build(v, (*path, n)) for n, v in fields.items()}
            case TupleValue(items):
                return tuple(build(v, (*path, str(i))) for i, v in enumerate(items))
            case _:
                return table[path]

    return build(like, ())
