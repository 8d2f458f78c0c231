"""Operations on whole trees and tuples, written out leaf by leaf: what inlining makes of structural arithmetic, of
stacks and of `sum_squares`."""

from __future__ import annotations

from dataclasses import replace

from presk_rel.core.draft import NOTHING, Meant
from presk_rel.core.ir import Binding, Prim
from presk_rel.core.trampoline import Walk
from presk_rel.core.values import Leaf, Store, Value, Zero, identity, scalar_meant
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import SCALAR_REAL, Params, Real, TupleOf, Type

STACKS = frozenset({"slice_params", "scatter_params", "set_slice", "stack_params"})
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg", "pow", "sqrt"})


def is_structural(op: str, ty: Type, operands: tuple[Type, ...]) -> bool:
    """Whether an operation is one on trees or tuples."""
    if op == "sum_squares":
        return not isinstance(operands[0], Real)
    return isinstance(ty, Params | TupleOf) and op in STACKS | ARITHMETIC


def structural(store: Store, b: Binding, op: Prim, values: tuple[Value, ...]) -> Walk[Value]:
    """The value of a binding `b` that is structural, in the types of the flat function."""
    if op.op == "sum_squares":
        return (yield _sum_squares(store, b, values[0]))
    scalars = [isinstance(v, Leaf) for v in values]
    if op.op in ("add", "sub") and not any(scalars):
        return (yield store.combine(op.op, values[0], values[1], b.span))
    if op.op == "neg" or (op.op == "mul" and any(scalars)) or (op.op == "div" and scalars[1]):
        return (yield _scaled(store, b, op, values))

    def at_leaf(ty: Type, parts: tuple[Value, ...]) -> Walk[Value]:
        return (yield _leaf(store, b, op, ty, parts))

    return (yield store.leafwise(b.type, values, at_leaf))


def _scaled(store: Store, b: Binding, op: Prim, values: tuple[Value, ...]) -> Walk[Value]:
    """Linear in the tree: what is zero stays so."""
    match values:
        case (tree,):
            return (yield store.map(op.op, tree, (), (), b.span))
        case (Leaf() as scalar, tree):
            return (yield store.map(op.op, tree, (scalar,), (), b.span))
        case (tree, Leaf() as scalar):
            return (yield store.map(op.op, tree, (), (scalar,), b.span))
        case _:
            raise PreskBug("inline", f"{b.name} = {op.op} of {len(values)} values")


def _leaf(store: Store, b: Binding, op: Prim, ty: Type, values: tuple[Value, ...]) -> Walk[Value]:
    """The operation at one leaf."""
    if op.op in STACKS and values and all(isinstance(v, Zero) for v in values):
        return Zero(ty)
    names: list[str] = []
    for v in values:
        names.append((yield store.name_of(v)))
    types = tuple(_type_of(v) for v in values)
    meant = NOTHING if op.op in STACKS or len(values) != 2 else _meant(ty, types)
    name = store.emit(ty, replace(op, args=tuple(names)), types, meant, span=b.span, note=b.note)
    return store.opaque(name, ty)


def _meant(ty: Type, operands: tuple[Type, ...]) -> Meant:
    """A leaf and a leaf of one type, or a leaf and a scalar."""
    if operands[0] == operands[1]:
        return identity(ty)
    return scalar_meant(0 if operands[1] == SCALAR_REAL else 1)


def _type_of(value: Value) -> Type:
    if not isinstance(value, Leaf | Zero):
        raise PreskBug("inline", f"a {type(value).__name__} is no leaf")
    return value.type


def _sum_squares(store: Store, b: Binding, tree: Value) -> Walk[Value]:
    """The sum over the leaves."""
    found: list[Leaf] = yield store.leaves(tree)
    total: Leaf | None = None
    for leaf in found:
        square = store.emit(SCALAR_REAL, Prim("sum_squares", (), (leaf.name,)), (leaf.type,), span=b.span, note=b.note)
        if total is not None:
            both = (SCALAR_REAL, SCALAR_REAL)
            square = store.emit(SCALAR_REAL, Prim("add", (), (total.name, square)), both, identity(SCALAR_REAL))
        total = Leaf(square, SCALAR_REAL)
    return total if total is not None else Zero(SCALAR_REAL)
