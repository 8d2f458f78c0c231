"""Symbolic values of inlining: parameter trees and tuples as they are known part by part, so that only operations on
tensors are left.

`set_field b (zeros_like θ), v` is no operation here but a tree whose `b` is `v` and whose other leaves are zero; adding
two such trees adds the leaves both have. What is read of a parameter is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from presk_rel.core.draft import Draft, Meant
from presk_rel.core.ir import Op, Prim
from presk_rel.core.trampoline import Walk
from presk_rel.diagnostics import NOWHERE, PreskBug, Span
from presk_rel.elab.ty import (
    Function,
    Hyper,
    Idx,
    Key,
    Mask,
    ModuleDef,
    ModuleValue,
    Params,
    Real,
    TupleOf,
    Type,
    field_names,
    field_type,
)
from presk_rel.smt.linear import Linear

Part = str | int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor, key, index or hyperparameter: a draft's name."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Zero:
    """A cotangent that is zero in every leaf."""

    type: Type


@dataclass(slots=True, eq=False)
class Node:
    """A tree or tuple: the parts given, and the others read from `base`, or zero where there is none. `whole` is the
    name of a binding that holds all of it, once one was needed."""

    type: Params | TupleOf
    given: dict[Part, Value]
    base: str | None = None
    read: dict[Part, Value] = field(default_factory=dict[Part, "Value"])
    whole: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fun:
    """A function value: a function of the program at some dims, with its first arguments and their types."""

    fn: str
    dims: dict[str, Linear]
    captured: tuple[Value, ...]
    types: tuple[Type, ...]


Value = Leaf | Zero | Node | Fun


class Store:
    """The drafts of one flat function, and the operations on values that emit them."""

    def __init__(self, modules: dict[str, ModuleDef]) -> None:
        self.modules = modules
        self.drafts: list[Draft] = []
        self.at: dict[str, Draft] = {}
        self._zeros: dict[Type, str] = {}

    def emit(
        self,
        ty: Type,
        op: Op,
        seen: tuple[Type, ...] = (),
        meant: Meant | None = None,
        hint: str | None = None,
        span: Span = NOWHERE,
        note: str | None = None,
    ) -> str:
        """A new draft; its provisional name, which no parameter can have."""
        name = f"?{len(self.drafts)}"
        draft = Draft(name, hint, ty, op, seen, meant or Meant(), span, note)
        self.drafts.append(draft)
        self.at[name] = draft
        return name

    # --------------------------------------------------------------------------------------------------- whole, parts

    def opaque(self, name: str, ty: Type) -> Value:
        """The value of a parameter or of an operation that is not taken apart."""
        match ty:
            case Real() | Idx() | Mask() | Hyper() | Key():
                return Leaf(name, ty)
            case Params() | TupleOf():
                return Node(ty, {}, name)
            case Function() | ModuleValue():
                raise PreskBug("inline", f"a value of type {ty} that is not known")
            case _:
                assert_never(ty)

    def parts(self, ty: Params | TupleOf) -> tuple[Part, ...]:
        return field_names(self.modules, ty.instance) if isinstance(ty, Params) else tuple(range(len(ty.items)))

    def part_type(self, ty: Params | TupleOf, part: Part) -> Type:
        if isinstance(ty, TupleOf):
            return ty.items[int(part)]
        found = field_type(self.modules, ty.instance, str(part))
        if found is None:
            raise PreskBug("inline", f"{ty} has no field {part}")
        return found

    def get(self, value: Value, part: Part) -> Value:
        """Field or component of a tree or tuple; read once where the whole is a parameter."""
        match value:
            case Zero(Params() | TupleOf() as ty):
                return Zero(self.part_type(ty, part))
            case Node():
                pass
            case _:
                raise PreskBug("inline", f"part {part} of a {type(value).__name__}")
        found = value.given.get(part) or value.read.get(part)
        if found is None:
            found = value.read[part] = self._read(value, part)
        return found

    def _read(self, node: Node, part: Part) -> Value:
        ty = self.part_type(node.type, part)
        if node.base is None:
            return Zero(ty)
        op = "field" if isinstance(part, str) else "proj"
        hint = part if isinstance(part, str) else None
        return self.opaque(self.emit(ty, Prim(op, (part,), (node.base,)), (node.type,), hint=hint), ty)

    def put(self, value: Value, part: Part, new: Value) -> Value:
        """`set_field` and `set_elem`."""
        match value:
            case Zero(Params() | TupleOf() as ty):
                return Node(ty, {part: new})
            case Node(ty, given, base):
                return Node(ty, {**given, part: new}, base, value.read)
            case _:
                raise PreskBug("inline", f"part {part} of a {type(value).__name__}")

    def name_of(self, value: Value) -> Walk[str]:
        """The name of a binding that holds the whole value."""
        match value:
            case Leaf(name):
                return name
            case Zero(Real() as ty):
                if ty not in self._zeros:
                    self._zeros[ty] = self.emit(ty, Prim("zeros", (), ()))
                return self._zeros[ty]
            case Zero(Params() | TupleOf() as ty):
                return (yield self.name_of(Node(ty, {})))
            case Node(base=str() as base, given=given) if not given:
                return base
            case Node():
                whole = value.whole
                if whole is None:
                    whole = value.whole = yield self._built(value)
                return whole
            case Zero() | Fun():
                raise PreskBug("inline", f"a {type(value).__name__} has no name")
            case _:
                assert_never(value)

    def _built(self, node: Node) -> Walk[str]:
        names: list[str] = []
        for part in self.parts(node.type):
            names.append((yield self.name_of(self.get(node, part))))
        op = "record" if isinstance(node.type, Params) else "tuple"
        seen = tuple(self.part_type(node.type, p) for p in self.parts(node.type))
        return self.emit(node.type, Prim(op, (), tuple(names)), seen)

    # ----------------------------------------------------------------------------------------------------- arithmetic

    def combine(self, op: str, a: Value, b: Value, span: Span) -> Walk[Value]:
        """`add` or `sub` of two values of one type, leaf by leaf."""
        match a, b:
            case _, Zero():
                return a
            case Zero(), _ if op == "add":
                return b
            case Zero(), _:
                return (yield self.map("neg", b, (), (), span))
            case Leaf(x, s), Leaf(y, t):
                return Leaf(self.emit(s, Prim(op, (), (x, y)), (s, t), identity(s), span=span), s)
            case Node(), Node():
                return (yield self._combine_nodes(op, a, b, span))
            case _:
                raise PreskBug("inline", f"{op} of a {type(a).__name__} and a {type(b).__name__}")

    def _combine_nodes(self, op: str, a: Node, b: Node, span: Span) -> Walk[Value]:
        if a.base is None and b.base is None and op == "add":
            few, many = (a, b) if len(a.given) < len(b.given) else (b, a)
            given, parts = dict(many.given), tuple(few.given)
        else:
            given, parts = dict[Part, Value](), self.parts(a.type)
        for part in parts:
            given[part] = yield self.combine(op, self.get(a, part), self.get(b, part), span)
        return Node(a.type, given)

    def map(self, op: str, value: Value, before: tuple[Leaf, ...], after: tuple[Leaf, ...], span: Span) -> Walk[Value]:
        """A linear operation on every leaf of a value, with scalar operands before or after it."""
        match value:
            case Zero():
                return value
            case Leaf(_, ty):
                operands = (*before, value, *after)
                meant = scalar_meant(len(before)) if len(operands) == 2 else Meant()
                names = tuple(o.name for o in operands)
                return Leaf(self.emit(ty, Prim(op, (), names), tuple(o.type for o in operands), meant, span=span), ty)
            case Node(ty):
                given: dict[Part, Value] = {}
                for part in self.parts(ty) if value.base is not None else tuple(value.given):
                    given[part] = yield self.map(op, self.get(value, part), before, after, span)
                return Node(ty, given)
            case Fun():
                raise PreskBug("inline", f"{op} of a function value")
            case _:
                assert_never(value)

    def filled(self, op: str, ty: Type) -> Walk[Value]:
        """`ones` in every leaf of a type."""
        match ty:
            case Real():
                return Leaf(self.emit(ty, Prim(op, (), ())), ty)
            case Params() | TupleOf():
                given: dict[Part, Value] = {}
                for part in self.parts(ty):
                    given[part] = yield self.filled(op, self.part_type(ty, part))
                return Node(ty, given)
            case _:
                raise PreskBug("inline", f"{op} of type {ty}")

    def leafwise(self, ty: Type, values: tuple[Value, ...], at_leaf: AtLeaf) -> Walk[Value]:
        """A value of type `ty` whose leaves `at_leaf` makes of the leaves of `values`; a tensor among these, which has
        no parts, goes to every leaf as it is."""
        if not isinstance(ty, Params | TupleOf):
            return (yield at_leaf(ty, values))
        given: dict[Part, Value] = {}
        for part in self.parts(ty):
            inner = tuple(v if isinstance(v, Leaf) or is_zero_leaf(v) else self.get(v, part) for v in values)
            given[part] = yield self.leafwise(self.part_type(ty, part), inner, at_leaf)
        return Node(ty, given)

    def leaves(self, value: Value) -> Walk[list[Leaf]]:
        """The tensors of a value that are not known to be zero, in order."""
        match value:
            case Leaf():
                return [value]
            case Zero():
                return []
            case Node(ty):
                found: list[Leaf] = []
                for part in self.parts(ty):
                    found.extend((yield self.leaves(self.get(value, part))))
                return found
            case Fun():
                raise PreskBug("inline", "the leaves of a function value")
            case _:
                assert_never(value)


AtLeaf = Callable[[Type, tuple[Value, ...]], Walk[Value]]


def is_zero_leaf(value: Value) -> bool:
    return isinstance(value, Zero) and isinstance(value.type, Real)


def identity(ty: Type) -> Meant:
    n = len(ty.shape.axes) if isinstance(ty, Real) else 0
    return Meant(small=1, where=tuple(range(n)))


def scalar_meant(position: int) -> Meant:
    """The other operand than that at `position` is a scalar, which lines up with no axis."""
    return Meant(small=1 - position, where=())
