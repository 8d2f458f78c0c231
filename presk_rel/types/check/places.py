"""Paths that lead to a module (spec: "Calls"): a sub-module of the module around (`l1`, `blocks.attn`), a module-typed
parameter (`net`), a module or its instance (`m.MiniGPT`, `Linear{D, D}`, `stack{L}(M)`)."""

from __future__ import annotations

from presk_rel.diagnostics.record import record
from presk_rel.elab.declared import Declared
from presk_rel.elab.dims import length
from presk_rel.elab.instances import STACK
from presk_rel.elab.ty import Applied, Composed, Instance, Params, Stacked, field_names, field_type
from presk_rel.smt.linear import Linear, symbol
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Checker
from presk_rel.types.problems import Origin
from presk_rel.types.tree import TExpr, TField, TTheta


@record
class Place:
    """An instance, and its parameter tree where that is part of the θ around; else calls pass it as first argument.
    `instance` is None after an error."""

    instance: Instance | None
    theta: TExpr | None


def place_of(c: Checker, expr: ast.Expr) -> Place | None:
    """The module that `expr` leads to, None when it leads to none (it is a value, or a function)."""
    match expr:
        case ast.Name():
            return _named(c, expr)
        case ast.Field(base, name):
            target = c.program.elab.target(expr)
            if isinstance(target, Declared):
                return _declared(c, target, (), expr)
            outer = place_of(c, base)
            return None if outer is None else _below(c, outer, name)
        case ast.DimApply(base, dims):
            target = c.program.elab.target(base)
            return _declared(c, target, dims, expr) if isinstance(target, Declared) else None
        case ast.Call(ast.DimApply(base, (count,)), (ast.Positional(inner),)) if c.program.elab.target(base) == STACK:
            return _stack(c, count, inner)
        case ast.Binary("∘", left, right):
            outer, inner = place_of(c, left), place_of(c, right)
            if outer is None or inner is None:
                return None
            if outer.instance is None or inner.instance is None:
                return Place(None, None)
            return Place(c.program.elab.fitting(Composed(outer.instance, inner.instance), expr.span), None)
        case _:
            return None


def _named(c: Checker, expr: ast.Name) -> Place | None:
    found = c.program.elab.names.resolve(expr.span)
    if found is None or found in c.env:
        return None
    target = c.program.elab.declared.get(found)
    return None if target is None else _declared(c, target, (), expr)


def _declared(c: Checker, target: Declared, dims: tuple[ast.Expr, ...], expr: ast.Expr) -> Place | None:
    elab = c.program.elab
    match target.node:
        case ast.Use():
            theta = theta_of(c, expr)
            return Place(None, None) if theta is None else _field_place(c, theta, target.name, expr)
        case ast.FnParam() if target.id in elab.module_params:
            return Place(elab.module_params[target.id], None)
        case ast.Model():
            return Place(elab.models.get(target.id), None)
        case ast.Module():
            return Place(_applied(c, target, dims, expr), None)
        case _:
            return None


def _applied(c: Checker, target: Declared, dims: tuple[ast.Expr, ...], expr: ast.Expr) -> Instance | None:
    """A module with its dimension arguments; without braces they are unknowns, found from the parameter tree."""
    core = c.program.elab.core[target.id]
    definition = c.program.elab.modules.get(core)
    if definition is None:
        c.failed = True
        return None
    args: list[Linear | None]
    if isinstance(expr, ast.DimApply):
        args = [length(c.program.elab, d) for d in dims]
        if len(args) != definition.explicit:
            c.error(
                "E1031",
                f"`{target.name}` takes {definition.explicit} dimension arguments, {len(args)} given",
                expr.span,
            )
            return None
    else:
        explicit = definition.dims[: definition.explicit]
        args = [symbol(c.unifier.fresh(Origin(d, expr.span, core))) for d in explicit]
    known = tuple(a for a in args if a is not None)
    if len(known) != len(args):
        c.failed = True
        return None
    return Applied(core, known + tuple(symbol(d) for d in definition.dims[definition.explicit :]))


def _stack(c: Checker, count: ast.Expr, inner: ast.Expr) -> Place | None:
    form, below = length(c.program.elab, count), place_of(c, inner)
    if below is None:
        return None
    if form is None or below.instance is None:
        return Place(None, None)
    return Place(c.program.elab.fitting(Stacked(form, below.instance), inner.span), None)


def theta_of(c: Checker, expr: ast.Expr) -> TTheta | None:
    """The parameter tree of the module around the function that is checked."""
    if c.signature is None:
        c.error("E2030", "a default cannot use the parameters of the module", expr.span)
        return None
    if c.signature.theta is None:
        c.failed = True
        return None
    return TTheta(c.signature.theta, expr.span)


def _field_place(c: Checker, base: TExpr, name: str, expr: ast.Expr | ast.Ident) -> Place:
    """A sub-module, by its parameter tree."""
    ty = base.type
    found = field_type(c.program.elab.modules, ty.instance, name) if isinstance(ty, Params) else None
    if not isinstance(found, Params):
        c.failed = True
        return Place(None, None)
    return Place(found.instance, TField(base, name, found, expr.span))


def _below(c: Checker, outer: Place, name: ast.Ident) -> Place | None:
    """`blocks.attn`: a sub-module of a sub-module; None when `name` is no sub-module of it."""
    if outer.instance is None:
        return Place(None, None)
    modules = c.program.elab.modules
    if name.text not in field_names(modules, outer.instance):
        return None
    found = field_type(modules, outer.instance, name.text)
    if not isinstance(found, Params):
        return None
    theta = None if outer.theta is None else TField(outer.theta, name.text, found, name.span)
    return Place(found.instance, theta)
