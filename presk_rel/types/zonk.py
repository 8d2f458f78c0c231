"""The last step of checking a function: every unknown of its tree replaced by what it was found to be.

Walks with a stack of its own: chains of lets and operators may be longer than Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from presk_rel.elab.ty import Params, Real, Type
from presk_rel.smt.linear import Linear
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
    TLambda,
    TLet,
    TLiteral,
    TPattern,
    TPrim,
    TStackCall,
    TTheta,
    TTuple,
    TVar,
)


@dataclass(slots=True)
class Rewrite:
    """Rebuilds a tree with other types and dimension forms. `type` and `length` are applied to each; `renamed` keeps one
    new binder per old one."""

    type: Callable[[Type], Type]
    length: Callable[[Linear], Linear]
    renamed: dict[int, Binder] = field(default_factory=dict[int, Binder])

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
        span = node.span
        match node:
            case TVar(binder):
                return TVar(self.binder(binder), self.type(node.type), span)
            case TTheta(ty):
                new = self.type(ty)
                assert isinstance(new, Params)
                return TTheta(new, span)
            case TLiteral(value, ty):
                return TLiteral(value, self.type(ty), span)
            case TDim(dim, ty):
                return TDim(self.length(dim), self.type(ty), span)
            case TPrim(op, attrs, _, ty):
                return TPrim(op, tuple(map(self._attr, attrs)), parts, self.type(ty), span)
            case TField(_, name, ty):
                new = self.type(ty)
                assert isinstance(new, Real | Params)
                return TField(parts[0], name, new, span)
            case TCall(fn, dims, _, ty):
                return TCall(fn, self._dims(dims), parts, self.type(ty), span)
            case TStackCall():
                count, dims = self.length(node.count), self._dims(node.dim_args)
                return TStackCall(count, node.fn, dims, parts[0], parts[1], parts[2:], self.type(node.type), span)
            case TFunction(fn, dims, ty):
                return TFunction(fn, self._dims(dims), self.type(ty), span)
            case TLambda(param, pattern, _, ty):
                return TLambda(self.binder(param), self.pattern(pattern), parts[0], self.type(ty), span)
            case TApply(_, _, ty):
                return TApply(parts[0], parts[1:], self.type(ty), span)
            case TGrad(_, ty):
                return TGrad(parts[0], self.type(ty), span)
            case TLet(pattern, _, _, ty):
                return TLet(self.pattern(pattern), parts[0], parts[1], self.type(ty), span)
            case TTuple(_, ty):
                return TTuple(parts, self.type(ty), span)


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
        case TField(base=fn) | TGrad(fn=fn) | TLambda(body=fn):
            yield fn
        case TStackCall(stacked=stacked, acc=acc, extras=extras):
            yield from (stacked, acc, *extras)
        case TApply(fn, args):
            yield from (fn, *args)
        case TLet(value=value, body=body):
            yield from (value, body)
