"""The nodes and the names of an expression of the typed program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

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


def nodes(e: TExpr) -> list[TExpr]:
    """Every expression in `e`, each after what it is part of."""
    out: list[TExpr] = []
    waiting = [e]
    while waiting:
        node = waiting.pop()
        out.append(node)
        waiting += children(node)
    return out


def children(e: TExpr) -> tuple[TExpr, ...]:
    match e:
        case TLambda(body=body):
            return (body,)
        case TLet(value=value, body=body):
            return (value, body)
        case TGrad(fn) | TVjp(fn) | TJvp(fn):
            return (fn,)
        case TField(base):
            return (base,)
        case TPrim(args=args) | TCall(args=args) | TTuple(items=args):
            return args
        case TApply(fn, args):
            return (fn, *args)
        case TStackCall():
            return (e.stacked, e.acc, *e.extras)
        case TVar() | TTheta() | TLiteral() | TDim() | TFunction():
            return ()
        case _:
            assert_never(e)


def bound_names(e: TExpr) -> Iterator[str]:
    """The names that a node's own binders have."""
    match e:
        case TLambda(param, pattern):
            yield from (b.name for b in (param, *e.more))
            yield from _pattern_names(pattern)
        case TLet(pattern):
            yield from _pattern_names(pattern)
        case _:
            pass


def _pattern_names(pattern: TPattern) -> Iterator[str]:
    match pattern:
        case PVar(binder):
            yield binder.name
        case PTuple(items):
            for item in items:
                yield from _pattern_names(item)
        case None:
            pass
        case _:
            assert_never(pattern)
