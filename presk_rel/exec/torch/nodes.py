"""Trees, tuples and tensors of generated code: only tensors exist when it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from presk_rel.elab.ty import Idx, Mask, ModuleDef, Params, Real, TupleOf, Type, field_names, field_type
from presk_rel.exec.torch.operand import Operand
from presk_rel.exec.torch.parts import on_host


@dataclass(frozen=True, slots=True)
class Single:
    """A tensor, hyperparameter or key (or stack of keys) of generated code."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Branch:
    """A tree or tuple: its parts by field name, or by position as text."""

    type: Type
    parts: tuple[tuple[str, Node], ...]

    def part(self, name: str) -> Node:
        return dict(self.parts)[name]

    def replaced(self, name: str, node: Node) -> Branch:
        return Branch(self.type, tuple((k, node if k == name else v) for k, v in self.parts))


Node = Single | Branch

UNIT = Branch(TupleOf(()), ())
"""The cotangent of what has none."""


def parts_of(modules: dict[str, ModuleDef], ty: Params | TupleOf) -> list[tuple[str, Type]]:
    """The parts of a tree or tuple by name, in order."""
    if isinstance(ty, TupleOf):
        return [(str(i), t) for i, t in enumerate(ty.items)]
    found = [(n, field_type(modules, ty.instance, n)) for n in field_names(modules, ty.instance)]
    return [(n, t) for n, t in found if t is not None]


def built(
    modules: dict[str, ModuleDef], ty: Type, leaf: Callable[[Type, tuple[str, ...]], Node], path: tuple[str, ...] = ()
) -> Node:
    """The tree of a type, its leaves made by `leaf(type, path)`."""
    if not isinstance(ty, Params | TupleOf):
        return leaf(ty, path)
    return Branch(ty, tuple((n, built(modules, t, leaf, (*path, n))) for n, t in parts_of(modules, ty)))


def operands_of(node: Node) -> Iterator[Operand]:
    """The leaves, in order."""
    if isinstance(node, Single):
        yield node.operand
    else:
        for _, part in node.parts:
            yield from operands_of(part)


def with_operands(node: Node, given: Iterator[Operand]) -> Node:
    """The same tree with other leaves, in order."""
    if isinstance(node, Single):
        return Single(next(given))
    return Branch(node.type, tuple((k, with_operands(v, given)) for k, v in node.parts))


def named(node: Node, ty: Type) -> Node:
    """The node with the axis names of a binding's type: what was made under another type (the result of a fold's body,
    a part of a tuple) is read under this one."""
    match node, ty:
        case Single(operand), Real() | Idx() | Mask() if operand.type != ty:
            return Single(replace(operand, type=ty))
        case Branch(_, parts), TupleOf(items) if len(parts) == len(items):
            return Branch(ty, tuple((k, named(v, t)) for (k, v), t in zip(parts, items, strict=True)))
        case _:
            return node


def declared(modules: dict[str, ModuleDef], node: Node, ty: Type) -> Node:
    """As `named`, in trees too: a field of a result has the axis names that its module declares."""
    if isinstance(node, Branch) and isinstance(ty, Params | TupleOf):
        types = dict(parts_of(modules, ty))
        return Branch(node.type, tuple((k, declared(modules, v, types.get(k, node.type))) for k, v in node.parts))
    return named(node, ty)


def groups(nodes: Iterable[Node], *, whole: bool = False) -> list[tuple[int, ...]]:
    """Which leaves lie in one flat tensor: those of a parameter tree. Leaves are numbered in order, without those of
    the host unless `whole`; then only trees are listed, else every other leaf is one alone."""
    numbers = count()

    def found(node: Node) -> list[tuple[int, ...]]:
        match node:
            case Single(operand):
                own = () if on_host(operand) and not whole else (next(numbers),)
                return [own] if own and not whole else []
            case Branch(Params(), _):
                return [tuple(next(numbers) for _ in operands_of(node))]
            case Branch(_, parts):
                return [g for _, part in parts for g in found(part)]

    return [g for node in nodes for g in found(node)]
