"""Builtins that join, split and regroup axes."""

from __future__ import annotations

from presk_rel.elab.ty import Axis, Idx, Mask, Real, Shape
from presk_rel.smt.linear import constant
from presk_rel.syntax import ast
from presk_rel.types.builtins.operands import distinct, known_real, merged, named_axis
from presk_rel.types.builtins.row import Use
from presk_rel.types.infer import Broken, Meta
from presk_rel.types.tree import TExpr, TPrim

Tensor = Real | Idx | Mask


def with_shape(ty: Tensor, shape: Shape) -> Tensor:
    match ty:
        case Real():
            return Real(shape)
        case Idx(bound, _):
            return Idx(bound, shape)
        case Mask():
            return Mask(shape)


def _tensor(use: Use, node: TExpr) -> Tensor | TExpr | None:
    ty = use.c.type_of(node)
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape):
            return None if use.c.unifier.is_open(shape) else ty
        case Meta(number=None):
            return None
        case Broken():
            return use.c.broken(use.span)
        case _:
            return use.c.error("E2005", f"`{use.name}` takes a tensor, not {use.c.show(node)}", node.span)


def merge(use: Use) -> TExpr | None:
    """merge(axis a, axis b, x): adjacent axes a, b as one of length |a|·|b|, unnamed."""
    node = use.values[0]
    ty = _tensor(use, node)
    if not isinstance(ty, Tensor):
        return ty
    first, second = (named_axis(use, ty.shape, a, node) for a in use.axes)
    if not isinstance(first, int):
        return first
    if not isinstance(second, int):
        return second
    if second != first + 1:
        message = (
            f"`merge` joins adjacent axes in their order, and {use.axes[1].text} does not follow {use.axes[0].text}"
        )
        return use.c.error("E2006", f"{message} in {use.c.show(node)}", use.axes[1].span)
    axes = ty.shape.axes
    length = axes[first].length.times(axes[second].length)
    if length is None:
        message = f"the product of the lengths {axes[first].length} and {axes[second].length} is no linear dimension"
        return use.c.error("E1007", message, use.at, help="one of the two must be a number")
    joined = Shape(ty.shape.prefix, (*axes[:first], Axis(None, length), *axes[second + 1 :]))
    return TPrim("merge", tuple(a.text for a in use.axes), use.values, with_shape(ty, joined), use.span)


def split(use: Use) -> TExpr | None:
    """split(axis a, m: M, n: N, x): the axis a, of length M·N, as two."""
    node = use.values[0]
    ty = _tensor(use, node)
    if not isinstance(ty, Tensor):
        return ty
    where = named_axis(use, ty.shape, use.axes[0], node)
    if not isinstance(where, int):
        return where
    (m, first), (n, second) = use.dims
    length = first.times(second)
    if length is None:
        message = f"the product of `{first}` and `{second}` is no linear dimension"
        return use.c.error("E1007", message, n.span, help="one of the two must be a number")
    axes = ty.shape.axes
    failed = use.c.unifier.unify_length(length, axes[where].length)
    if failed is not None:
        reason, example = use.c.reason(failed)
        message = f"`split` of the axis {use.axes[0].text} into {first} by {second}{reason}"
        return use.c.error("E2006", message, use.axes[0].span, counterexample=example)
    parts = (*axes[:where], Axis(m.text, first), Axis(n.text, second), *axes[where + 1 :])
    attrs = (use.axes[0].text, m.text, first, n.text, second)
    shape = Shape(ty.shape.prefix, parts)
    return distinct(use.c, parts, use.at, "`split`") or TPrim(
        "split", attrs, use.values, with_shape(ty, shape), use.span
    )


# ------------------------------------------------------------------------------------------------------------- heads


def split_heads(use: Use) -> TExpr | None:
    """ℝ[…, seq, H·HD] → ℝ[…, heads: H, seq, hd: HD], with the constants H and HD of the file."""
    node = use.values[0]
    ty = known_real(use, node)
    if not isinstance(ty, Real):
        return ty
    sizes = _heads(use)
    if sizes is None:
        return use.c.broken(use.span)
    h, hd = sizes
    axes = ty.shape.axes
    if len(axes) < 2 or use.c.unifier.unify_length(axes[-1].length, constant(h * hd)) is not None:
        message = f"`split_heads` takes ℝ[…, seq, H·HD], with H·HD = {h}·{hd} = {h * hd}, not {use.c.show(node)}"
        return use.c.error("E2003", message, node.span)
    parts = (*axes[:-2], Axis("heads", constant(h)), axes[-2], Axis("hd", constant(hd)))
    shape = Shape(ty.shape.prefix, parts)
    twice = distinct(use.c, parts, use.at, "`split_heads`")
    return twice or TPrim("split_heads", (h, hd), use.values, Real(shape), use.span)


def merge_heads(use: Use) -> TExpr | None:
    """ℝ[…, heads: H, seq, hd: HD] → ℝ[…, seq, H·HD], the inverse of `split_heads`."""
    node = use.values[0]
    ty = known_real(use, node)
    if not isinstance(ty, Real):
        return ty
    sizes = _heads(use)
    if sizes is None:
        return use.c.broken(use.span)
    h, hd = sizes
    axes = ty.shape.axes
    wanted = (Axis("heads", constant(h)), Axis("hd", constant(hd)))
    found = (*axes[-3:-2], *axes[-1:])
    if len(axes) < 3 or use.c.unifier.unify_shape(Shape(None, found), Shape(None, wanted)) is not None:
        message = f"`merge_heads` takes ℝ[…, heads: {h}, seq, hd: {hd}], not {use.c.show(node)}"
        return use.c.error("E2003", message, node.span)
    shape = Shape(ty.shape.prefix, (*axes[:-3], *axes[-2:-1], Axis(None, constant(h * hd))))
    return TPrim("merge_heads", (h, hd), use.values, Real(shape), use.span)


def _heads(use: Use) -> tuple[int, int] | None:
    """The constants H and HD of the file that the call stands in."""
    elab = use.c.program.elab
    values: dict[str, int | None] = {}
    for declared in elab.constants_of(use.span.file):
        values[declared.name] = elab.constants.get(declared.id)
    if "H" not in values or "HD" not in values:
        message = (
            f"`{use.name}` reads the constants H and HD of its file, which declares no {'HD' if 'H' in values else 'H'}"
        )
        use.c.error("E2033", message, use.at, help="declare const H = … and const HD = D / H, or use split and merge")
        return None
    h, hd = values["H"], values["HD"]
    return None if h is None or hd is None else (h, hd)


# ------------------------------------------------------------------------------------------------------------ concat


def concat(use: Use) -> TExpr | None:
    """concat(axis a, x, y): equal shapes but for the length of a, which both name."""
    x, y = use.values
    a, b = known_real(use, x), known_real(use, y)
    if not isinstance(a, Real):
        return a
    if not isinstance(b, Real):
        return b
    axis = use.axes[0]
    i, j = named_axis(use, a.shape, axis, x), named_axis(use, b.shape, axis, y)
    if not isinstance(i, int):
        return i
    if not isinstance(j, int):
        return j
    rest_a, rest_b = _without(a.shape, i), _without(b.shape, j)
    use.c.unifier.where = (use.span, "`concat`")
    failed = use.c.unifier.unify_shape(rest_a, rest_b) if i == j else None
    if failed is not None or i != j:
        reason, example = ("", None) if failed is None else use.c.reason(failed)
        message = (
            f"`concat` along {axis.text} takes shapes equal but for that axis, not {use.c.show(x)} and {use.c.show(y)}"
        )
        return use.c.error("E2003", message + reason, use.at, counterexample=example)
    return TPrim("concat", (axis.text,), use.values, _joined(use, axis, a.shape, b.shape, i), use.span)


def _joined(use: Use, axis: ast.Ident, a: Shape, b: Shape, i: int) -> Real:
    rest = merged(use.c.unifier.shape(_without(a, i)), use.c.unifier.shape(_without(b, i)))
    new = Axis(axis.text, a.axes[i].length + b.axes[i].length)
    return Real(Shape(rest.prefix, (*rest.axes[:i], new, *rest.axes[i:])))


def _without(shape: Shape, i: int) -> Shape:
    return Shape(shape.prefix, shape.axes[:i] + shape.axes[i + 1 :])
