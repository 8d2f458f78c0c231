"""Canonical terms: the table, the values they form, and the few operations that simplify as they build.

Canonical terms have no names: axes are positions, every implicit broadcast is a `bcast` term that says where each axis
goes, operands read for their shape only are gone (a shape is a tuple of lengths), trees and tuples are resolved into
leaves, a structural zero added to a tensor is the tensor, and a part of one is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import (
    Hyper,
    Idx,
    Key,
    Mask,
    ModuleDef,
    Params,
    Real,
    Shape,
    TupleOf,
    Type,
    field_types,
)  # fmt: skip
from presk_rel.smt.linear import Linear

Lengths = tuple[Linear, ...]
Attrs = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A canonical term and the lengths of its axes (none for a number or a key)."""

    id: int
    lengths: Lengths


@dataclass(frozen=True, slots=True)
class Branch:
    """A tree or tuple, its parts by field name or position."""

    parts: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class FunctionValue:
    fn: str
    dims: tuple[tuple[str, Linear], ...]
    captured: tuple[Value, ...]


Value = Tensor | Branch | FunctionValue
Leafwise = Callable[[Tensor], "Value"]


@dataclass(slots=True)
class Terms:
    """The table of canonical terms. One table for all functions that are compared."""

    ids: dict[tuple[str, Attrs, tuple[int, ...]], int] = field(
        default_factory=dict[tuple[str, Attrs, tuple[int, ...]], int]
    )
    zeros: set[int] = field(default_factory=set[int])
    keys: list[tuple[str, Attrs, tuple[int, ...]]] = field(default_factory=list[tuple[str, Attrs, tuple[int, ...]]])
    below: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    def make(self, op: str, attrs: Attrs, children: tuple[Tensor, ...], lengths: Lengths) -> Tensor:
        """The term. A fold's attributes hold the terms of its body in one tuple (`denote_folds`)."""
        key = (op, attrs, tuple(c.id for c in children))
        known = self.ids.setdefault(key, len(self.ids))
        if known == len(self.below):
            body = cast("tuple[int, ...]", attrs[-2]) if op in ("fold", "scan") else ()
            self.keys.append(key)
            self.below.append((*body, *key[2]))
        return Tensor(known, lengths)

    def under(self, term: Tensor) -> list[int]:
        """All terms under one, and itself, in the order of their first appearance; those in bodies of folds too."""
        seen: dict[int, None] = {}
        stack = [term.id]
        while stack:
            t = stack.pop()
            if t not in seen:
                seen[t] = None
                stack += reversed(self.below[t])
        return list(seen)

    def renamed(self, roots: tuple[int, ...], names: Mapping[int, int]) -> tuple[int, ...]:
        """The terms with other variables in the place of some, which differ as those did. Terms come after their parts,
        and none simplifies because of what a variable is called."""
        under: set[int] = set()
        stack = list(roots)
        while stack:
            t = stack.pop()
            if t not in under:
                under.add(t)
                stack += self.below[t]
        new: dict[int, int] = {}
        for t in sorted(under):
            new[t] = names[t] if t in names else self._over(t, new)
        return tuple(new[t] for t in roots)

    def _over(self, term: int, new: Mapping[int, int]) -> int:
        """A term over new parts."""
        op, attrs, children = self.keys[term]
        if all(new[t] == t for t in self.below[term]):
            return term
        if op in ("fold", "scan"):
            body = cast("tuple[int, ...]", attrs[-2])
            attrs = (*attrs[:-2], tuple(new[t] for t in body), attrs[-1])
        return self.make(op, attrs, tuple(Tensor(new[t], ()) for t in children), ()).id

    def zero(self, lengths: Lengths) -> Tensor:
        tensor = self.make("zeros", lengths, (), lengths)
        self.zeros.add(tensor.id)
        return tensor

    def bcast(self, x: Tensor, where: tuple[int, ...], lengths: Lengths) -> Tensor:
        """`x` with axis k put at `where[k]` of a tensor of `lengths`."""
        if where == tuple(range(len(lengths))):
            return x
        return self.make("bcast", (where, lengths), (x,), lengths)

    def sum_down(self, x: Tensor, where: tuple[int, ...], lengths: Lengths) -> Tensor:
        if where == tuple(range(len(x.lengths))):
            return x
        if x.id in self.zeros:
            return self.zero(lengths)
        return self.make("sum_down", (where,), (x,), lengths)

    def part(self, op: str, attrs: Attrs, x: Tensor, lengths: Lengths) -> Tensor:
        """A selection of entries; of zeros, zeros."""
        return self.zero(lengths) if x.id in self.zeros else self.make(op, attrs, (x,), lengths)

    def reshape(self, x: Tensor, lengths: Lengths) -> Tensor:
        """Row-major; the same lengths are the same tensor."""
        return x if x.lengths == lengths else self.make("reshape", (lengths,), (x,), lengths)

    def leaves_of(
        self, modules: dict[str, ModuleDef], ty: Type, leaf: Callable[[str, Type], Value], path: str = ""
    ) -> Value:
        """The value of a type, made leaf by leaf from its path and type."""
        match ty:
            case Params(instance):
                types = field_types(modules, instance)
                return Branch(tuple((n, self.leaves_of(modules, t, leaf, f"{path}.{n}")) for n, t in types.items()))
            case TupleOf(items):
                return Branch(
                    tuple((str(i), self.leaves_of(modules, t, leaf, f"{path}.{i}")) for i, t in enumerate(items))
                )
            case _:
                return leaf(path, ty)


def leaves(value: Value) -> list[Tensor]:
    """The leaves of a value, in order; PreskBug for a function."""
    match value:
        case Tensor():
            return [value]
        case Branch(parts):
            return [leaf for _, v in parts for leaf in leaves(v)]
        case FunctionValue():
            raise PreskBug("denote", "a function value where data is expected")


def map_leaves(f: Leafwise, value: Value) -> Value:
    match value:
        case Tensor():
            return f(value)
        case Branch(parts):
            return Branch(tuple((k, map_leaves(f, v)) for k, v in parts))
        case FunctionValue():
            raise PreskBug("denote", "a function value where data is expected")


def zip_leaves(f: Callable[[Tensor, Tensor], Tensor], left: Value, right: Value) -> Value:
    match left, right:
        case Tensor(), Tensor():
            return f(left, right)
        case Branch(parts), Branch(others):
            other = dict(others)
            return Branch(tuple((k, zip_leaves(f, v, other[k])) for k, v in parts))
        case _:
            raise PreskBug("denote", "values of different forms")


def shape_of(ty: Type) -> Shape:
    match ty:
        case Real(shape) | Mask(shape) | Idx(_, shape):
            return shape
        case Hyper() | Key():
            return Shape(None, ())
        case _:
            raise PreskBug("denote", f"no shape: {ty}")
