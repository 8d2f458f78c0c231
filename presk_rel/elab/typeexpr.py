"""Type expressions → semantic types (spec: "Types")."""

from __future__ import annotations

from typing import Literal, get_args

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.context import BUILTIN, Elab
from presk_rel.elab.declared import Declared
from presk_rel.elab.dims import length, path_text
from presk_rel.elab.instances import applied, instance_at
from presk_rel.elab.ty import Axis, Hyper, Idx, Key, Mask, ModuleValue, Params, Real, Shape, TupleOf, Type
from presk_rel.syntax import ast

HyperKind = Literal["nat", "int", "rat", "f64", "bool"]
PREFIX = "..."

SCALARS: dict[str, Type] = {**{kind: Hyper(kind) for kind in get_args(HyperKind)}, "key": Key()}


@record
class Place:
    """Where a type stands. `what` names it in diagnostics; `prefix`: may a shape begin with `...` or a Shape
    parameter?"""

    what: str
    prefix: bool = True


IN_FUNCTION = Place("a function")
IN_ALIAS = Place("a type alias")
IN_PARAM = Place("a parameter of a module", prefix=False)


def type_of(elab: Elab, expr: ast.TypeExpr, place: Place) -> Type | None:
    """The type that `expr` denotes, None after an error."""
    match expr:
        case ast.RealType(axes):
            shape = shape_of(elab, axes, place)
            return None if shape is None else Real(shape)
        case ast.IdxType(bound, axes):
            limit, shape = length(elab, bound), shape_of(elab, axes, place)
            return None if limit is None or shape is None else Idx(limit, shape)
        case ast.MaskType(axes):
            shape = shape_of(elab, axes, place)
            return None if shape is None else Mask(shape)
        case ast.ParamType(inner):
            return type_of(elab, inner, place)
        case ast.ParamsType(module):
            instance = instance_at(elab, module, module.span)
            return None if instance is None else Params(instance)
        case ast.NamedType():
            return _named(elab, expr)
        case ast.TupleType(items):
            types = [type_of(elab, item, place) for item in items]
            known = tuple(t for t in types if t is not None)
            return elab.fitting(TupleOf(known), expr.span) if len(known) == len(types) else None


def shape_of(elab: Elab, axes: tuple[ast.Axis, ...], place: Place) -> Shape | None:
    """The shape of an axis list: `...` or a Shape parameter only in front, no axis name twice."""
    prefix: str | None = None
    out: list[Axis | None] = []
    for i, axis in enumerate(axes):
        name = _prefix(elab, axis)
        if name is None:
            out.append(_axis(elab, axis))
            continue
        if i > 0:
            elab.error("E1032", f"`{name}` must be the first axis", axis.span)
            return None
        if not place.prefix:
            elab.error("E1032", f"`{name}` may not stand in {place.what}: its axes must be known", axis.span)
            return None
        prefix = name
    known = tuple(a for a in out if a is not None)
    return Shape(prefix, known) if len(known) == len(out) and _distinct(elab, axes) else None


def _prefix(elab: Elab, axis: ast.Axis) -> str | None:
    if axis.dim is None:
        return PREFIX
    if axis.name is not None or not isinstance(axis.dim, ast.Name):
        return None
    target = elab.target(axis.dim)
    if isinstance(target, Declared) and isinstance(target.node, ast.TypeParam) and target.node.kind == "Shape":
        return target.name
    return None


def _axis(elab: Elab, axis: ast.Axis) -> Axis | None:
    form = None if axis.dim is None else length(elab, axis.dim)
    return None if form is None else Axis(None if axis.name is None else axis.name.text, form)


def _distinct(elab: Elab, axes: tuple[ast.Axis, ...]) -> bool:
    seen: set[str] = set()
    for axis in axes:
        if axis.name is None:
            continue
        if axis.name.text in seen:
            elab.error(
                "E1033",
                f"the axis name `{axis.name.text}` stands twice in one shape",
                axis.name.span,
                help=f"axes are selected by name: give the second another name, such as `{axis.name.text}2`",
            )
            return False
        seen.add(axis.name.text)
    return True


def _named(elab: Elab, expr: ast.NamedType) -> Type | None:
    target = elab.target(expr.path)
    text = path_text(expr.path)
    if isinstance(target, str) or target is None:
        scalar = SCALARS.get(text if target is None else target.removeprefix(BUILTIN))
        if scalar is not None:
            return scalar if _no_dims(elab, expr) else None
        if target is not None or not elab.unresolved(expr.path):
            _not_a_type(elab, text, expr.span)
        return None
    match target.node:
        case ast.TypeAlias():
            return elab.aliases.get(target.id) if _no_dims(elab, expr) else None
        case ast.Module():
            instance = applied(elab, target, expr.dims or (), expr.span)
            return None if instance is None else ModuleValue(instance)
        case ast.Model():
            instance = elab.models.get(target.id) if _no_dims(elab, expr) else None
            return None if instance is None else ModuleValue(instance)
        case _:
            _not_a_type(elab, text, expr.span)
            return None


def _no_dims(elab: Elab, expr: ast.NamedType) -> bool:
    if not expr.dims:
        return True
    elab.error("E1031", f"`{path_text(expr.path)}` takes no dimension arguments", expr.span)
    return False


def _not_a_type(elab: Elab, text: str, span: Span) -> None:
    elab.error(
        "E1034",
        f"`{text}` is no type",
        span,
        help="types are ℝ[…], idx[N][…], bool[…], nat, int, rat, f64, bool, key, params M, M{…}, tuples, aliases",
    )
