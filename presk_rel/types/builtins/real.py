"""Builtins on real tensors: entry by entry, reductions, contraction, injection."""

from __future__ import annotations

from presk_rel.elab.ty import SCALAR_REAL, Hyper, Idx, Real, Shape
from presk_rel.syntax import ast
from presk_rel.types.builtins.row import Use
from presk_rel.types.check.checker import Checker
from presk_rel.types.check.contraction import contract
from presk_rel.types.infer import Broken, IType, Meta, ity
from presk_rel.types.numbers import DEFAULT
from presk_rel.types.tree import TExpr, TPrim


def real_hint(_: Checker, __: IType | None) -> tuple[IType | None, ...]:
    """Literals among the arguments are reals."""
    return (SCALAR_REAL, SCALAR_REAL, SCALAR_REAL)


def real_operand(use: Use, node: TExpr) -> Real | TExpr | None:
    """The type of an argument that must be real; the broken tree after E2005; None while it is unknown. Literals that
    were bound by a let become real here."""
    ty = use.c.type_of(node)
    match ty:
        case Real():
            return ty
        case Meta(number=None):
            return None
        case Meta():
            use.c.unifier.unify(ity(node), SCALAR_REAL)
            return SCALAR_REAL
        case Broken():
            return use.c.broken(use.span)
        case _:
            return use.c.error(
                "E2005", f"`{use.name}` takes a real tensor, not {use.c.show(node)}", node.span, help=injection_help(ty)
            )


def injection_help(ty: IType) -> str | None:
    match ty:
        case Hyper(kind) if kind != "bool":
            return "a hyperparameter is injected into ℝ by real(n) or (n : ℝ)"
        case Idx():
            return "indices are injected into ℝ by real(t)"
        case _:
            return None


def elementwise(use: Use) -> TExpr | None:
    """ℝ[S] → ℝ[S]."""
    ty = real_operand(use, use.values[0])
    return TPrim(use.name, (), use.values, ty, use.span) if isinstance(ty, Real) else ty


def reduction(use: Use) -> TExpr | None:
    """ℝ[S] → ℝ[], or with `axis a` ℝ[S] without that axis."""
    ty = real_operand(use, use.values[0])
    if not isinstance(ty, Real):
        return ty
    if not use.axes:
        return TPrim(use.name, (), use.values, SCALAR_REAL, use.span)
    found = named_axis(use, ty.shape, use.axes[0], use.values[0])
    if not isinstance(found, int):
        return found
    axes = ty.shape.axes
    left = Shape(ty.shape.prefix, axes[:found] + axes[found + 1 :])
    return TPrim(use.name, (use.axes[0].text,), use.values, Real(left), use.span)


def named_axis(use: Use, shape: Shape, axis: ast.Ident, node: TExpr) -> int | TExpr | None:
    """Where the axis of that name stands in the shape of `node`; None while its leading axes are unknown; E2008 if
    there is none."""
    where = next((i for i, a in enumerate(shape.axes) if a.name == axis.text), None)
    if where is not None:
        return where
    if use.c.unifier.is_open(shape):
        return None
    unnamed = any(a.name is None for a in shape.axes)
    help_text = "an axis gets its name from the type of a parameter, a result or an ascription" if unnamed else None
    return use.c.error(
        "E2008",
        f"`{use.name}` selects the axis {axis.text}, which {use.c.show(node)} has not",
        axis.span,
        help=help_text,
    )


def injection(use: Use) -> TExpr | None:
    """A hyperparameter, or an index tensor entry by entry, as reals."""
    node = use.values[0]
    ty = use.c.type_of(node)
    match ty:
        case Meta(number=None):
            return None
        case Meta(number=kind) if kind is not None:
            use.c.unifier.unify(ity(node), DEFAULT[kind])
            return TPrim("real", (), use.values, SCALAR_REAL, use.span)
        case Hyper(kind) if kind != "bool":
            return TPrim("real", (), use.values, SCALAR_REAL, use.span)
        case Idx(_, shape):
            return TPrim("real", (), use.values, Real(shape), use.span)
        case Real():
            return use.c.error(
                "E2005", f"`real` injects numbers and indices, and {use.c.show(node)} is real already", node.span
            )
        case _:
            return use.c.error("E2005", f"`real` injects numbers and indices, not {use.c.show(node)}", node.span)


def matmul(use: Use) -> TExpr | None:
    return contract(use.c, use.values[0], use.values[1], use.at, use.span)
