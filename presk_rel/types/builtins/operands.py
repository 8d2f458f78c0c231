"""What the rules of builtins ask of their arguments. Each answers with the type, with the broken tree after E2005, or
with None while the type is unknown."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics import Span
from presk_rel.elab.ty import SCALAR_REAL, Axis, Idx, Key, Mask, Real, Shape
from presk_rel.syntax import ast
from presk_rel.types.builtins.row import Use
from presk_rel.types.check.checker import Blame, Checker, conversion_help
from presk_rel.types.check.contraction import duplicate_name
from presk_rel.types.infer import Broken, IType, Meta, ity
from presk_rel.types.tree import TExpr


def real_hint(_: Checker, __: IType | None) -> tuple[IType | None, ...]:
    """Literals among the arguments are reals."""
    return (SCALAR_REAL, SCALAR_REAL, SCALAR_REAL)


def real_operand(use: Use, node: TExpr) -> Real | TExpr | None:
    """A real tensor. Literals that were bound by a let become real here."""
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
            message = f"`{use.name}` takes a real tensor, not {use.c.show(node)}"
            return use.c.error("E2005", message, node.span, help=_swapped(use) or conversion_help(ty, SCALAR_REAL))


_ORDERS: Final = {"cross_entropy": "logits, y", "embed": "w, t"}
"""What takes reals before indices."""


def _swapped(use: Use) -> str | None:
    """The order of the arguments, where indices were given before reals."""
    types = [use.c.type_of(v) for v in use.values]
    if use.name in _ORDERS and len(types) == 2 and isinstance(types[0], Idx) and isinstance(types[1], Real):
        return f"the reals come first: {use.name}({_ORDERS[use.name]})"
    return None


def known_real(use: Use, node: TExpr) -> Real | TExpr | None:
    """A real tensor all of whose axes are known, but for a fixed prefix."""
    ty = real_operand(use, node)
    return None if isinstance(ty, Real) and use.c.unifier.is_open(ty.shape) else ty


def known_indices(use: Use, node: TExpr) -> Idx | TExpr | None:
    """An index tensor all of whose axes are known, but for a fixed prefix."""
    ty = use.c.type_of(node)
    match ty:
        case Idx(_, shape):
            return None if use.c.unifier.is_open(shape) else ty
        case Meta(number=None):
            return None
        case Broken():
            return use.c.broken(use.span)
        case _:
            message = f"`{use.name}` takes an index tensor, not {use.c.show(node)}"
            return use.c.error("E2005", message, node.span, help=_swapped(use))


def known_mask(use: Use, node: TExpr) -> Mask | TExpr | None:
    """A mask all of whose axes are known, but for a fixed prefix."""
    ty = use.c.type_of(node)
    match ty:
        case Mask(shape):
            return None if use.c.unifier.is_open(shape) else ty
        case Meta(number=None):
            return None
        case Broken():
            return use.c.broken(use.span)
        case _:
            return use.c.error("E2005", f"`{use.name}` takes a mask bool[…], not {use.c.show(node)}", node.span)


def key_operand(use: Use, node: TExpr) -> TExpr:
    """A key: the argument, or the broken tree."""
    return use.c.expect(node, Key(), node.span, Blame(f"the key of `{use.name}`"))


def named_axis(use: Use, shape: Shape, axis: ast.Ident, node: TExpr) -> int | TExpr | None:
    """Where the axis of that name stands in the shape of `node`; None while its leading axes are unknown; E2008 if
    there is none."""
    return find_axis(use.c, shape, axis, node, f"`{use.name}`")


def find_axis(c: Checker, shape: Shape, axis: ast.Ident, node: TExpr, what: str) -> int | TExpr | None:
    where = next((i for i, a in enumerate(shape.axes) if a.name == axis.text), None)
    if where is not None:
        return where
    if c.unifier.is_open(shape):
        return None
    from difflib import get_close_matches

    names = [a.name for a in shape.axes if a.name is not None]
    near = get_close_matches(axis.text, names, 1)
    help_text = f"did you mean {near[0]}?" if near else f"it has the axes {', '.join(names)}" if names else None
    if not near and any(a.name is None for a in shape.axes):
        help_text = _to_name(c, shape, axis.text)
    message = f"{what} selects the axis {axis.text}, which {c.show(node)} has not"
    return c.error("E2008", message, axis.span, help=help_text)


def _to_name(c: Checker, shape: Shape, name: str) -> str:
    """How the axis that was meant gets its name: shown where there is only one without."""
    if sum(a.name is None for a in shape.axes) > 1:
        return "an axis gets its name from the type of a parameter, a result or an ascription"
    named = Shape(shape.prefix, tuple(Axis(a.name or name, a.length) for a in shape.axes))
    return f"name it by an ascription: (x : {c.unifier.show(Real(named))})"


def distinct(c: Checker, axes: tuple[Axis, ...], span: Span, what: str) -> TExpr | None:
    """The broken tree after E2009 when two of `axes` have one name."""
    twice = duplicate_name(axes)
    if twice is None:
        return None
    message = f"the result of {what} would have two axes named {twice}"
    return c.error("E2009", message, span, help="rename one by an ascription: (e : ℝ[…])")


def merged(a: Shape, b: Shape) -> Shape:
    """`a`, an unnamed axis taking the name that it has in `b`, which agrees with it."""
    names = [x.name for x in a.axes]
    axes = tuple(
        Axis(x.name if x.name is not None or y.name in names else y.name, x.length)
        for x, y in zip(a.axes, b.axes, strict=True)
    )
    return Shape(a.prefix, axes)
