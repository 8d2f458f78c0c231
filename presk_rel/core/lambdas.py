"""What a lambda captures (spec: "Lambdas are lifted"): its free variables in order of first use, θ among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from presk_rel.diagnostics.record import record
from presk_rel.elab.ty import Type
from presk_rel.types.tree import (
    PTuple,
    PVar,
    TApply,
    TCall,
    TDim,
    TExpr,
    TField,
    TFunction,
    TGrad,
    TJvp,
    TLambda,
    TLet,
    TLiteral,
    TPattern,
    TPrim,
    TStackCall,
    TTheta,
    TTuple,
    TVar,
    TVjp,
)


@record
class Captured:
    """A captured variable; `binder` is None for the parameter tree of the enclosing module function."""

    binder: int | None
    name: str
    type: Type


def captured_by(node: TLambda) -> tuple[Captured, ...]:
    """The free variables of a lambda. Binders are unique in a function, so what is bound inside is never free."""
    bound: set[int] = set()
    read: dict[int | None, Captured] = {}
    for e in _walk(node):
        match e:
            case TVar(binder):
                read.setdefault(binder.id, Captured(binder.id, binder.name, binder.type))
            case TTheta(ty):
                read.setdefault(None, Captured(None, "θ", ty))
            case TLet(pattern):
                bound.update(_binders(pattern))
            case TLambda(param, pattern):
                bound.update(b.id for b in (param, *e.more))
                bound.update(_binders(pattern))
            case _:
                pass
    return tuple(c for id_, c in read.items() if id_ not in bound)


def _walk(root: TExpr) -> Iterator[TExpr]:
    """Every node below, in order of evaluation."""
    waiting = [root]
    while waiting:
        e = waiting.pop()
        yield e
        waiting.extend(reversed(children(e)))


def children(e: TExpr) -> tuple[TExpr, ...]:
    """The expressions directly inside `e`, in order of evaluation."""
    match e:
        case TVar() | TTheta() | TLiteral() | TDim() | TFunction():
            return ()
        case TPrim(_, _, args) | TCall(_, _, args):
            return args
        case TField(base):
            return (base,)
        case TStackCall():
            return (e.stacked, e.acc, *e.extras)
        case TLambda():
            return (e.body,)
        case TApply(fn, args):
            return (fn, *args)
        case TGrad(fn) | TVjp(fn) | TJvp(fn):
            return (fn,)
        case TLet(_, value, body):
            return (value, body)
        case TTuple(items):
            return items
        case _:
            assert_never(e)


def _binders(pattern: TPattern) -> Iterator[int]:
    match pattern:
        case None:
            return
        case PVar(binder):
            yield binder.id
        case PTuple(items):
            for item in items:
                yield from _binders(item)
        case _:
            assert_never(pattern)
