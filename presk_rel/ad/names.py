"""Operations on other names, callees and dims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from presk_rel.core.ir import Apply, Call, Closure, DimArgs, Fold, Grad, Jvp, Op, Prim, Var, Vjp, operands
from presk_rel.smt.linear import Linear


def rename(op: Op, names: Mapping[Var, Var]) -> Op:
    """The same operation on other names; a name that is not in `names` stays."""

    def r(vs: tuple[Var, ...]) -> tuple[Var, ...]:
        return tuple(names.get(v, v) for v in vs)

    if not any(v in names for v in operands(op)):
        return op
    match op:
        case Prim(_, _, args) | Call(_, _, args):
            return replace(op, args=r(args))
        case Closure(_, _, captured):
            return replace(op, captured=r(captured))
        case Grad(fn) | Vjp(fn) | Jvp(fn):
            return replace(op, fn=names.get(fn, fn))
        case Apply(fn, args):
            return Apply(names.get(fn, fn), r(args))
        case Fold():
            return replace(op, stacked=r(op.stacked), acc=names.get(op.acc, op.acc), extras=r(op.extras))


def rename_callees(op: Op, names: Mapping[str, str]) -> Op:
    """The same operation calling other functions; a callee that is not in `names` stays."""
    match op:
        case Call(fn) | Closure(fn):
            return replace(op, fn=names.get(fn, fn))
        case Fold():
            return replace(op, body=names.get(op.body, op.body))
        case Prim() | Grad() | Vjp() | Jvp() | Apply():
            return op


def with_dims(op: Op, dims: Mapping[str, Linear]) -> Op:
    """The same operation with dims replaced by forms."""

    def given(dim_args: DimArgs) -> DimArgs:
        return tuple((d, form.substitute(dims)) for d, form in dim_args)

    match op:
        case Prim(_, attrs, _):
            return replace(op, attrs=tuple(a.substitute(dims) if isinstance(a, Linear) else a for a in attrs))
        case Call(_, dim_args, _) | Closure(_, dim_args, _):
            return replace(op, dim_args=given(dim_args))
        case Fold(count, _, dim_args):
            return replace(op, count=count.substitute(dims), dim_args=given(dim_args))
        case Grad() | Vjp() | Jvp() | Apply():
            return op
