"""Core as a hash-consed DAG of terms, and back.

A *head* is an operation with its attributes and its type: a binding may name axes that the typing rules leave unnamed,
so the type is part of what an operation is. Two bindings with one head and the same operands are one term: common
subexpressions need no rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from presk_rel.core.ir import (
    Apply,
    Attr,
    Call,
    Closure,
    DimArgs,
    Fold,
    Function,
    Grad,
    Jvp,
    Op,
    Prim,
    Var,
    Vjp,
    operands,
)
from presk_rel.core.prims import PRIMS
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.op_types import TypeId, TypeTable
from presk_rel.egraph.proof import TermId
from presk_rel.smt.linear import Linear

HeadId = int
INPUT = "input"
_VIEWS = ("field", "proj")


@dataclass(frozen=True, slots=True)
class Head:
    op: str
    attrs: tuple[Attr, ...]
    type: TypeId


@dataclass(slots=True)
class Terms:
    """The DAG: term i is `heads[head[i]]` over `args[i]`, of type `type[i]`; arguments come before their users."""

    table: TypeTable
    heads: list[Head] = field(default_factory=list[Head])
    head: list[HeadId] = field(default_factory=list[HeadId])
    args: list[tuple[TermId, ...]] = field(default_factory=list[tuple[TermId, ...]])
    type: list[TypeId] = field(default_factory=list[TypeId])
    templates: dict[TypeId, TermId] = field(default_factory=dict[TypeId, TermId])
    _heads: dict[Head, HeadId] = field(default_factory=dict[Head, HeadId])
    _index: dict[tuple[HeadId, tuple[TermId, ...]], TermId] = field(
        default_factory=dict[tuple[HeadId, tuple[TermId, ...]], TermId]
    )

    def __len__(self) -> int:
        return len(self.head)

    def intern(self, head: Head) -> HeadId:
        known = self._heads.get(head)
        if known is None:
            known = self._heads[head] = len(self.heads)
            self.heads.append(head)
        return known

    def make(self, head: HeadId, args: tuple[TermId, ...]) -> TermId:
        """The term, made if it is new; PreskBug if the typing rules refuse it."""
        key = (head, args)
        known = self._index.get(key)
        if known is not None:
            return known
        h = self.heads[head]
        if h.op != INPUT and not self.table.fits(h.op, h.attrs, tuple(self.type[a] for a in args), h.type):
            shown = ", ".join(str(self.table.types[self.type[a]]) for a in args)
            raise PreskBug("egraph", f"no type: {h.op} {h.attrs} of ({shown}) as {self.table.types[h.type]}")
        term = self._index[key] = len(self.head)
        self.head.append(head)
        self.args.append(args)
        self.type.append(h.type)
        return term

    def op(self, term: TermId) -> Head:
        return self.heads[self.head[term]]

    def template(self, ty: TypeId) -> TermId:
        """The term that stands for "any value of this type" in an operand that is read for its type only: the first one
        of the program, or zeros where it has none."""
        known = self.templates.get(ty)
        if known is None:
            known = self.templates[ty] = self.make(self.intern(Head("zeros", (), ty)), ())
        return known

    def reachable(self, *roots: TermId) -> list[TermId]:
        """The terms under `roots` and these, operands first."""
        seen = set(roots)
        stack = list(roots)
        while stack:
            for a in self.args[stack.pop()]:
                if a not in seen:
                    seen.add(a)
                    stack.append(a)
        return sorted(seen)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A function as terms: its result, the term of every parameter and binding in program order, per type its first
    term and the first that is a view of a parameter. `owner` marks its leaves: those of the entry have no mark."""

    terms: Terms
    root: TermId
    of_name: dict[Var, TermId]
    firsts: dict[TypeId, TermId]
    views: dict[TypeId, TermId]
    owner: str | None

    def owns(self, head: Head) -> bool:
        """Whether an input is a parameter of this function."""
        return head.attrs[1:] == (() if self.owner is None else (self.owner,))


def encode(function: Function, terms: Terms, owner: str | None = None) -> Encoded:
    """The terms of a function; the first of a type in the table becomes that type's template. Functions in one table
    have leaves of their own: the parameters of all but one are marked with their `owner`. PreskBug for an unbound
    name."""
    of_name: dict[Var, TermId] = {}
    mark = () if owner is None else (owner,)
    for p in function.params:
        head = Head(INPUT, (p.name, *mark), terms.table.intern(p.type))
        of_name[p.name] = terms.make(terms.intern(head), ())
    for b in function.bindings:
        try:
            args = tuple(of_name[v] for v in operands(b.op))
        except KeyError as e:
            raise PreskBug("egraph", f"{function.name}: {e.args[0]} is not bound before {b.name}") from e
        of_name[b.name] = terms.make(terms.intern(_head(b.op, terms.table.intern(b.type))), args)
    firsts: dict[TypeId, TermId] = {}
    views: dict[TypeId, TermId] = {}
    seen: set[TermId] = set()
    for t in sorted(set(of_name.values())):
        firsts.setdefault(terms.type[t], t)
        terms.templates.setdefault(terms.type[t], t)
        if terms.op(t).op == INPUT or (terms.op(t).op in _VIEWS and terms.args[t][0] in seen):
            seen.add(t)
            views.setdefault(terms.type[t], t)
    return Encoded(terms, of_name[function.ret], of_name, firsts, views, owner)


def _head(op: Op, declared: TypeId) -> Head:
    match op:
        case Prim(name, attrs, _):
            return Head(name, attrs, declared)
        case Call(fn, dim_args, _):
            return Head("call", (fn, *_flat(dim_args)), declared)
        case Closure(fn, dim_args, _):
            return Head("closure", (fn, *_flat(dim_args)), declared)
        case Grad():
            return Head("grad", (), declared)
        case Vjp():
            return Head("vjp", (), declared)
        case Jvp():
            return Head("jvp", (), declared)
        case Apply():
            return Head("apply", (), declared)
        case Fold():
            flags = (int(op.reverse), int(op.scan), len(op.stacked))
            return Head("fold", (op.count, op.body, *flags, *_flat(op.dim_args)), declared)
        case _:
            assert_never(op)


def _flat(dim_args: DimArgs) -> tuple[Attr, ...]:
    return tuple(part for pair in dim_args for part in pair)


def _pairs(flat: tuple[Attr, ...]) -> DimArgs:
    found: list[tuple[str, Linear]] = []
    for name, form in zip(flat[::2], flat[1::2], strict=True):
        assert isinstance(name, str)
        assert isinstance(form, Linear)
        found.append((name, form))
    return tuple(found)


def to_op(head: Head, args: tuple[Var, ...]) -> Op:
    """The Core operation of a head over names; the inverse of encoding."""
    attrs = head.attrs
    match head.op:
        case "call":
            return Call(str(attrs[0]), _pairs(attrs[1:]), args)
        case "closure":
            return Closure(str(attrs[0]), _pairs(attrs[1:]), args)
        case "grad":
            return Grad(args[0])
        case "vjp":
            return Vjp(args[0])
        case "jvp":
            return Jvp(args[0])
        case "apply":
            return Apply(args[0], args[1:])
        case "fold":
            return _fold(attrs, args)
        case name if name in PRIMS:
            return Prim(name, attrs, args)
        case name:
            raise PreskBug("egraph", f"no operation `{name}`")


def _fold(attrs: tuple[Attr, ...], args: tuple[Var, ...]) -> Fold:
    count, body, reverse, scan, stacked, *dims = attrs
    assert isinstance(count, Linear)
    assert isinstance(stacked, int)
    return Fold(
        count=count,
        body=str(body),
        dim_args=_pairs(tuple(dims)),
        stacked=args[:stacked],
        acc=args[stacked],
        extras=args[stacked + 1 :],
        reverse=bool(reverse),
        scan=bool(scan),
    )
