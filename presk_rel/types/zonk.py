"""The last step of checking a function: every unknown of its tree replaced by what it was found to be.

Walks with a stack of its own: chains of lets and operators may be longer than Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from presk_rel.diagnostics.record import mutable
from presk_rel.elab.ty import Params, Real, Type
from presk_rel.smt.linear import Linear, symbol
from presk_rel.types.infer import Hole
from presk_rel.types.tree import (
    Attr,
    Binder,
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


@mutable
class Rewrite:
    """Rebuilds a tree with other types and dimension forms. `type` and `length` are applied to each; `renamed` keeps
    one new binder per old one. `lifted` are the dims of functions that were made with the tree (`check.lifted`): calls
    give them their own of the same names."""

    type: Callable[[Type], Type]
    length: Callable[[Linear], Linear]
    renamed: dict[int, Binder] = field(default_factory=dict[int, Binder])
    lifted: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def expr(self, root: TExpr) -> TExpr:
        """The rebuilt tree: children first, by an explicit stack."""
        work: list[tuple[TExpr, bool]] = [(root, False)]
        done: list[TExpr] = []
        while work:
            node, ready = work.pop()
            node = settled(node)
            children = list(children_of(node))
            if not children:
                done.append(self._rebuild(node, ()))
            elif ready:
                parts = tuple(done[len(done) - len(children) :])
                del done[len(done) - len(children) :]
                done.append(self._rebuild(node, parts))
            else:
                work.append((node, True))
                work.extend((child, False) for child in reversed(children))
        return done[0]

    def binder(self, binder: Binder) -> Binder:
        known = self.renamed.get(binder.id)
        if known is None:
            known = self.renamed[binder.id] = replace(binder, type=self.type(binder.type))
        return known

    def pattern(self, pattern: TPattern) -> TPattern:
        match pattern:
            case None:
                return None
            case PVar(binder):
                return PVar(self.binder(binder))
            case PTuple(items):
                return PTuple(tuple(self.pattern(p) for p in items))

    def _attr(self, attr: Attr) -> Attr:
        return self.length(attr) if isinstance(attr, Linear) else attr

    def _dims(self, dims: tuple[tuple[str, Linear], ...]) -> tuple[tuple[str, Linear], ...]:
        """A dim that nothing determined is left out (`tree.DimArgs`)."""
        forms = ((name, self.length(form)) for name, form in dims)
        return tuple((name, form) for name, form in forms if not any(s.startswith("?") for s, _ in form.terms))

    def _rebuild(self, node: TExpr, parts: tuple[TExpr, ...]) -> TExpr:
        ty, span = self.type(node.type), node.span
        match node:
            case TVar(binder):
                return TVar(self.binder(binder), ty, span)
            case TTheta():
                return TTheta(_tree(ty), span)
            case TLiteral(value):
                return TLiteral(value, ty, span)
            case TDim(dim):
                return TDim(self.length(dim), ty, span)
            case TFunction(fn, dims):
                return TFunction(fn, self._dims(dims), ty, span)
            case TLambda(param, pattern):
                more = tuple(self.binder(b) for b in node.more)
                return TLambda(self.binder(param), self.pattern(pattern), parts[0], ty, span, more)
            case TLet(pattern):
                return TLet(self.pattern(pattern), parts[0], parts[1], ty, span)
            case _:
                return self._rebuild_operation(node, parts, ty)

    def _rebuild_operation(self, node: _Operation, parts: tuple[TExpr, ...], ty: Type) -> TExpr:
        span = node.span
        match node:
            case TPrim(op, attrs):
                return TPrim(op, tuple(map(self._attr, attrs)), parts, ty, span)
            case TField(_, name):
                return TField(parts[0], name, ty if isinstance(ty, Real) else _tree(ty), span)
            case TCall(fn, dims):
                return TCall(fn, self._dims(dims), parts, ty, span)
            case TStackCall(count, fn, dims):
                own = tuple((d, symbol(d)) for d in self.lifted.get(fn, ()))
                count, dims = self.length(count), self._dims(own or dims)
                return TStackCall(count, fn, dims, parts[0], parts[1], parts[2:], ty, span)
            case TApply():
                return TApply(parts[0], parts[1:], ty, span)
            case TGrad():
                return TGrad(parts[0], ty, span)
            case TVjp():
                return TVjp(parts[0], ty, span)
            case TJvp():
                return TJvp(parts[0], ty, span)
            case TTuple():
                return TTuple(parts, ty, span)


_Operation = TPrim | TField | TCall | TStackCall | TApply | TGrad | TVjp | TJvp | TTuple


def _tree(ty: Type) -> Params:
    assert isinstance(ty, Params)
    return ty


def settled(node: TExpr) -> TExpr:
    """The expression in a hole; of anything else, itself."""
    while isinstance(node, Hole):
        assert node.node is not None, "a hole was left open"
        node = node.node
    return node


def children_of(node: TExpr) -> Iterator[TExpr]:
    match node:
        case TVar() | TTheta() | TLiteral() | TDim() | TFunction():
            return
        case TPrim(args=args) | TCall(args=args) | TTuple(items=args):
            yield from args
        case TField(base=fn) | TGrad(fn=fn) | TVjp(fn=fn) | TJvp(fn=fn) | TLambda(body=fn):
            yield fn
        case TStackCall(stacked=stacked, acc=acc, extras=extras):
            yield from (stacked, acc, *extras)
        case TApply(fn, args):
            yield from (fn, *args)
        case TLet(value=value, body=body):
            yield from (value, body)
