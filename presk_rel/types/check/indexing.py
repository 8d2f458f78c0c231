"""`t[sel, …]` (spec: "Indexing"): selectors drop an axis, slices keep it at the length hi − lo."""

from __future__ import annotations

from dataclasses import replace

from presk_rel.diagnostics import Diagnostics
from presk_rel.elab.dims import dimension
from presk_rel.elab.ty import Axis, Idx, Mask, Real, Shape
from presk_rel.smt.linear import Linear, constant
from presk_rel.smt.solver import AtMost, Proven
from presk_rel.syntax import ast
from presk_rel.types.builtins.axes import with_shape
from presk_rel.types.builtins.operands import find_axis
from presk_rel.types.check.checker import Checker, is_bad
from presk_rel.types.infer import Broken, IType, Meta
from presk_rel.types.problems import Obligation
from presk_rel.types.tree import TExpr, TPrim

LAST = constant(-1)


def infer_index(c: Checker, expr: ast.Index, _: IType | None) -> TExpr:
    base = c.infer(expr.base)
    bounds = [_bounds(c, s) for s in expr.selectors]
    known = [b for b in bounds if b is not None]
    if is_bad(base) or len(known) < len(bounds):
        return c.broken(expr.span)
    return c.later(lambda: _selected(c, expr, base, known), expr.span)


def _bounds(c: Checker, selector: ast.Selector) -> tuple[Linear, ...] | None:
    exprs = (selector.index,) if isinstance(selector, ast.At) else (selector.low, selector.high)
    forms = [_bound(c, e) for e in exprs]
    known = tuple(f for f in forms if f is not None)
    return known if len(known) == len(forms) else None


def _bound(c: Checker, expr: ast.Expr) -> Linear | None:
    """A dimension; E1007 where it is none."""
    elab = c.program.elab
    outer, elab.diagnostics = elab.diagnostics, Diagnostics()
    form = dimension(elab, expr)
    said, elab.diagnostics = elab.diagnostics.items, outer
    for d in said:
        text = "what selects in a tensor is a dimension: a number, a constant, a dim, or a sum or difference of these"
        outer.add(replace(d, code="E1007", help=text) if d.code == "E1026" else d)
    if form is not None and form.is_constant and form.const.denominator != 1:
        c.error("E1028", f"the bound is {form}, which is no whole number", expr.span)
        form = None
    c.failed |= form is None
    return form


def _selected(c: Checker, expr: ast.Index, base: TExpr, bounds: list[tuple[Linear, ...]]) -> TExpr | None:
    ty = c.type_of(base)
    match ty:
        case Meta(number=None):
            return None
        case Broken():
            return c.broken(expr.span)
        case Real(shape) | Idx(_, shape) | Mask(shape):
            if c.unifier.is_open(shape):
                return None
        case _:
            return c.error("E2005", f"only tensors are indexed, not {c.show(base)}", expr.base.span)
    node, at = base, 0
    for selector, bound in zip(expr.selectors, bounds, strict=True):
        where = _place(c, selector, node, at)
        if not isinstance(where, int):
            return where
        node = _select(c, selector, node, where, bound)
        if is_bad(node):
            return node
        at += isinstance(selector, ast.Slice) and selector.axis is None
    return node


def _place(c: Checker, selector: ast.Selector, node: TExpr, at: int) -> int | TExpr | None:
    """The axis of a selector: by name, else the next one from the front."""
    ty = c.type_of(node)
    assert isinstance(ty, Real | Idx | Mask)
    if selector.axis is not None:
        return find_axis(c, ty.shape, selector.axis, node, "this")
    if ty.shape.prefix is not None:
        return c.error("E2008", f"the first axis of {ty} is unknown", selector.span, help="select an axis by its name")
    if at >= len(ty.shape.axes):
        return c.error("E2008", f"{ty} has no further axis to select in", selector.span)
    return at


def _select(c: Checker, selector: ast.Selector, node: TExpr, i: int, bound: tuple[Linear, ...]) -> TExpr:
    ty = c.type_of(node)
    assert isinstance(ty, Real | Idx | Mask)
    axes = ty.shape.axes
    place = axes[i].name or i
    if isinstance(selector, ast.At):
        index = _index(c, selector, axes[i], bound[0])
        rest = Shape(ty.shape.prefix, axes[:i] + axes[i + 1 :])
        return (
            index
            if not isinstance(index, Linear)
            else TPrim("index", (place, index), (node,), with_shape(ty, rest), selector.span)
        )
    low, high = bound
    _owe_slice(c, selector, axes[i], low, high)
    kept = Shape(ty.shape.prefix, (*axes[:i], Axis(axes[i].name, high - low), *axes[i + 1 :]))
    return TPrim("slice", (place, low, high), (node,), with_shape(ty, kept), selector.span)


def _index(c: Checker, selector: ast.At, axis: Axis, index: Linear) -> Linear | TExpr:
    """The index from the front (-1 stays: the last one). That it lies inside depends on the dimensions and is checked
    when they are known; one that never does is E2014."""
    if index == LAST:
        return index
    if index.is_constant and index.const < 0:
        index = axis.length + index
    solver = c.unifier.solver
    beyond = isinstance(solver.prove(AtMost(axis.length, index)), Proven) if not _unknown(axis.length) else False
    if beyond or (index.is_constant and index.const < 0):
        return c.error("E2014", f"the index {index} lies outside an axis of length {axis.length}", selector.index.span)
    return index


def _unknown(form: Linear) -> bool:
    return any(s.startswith("?") for s, _ in form.terms)


def _owe_slice(c: Checker, selector: ast.Slice, axis: Axis, low: Linear, high: Linear) -> None:
    name = "" if axis.name is None else f" of the axis {axis.name}"
    what = f"the slice {low}..{high}{name} must lie inside its length {axis.length}"
    for condition in (AtMost(constant(0), low), AtMost(low, high), AtMost(high, axis.length)):
        c.unifier.obligations.append(Obligation(condition, selector.span, what, "E2014"))
