"""What a typing rule is, and what rules share: attribute kinds and operands by form."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from presk_rel.core.ein import ein_spec
from presk_rel.core.ir import Attr
from presk_rel.core.numbers import number_text
from presk_rel.core.prims import AttrKind, PrimRow
from presk_rel.diagnostics.record import record
from presk_rel.elab.ty import Idx, Key, Mask, ModuleDef, Params, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear


@record
class Use:
    """One use of a primitive: what a rule may look at."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Type, ...]
    declared: Type
    modules: dict[str, ModuleDef]


class RuleError(Exception):
    """The rule does not allow this use; the text says why. Never leaves this module."""


Rule = Callable[[Use], Type]


# ----------------------------------------------------------------------------------------------------- attributes


def attribute_problem(row: PrimRow, attrs: tuple[Attr, ...]) -> str | None:
    """What is wrong with the attributes of a primitive, by the kinds its row lists."""
    kinds = row.attrs
    if kinds and kinds[-1] == "axis?" and len(attrs) == len(kinds) - 1:
        kinds = kinds[:-1]
    if len(attrs) != len(kinds):
        return f"{row.name} takes {len(kinds)} attributes, not {len(attrs)}"
    for kind, attr in zip(kinds, attrs, strict=True):
        if not _of_kind(kind, attr):
            return f"{row.name} takes an attribute of kind {kind.rstrip('?')}, not {_shown(attr)}"
    return None


def _shown(attr: Attr) -> str:
    return number_text(attr) if isinstance(attr, Fraction) else str(attr)


def _of_kind(kind: AttrKind, attr: Attr) -> bool:
    match kind:
        case "axis?" | "axis" | "name":
            return isinstance(attr, str) and attr != ""
        case "spec":
            return isinstance(attr, str) and ein_spec(attr) is not None
        case "place":
            return _of_kind("int", attr) and attr >= 0 if isinstance(attr, int) else _of_kind("axis", attr)
        case "int":
            return isinstance(attr, int) and not isinstance(attr, bool)
        case "rational":
            return isinstance(attr, Fraction)
        case "dim":
            return isinstance(attr, Linear)


def natural(u: Use) -> int:
    value = u.attrs[0]
    assert isinstance(value, int)
    if value < 0:
        raise RuleError(f"{u.op} takes a natural number, not {value}")
    return value


def text(u: Use) -> str:
    return str(u.attrs[0])


# ------------------------------------------------------------------------------------------------ operands by form


def real(u: Use, i: int) -> Shape:
    ty = u.args[i]
    if not isinstance(ty, Real):
        raise RuleError(f"operand {i + 1} of {u.op} is a real tensor, not {ty}")
    return ty.shape


def tensor(u: Use, i: int) -> Shape:
    """The shape of a real, index or mask operand."""
    match u.args[i]:
        case Real(shape) | Idx(_, shape) | Mask(shape):
            return shape
        case ty:
            raise RuleError(f"operand {i + 1} of {u.op} is a tensor, not {ty}")


def with_shape(ty: Type, shape: Shape) -> Real | Idx | Mask:
    """A tensor type with another shape."""
    match ty:
        case Idx(bound):
            return Idx(bound, shape)
        case Mask():
            return Mask(shape)
        case _:
            return Real(shape)


def params(u: Use, i: int) -> Params:
    ty = u.args[i]
    if not isinstance(ty, Params):
        raise RuleError(f"operand {i + 1} of {u.op} is a parameter tree, not {ty}")
    return ty


def tuple_items(u: Use, i: int) -> tuple[Type, ...]:
    ty = u.args[i]
    if not isinstance(ty, TupleOf):
        raise RuleError(f"operand {i + 1} of {u.op} is a tuple, not {ty}")
    return ty.items


def key(u: Use, i: int) -> None:
    if u.args[i] != Key():
        raise RuleError(f"operand {i + 1} of {u.op} is a key, not {u.args[i]}")


def without_axis(shape: Shape, axis: str, op: str = "mean") -> Shape:
    """`shape` without its axis of that name; RuleError when there is none, or more than one."""
    where = [i for i, a in enumerate(shape.axes) if a.name == axis]
    if len(where) != 1:
        raise RuleError(f"{op}: {'two axes are' if where else 'no axis is'} named {axis} in ℝ[{shape}]")
    return shape.with_axes(shape.axes[: where[0]] + shape.axes[where[0] + 1 :])
