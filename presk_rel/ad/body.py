"""The body of a function that `--remat store` writes, binding by binding."""

from __future__ import annotations

from collections.abc import Iterable

from presk_rel.core.ir import Binding, Function, Op, Prim, Var
from presk_rel.elab.ty import (
    SCALAR,
    Axis,
    Idx,
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
from presk_rel.smt.linear import constant


class Body:
    """Bindings in order; new ones are numbered after those of the function they are taken from."""

    def __init__(self, source: Function) -> None:
        self.bindings: list[Binding] = []
        names = [*(p.name for p in source.params), *(b.name for b in source.bindings)]
        numbers = [int(n.rpartition("%")[2]) for n in names if n.rpartition("%")[2].isdigit()]
        self._next = max([len(names), *(n + 1 for n in numbers)])

    def fresh(self, op: Op, ty: Type, note: str | None = None) -> Var:
        name = f"%{self._next}"
        self._next += 1
        self.bindings.append(Binding(name, ty, op, note=note))
        return name

    def name(self, base: str, taken: Iterable[Var]) -> Var:
        """A parameter's name: `base`, numbered when it is taken."""
        if base not in taken:
            return base
        self._next += 1
        return f"{base}%{self._next - 1}"

    def proj(self, whole: Var, i: int, ty: Type, note: str | None = None) -> Var:
        return self.fresh(Prim("proj", (i,), (whole,)), ty, note)


def zeros_exist(ty: Type) -> bool:
    """Whether a value of this type can be made of zeros without one at hand: all but of keys, function values and
    hyperparameters."""
    match ty:
        case Real() | Mask() | Idx() | Params():
            return True
        case TupleOf(items):
            return all(zeros_exist(t) for t in items)
        case _:
            return False


def zeros(body: Body, ty: Type, modules: dict[str, ModuleDef]) -> Var:
    """Zeros of a type of which `zeros_exist`; of truth values, false."""
    match ty:
        case TupleOf(items):
            return body.fresh(Prim("tuple", (), tuple(zeros(body, t, modules) for t in items)), ty)
        case Params(instance):
            below = [field_type(modules, instance, n) for n in field_names(modules, instance)]
            parts = tuple(zeros(body, t, modules) for t in below if t is not None)
            return body.fresh(Prim("record", (), parts), ty)
        case Mask(shape):
            zero = body.fresh(Prim("zeros", (), ()), Real(shape))
            return body.fresh(Prim("lt", (), (zero, zero)), ty)
        case Idx(bound, shape):
            zero = body.fresh(Prim("zeros", (), ()), Real(shape))
            every = body.fresh(Prim("positions", (), ()), Idx(bound, Shape(None, (Axis(None, bound),))))
            first = body.fresh(Prim("index", (0, constant(0)), (every,)), Idx(bound, SCALAR))
            return body.fresh(Prim("broadcast_like", (), (first, zero)), ty)
        case _:
            return body.fresh(Prim("zeros", (), ()), ty)
