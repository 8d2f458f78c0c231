"""The leaves of a value for the analyses: a tuple is as many things as it has components, everything else is one.

So a function may be smooth in one component of its argument and not in another (`(x, key)`), while a parameter tree is
one thing: `grad` is with respect to all of it. Paths are `0`, `1.0`; the path of what is no tuple is the empty string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from presk_rel.core.ir import Attr, Prim
from presk_rel.elab.ty import TupleOf, Type

MOST = 256
"""A tuple of more leaves is one thing, which is sound and keeps facts linear in the program."""

Flow = tuple[int, str, str]
"""Operand number, leaf of the operand, leaf of the result."""


def leaves(ty: Type) -> tuple[str, ...]:
    """The paths of the leaves, in order."""
    paths: list[str] = []
    todo: list[tuple[str, Type]] = [("", ty)]
    while todo:
        path, inner = todo.pop()
        if not isinstance(inner, TupleOf):
            paths.append(path)
        elif len(paths) + len(todo) + len(inner.items) > MOST:
            return ("",)
        else:
            todo.extend((_join(path, str(i)), item) for i, item in reversed([*enumerate(inner.items)]))
    return tuple(paths)


def at(ty: Type, leaf: str) -> Type:
    """The type of a leaf."""
    for index in leaf.split(".") if leaf else ():
        assert isinstance(ty, TupleOf)
        ty = ty.items[int(index)]
    return ty


def is_one(ty: Type) -> bool:
    """Whether a value has the one leaf with the empty path."""
    return leaves(ty) == ("",)


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def flows(prim: Prim, operands: tuple[Type, ...], result: Type, *, ignored: tuple[int, ...] = ()) -> Iterator[Flow]:
    """Which leaves of which operands a leaf of the result depends on; `ignored` operands are read for their type."""
    match prim.op:
        case "tuple":
            for i, operand in enumerate(operands):
                yield from ((i, path, _into(i, path, result)) for path in leaves(operand))
        case "proj":
            i = _index(prim.attrs)
            yield from ((0, _into(i, path, operands[0]), path) for path in leaves(result))
        case "set_elem":
            i = _index(prim.attrs)
            yield from ((0, path, path) for path in leaves(operands[0]) if is_one(result) or not _under(i, path))
            yield from ((1, path, _into(i, path, result)) for path in leaves(operands[1]))
        case "add" | "sub" | "mul" | "div" | "neg":
            for i, operand in enumerate(operands):
                yield from _by_leaf(i, operand, result)
        case _:
            for i, operand in enumerate(operands):
                yield from ([] if i in ignored else _all(i, leaves(operand), leaves(result)))


def _into(index: int, path: str, whole: Type) -> str:
    return "" if is_one(whole) else _join(str(index), path)


def _index(attrs: tuple[Attr, ...]) -> int:
    (index,) = attrs
    assert isinstance(index, int)
    return index


def _under(index: int, path: str) -> bool:
    return path.partition(".")[0] == str(index)


def _by_leaf(operand: int, ty: Type, result: Type) -> Iterable[Flow]:
    if leaves(ty) == leaves(result):
        return ((operand, path, path) for path in leaves(result))
    return _all(operand, leaves(ty), leaves(result))


def _all(operand: int, sources: tuple[str, ...], targets: tuple[str, ...]) -> Iterable[Flow]:
    return ((operand, source, target) for source in sources for target in targets)
