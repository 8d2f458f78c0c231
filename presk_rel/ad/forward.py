"""Forward rules that many rows of the derivative table share: from the tangents of operands to that of the result."""

from __future__ import annotations

from collections.abc import Callable

from presk_rel.ad.builder import Builder
from presk_rel.ad.row import Forward, Point, Rule, Site
from presk_rel.core.ir import Var
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import Real, Type


def each(b: Builder, p: Point) -> Var:
    """An operation linear in each operand: the sum of it with one operand at a time replaced by its tangent."""
    ty = result_type(b, p)
    terms = [
        b.prim(p.op, ty, *p.args[:i], v, *p.args[i + 1 :], attrs=p.attrs)
        for i, v in enumerate(p.tangents)
        if v is not None
    ]
    return total(b, ty, terms)


def jointly(b: Builder, p: Point) -> Var:
    """An operation linear in all its operands at once: it, of the tangents."""
    args = [v if v is not None else zeros(b, a) for a, v in zip(p.args, p.tangents, strict=True)]
    return b.prim(p.op, result_type(b, p), *args, attrs=p.attrs)


def symmetric(rule: Rule) -> Forward:
    """An operation of one operand whose Jacobian is symmetric: its reverse rule, of the tangent."""

    def forward(b: Builder, p: Point) -> Var:
        (v, *_) = p.tangents
        assert v is not None
        return rule(b, Site(p.attrs, p.args, p.result, v), 0)

    return forward


def mixed(parts: Callable[[Builder, Point, int, Var], Var]) -> Forward:
    """The sum of what `parts` makes of each tangent, of the result's type."""

    def forward(b: Builder, p: Point) -> Var:
        terms = [parts(b, p, i, v) for i, v in enumerate(p.tangents) if v is not None]
        return total(b, result_type(b, p), terms)

    return forward


def result_type(b: Builder, p: Point) -> Type:
    return tangent(b.types[p.result])


def zeros(b: Builder, v: Var) -> Var:
    """The zero tangent of a value."""
    return b.prim("zeros_like", tangent(b.types[v]), v)


def widened(b: Builder, v: Var, result: Var) -> Var:
    """A tangent of an operand of `add` in the result's shape; of a scalar beside a tree, at every leaf."""
    ty = tangent(b.types[result])
    if b.types[v] == ty:
        return v
    if isinstance(ty, Real):
        return b.prim("broadcast_like", ty, v, result)
    return b.prim("add", ty, zeros(b, result), v)


def total(b: Builder, ty: Type, terms: list[Var]) -> Var:
    value, *rest = terms
    for term in rest:
        value = b.prim("add", ty, value, term)
    return value
