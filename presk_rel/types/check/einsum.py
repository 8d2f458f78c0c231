"""`ein[out](a * b)` (spec): a sum of products over named axes, with the relabelling of `seq` to `seq2`."""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.elab.ty import SCALAR_REAL, Axis, Real, Shape
from presk_rel.smt.linear import Linear
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Checker, is_bad
from presk_rel.types.infer import Broken, IType, Meta, ity
from presk_rel.types.tree import TExpr, TPrim


def infer_ein(c: Checker, expr: ast.Ein, _: IType | None) -> TExpr:
    factors: list[ast.Expr] = []
    body: ast.Expr = expr.body
    while isinstance(body, ast.Binary) and body.op == "*":
        factors.append(body.right)
        body = body.left
    nodes = [c.infer(f, SCALAR_REAL) for f in reversed([*factors, body])]
    if any(is_bad(n) for n in nodes):
        return c.broken(expr.span)
    return c.later(lambda: _ein(c, expr, nodes), expr.span)


def _ein(c: Checker, expr: ast.Ein, nodes: list[TExpr]) -> TExpr | None:
    shapes = [_operand(c, n) for n in nodes]
    known = [s for s in shapes if isinstance(s, Shape)]
    if len(known) < len(nodes):
        return next((s for s in shapes if s is not None and not isinstance(s, Shape)), None)
    names = _relabelled(c, expr, known)
    return c.broken(expr.span) if names is None else _contraction(c, expr, nodes, known, names)


def _operand(c: Checker, node: TExpr) -> Shape | TExpr | None:
    """The shape of a factor, all of whose axes must be named."""
    ty = c.type_of(node)
    match ty:
        case Meta(number=None):
            return None
        case Meta():
            c.unifier.unify(ity(node), SCALAR_REAL)
            return SCALAR_REAL.shape
        case Broken():
            return c.broken(node.span)
        case Real(shape) if c.unifier.is_open(shape):
            return None
        case Real(shape) if shape.prefix is None and all(a.name is not None for a in shape.axes):
            return shape
        case Real():
            message = f"every axis of a factor of `ein` must have a name, and {c.show(node)} has one without"
            return c.error("E2031", message, node.span, help="name its axes by an ascription: (e : ℝ[a: A, b: B])")
        case _:
            return c.error("E2005", f"the factors of `ein` are real tensors, not {c.show(node)}", node.span)


Names = list[list[str]]


def _relabelled(c: Checker, expr: ast.Ein, shapes: list[Shape]) -> Names | None:
    """The axis names of each factor, once a shared name has become its unmatched copy in the right factor."""
    names: Names = [[a.name or "" for a in s.axes] for s in shapes]
    out = [a.text for a in expr.axes]
    for right in range(1, len(names)):
        shared = [n for n in names[right] if any(n in left for left in names[:right])]
        for name in shared:
            copies = _copies(name, names, right, out)
            if len(copies) > 1:
                listed = " and ".join(copies)
                message = f"the axis {name} of both factors could be {listed} in the right one"
                c.error("E2032", message, expr.span, help="name the axes apart by an ascription")
                return None
            if copies:
                names[right][names[right].index(name)] = copies[0]
    return names


def _copies(name: str, names: Names, right: int, out: list[str]) -> list[str]:
    """The unmatched copies `name<digits>`: in the result and no factor, or in one factor (not this one) and not in the
    result."""
    seen = dict.fromkeys([*out, *(n for factor in names for n in factor)])
    found: list[str] = []
    for copy in seen:
        if not copy.startswith(name) or not copy[len(name) :].isdecimal() or copy in names[right]:
            continue
        holders = sum(copy in factor for factor in names)
        if (holders == 0 and copy in out) or (holders == 1 and copy not in out):
            found.append(copy)
    return found


def _contraction(c: Checker, expr: ast.Ein, nodes: list[TExpr], shapes: list[Shape], names: Names) -> TExpr:
    lengths: dict[str, Linear] = {}
    for shape, labels, node in zip(shapes, names, nodes, strict=True):
        for label, axis in zip(labels, shape.axes, strict=True):
            failed = _same(c, lengths, label, axis, node.span)
            if failed is not None:
                return failed
    seen: set[str] = set()
    for axis in expr.axes:
        if axis.text in seen:
            helped = f"call it {axis.text}2: that of the right factor is meant then"
            return c.error("E2031", f"the result of `ein` has the axis {axis.text} twice", axis.span, help=helped)
        seen.add(axis.text)
        if axis.text not in lengths:
            known = ", ".join(lengths) or "none"
            return c.error(
                "E2031", f"no factor of `ein` has the axis {axis.text}", axis.span, help=f"they have {known}"
            )
    result = tuple(Axis(a.text, c.unifier.length(lengths[a.text])) for a in expr.axes)
    left = ", ".join(" ".join(labels) for labels in names)
    spec = f"{left} -> {' '.join(a.text for a in expr.axes)}".strip()
    return TPrim("ein", (spec,), tuple(nodes), Real(Shape(None, result)), expr.span)


def _same(c: Checker, lengths: dict[str, Linear], label: str, axis: Axis, span: Span) -> TExpr | None:
    known = lengths.setdefault(label, axis.length)
    c.unifier.where = (span, "`ein`")
    failed = c.unifier.unify_length(known, axis.length)
    if failed is None:
        return None
    reason, example = c.reason(failed)
    return c.error(
        "E2003", f"the factors of `ein` differ in the length of {label}{reason}", span, counterexample=example
    )
