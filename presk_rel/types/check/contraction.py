"""Contraction of the last axis of one tensor with the first of another: `·` and `matmul`."""

from __future__ import annotations

from presk_rel.diagnostics import Label, Span
from presk_rel.elab.ty import Axis, Real, Shape
from presk_rel.types.check.checker import Checker
from presk_rel.types.infer import Broken, Meta
from presk_rel.types.tree import TExpr, TPrim


def contract(c: Checker, left: TExpr, right: TExpr, op_span: Span, span: Span) -> TExpr | None:
    """`x · w`: the last axis of x with the first of w."""
    a, b = c.type_of(left), c.type_of(right)
    if isinstance(a, Broken) or isinstance(b, Broken):
        return c.broken(span)
    if (isinstance(a, Meta) and a.number is None) or (isinstance(b, Meta) and b.number is None):
        return None
    if not isinstance(a, Real) or not isinstance(b, Real):
        return c.error("E2005", f"`·` contracts real tensors, not {c.show(left)} with {c.show(right)}", op_span)
    if (not a.shape.axes and c.unifier.is_open(a.shape)) or c.unifier.is_open(b.shape):
        return None
    if not a.shape.axes or not b.shape.axes or b.shape.prefix is not None:
        return c.error(
            "E2005",
            f"`·` needs a last axis on its left and a first axis on its right: {c.show(left)}, {c.show(right)}",
            op_span,
        )
    return _contracted(c, left, right, a.shape, b.shape, op_span, span)


def _contracted(c: Checker, left: TExpr, right: TExpr, s: Shape, t: Shape, op_span: Span, span: Span) -> TExpr:
    labels = (Label(left.span, c.show(left)), Label(right.span, c.show(right)))
    failed = c.unify(Real(Shape(None, s.axes[-1:])), Real(Shape(None, t.axes[:1])), op_span, "`·`")
    if failed is not None:
        reason, example = c.reason(failed)
        message = f"`·` cannot contract the last axis of {c.show(left)} with the first of {c.show(right)}{reason}"
        helped = None if failed.lengths else "to contract axes by their names, name those of the result: ein[…](a * b)"
        return c.error("E2003", message, op_span, labels=labels, help=helped, counterexample=example)
    axes = s.axes[:-1] + t.axes[1:]
    twice = duplicate_name(axes)
    if twice is not None:
        return c.error(
            "E2009",
            f"the result of `·` would have two axes named {twice}",
            op_span,
            labels=labels,
            help="name the axes of the result by ein[…](a * b)",
        )
    return TPrim("dot", (), (left, right), Real(Shape(s.prefix, axes)), span)


def duplicate_name(axes: tuple[Axis, ...]) -> str | None:
    names = [a.name for a in axes if a.name is not None]
    return next((n for i, n in enumerate(names) if n in names[:i]), None)
