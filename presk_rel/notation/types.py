"""Types as formulas: `ℝ[…, In]`, `params Linear{In, Out}`."""

from __future__ import annotations

from typing import assert_never

from presk_rel.elab.ty import (
    Applied,
    Axis,
    Composed,
    Function,
    Hyper,
    Idx,
    Instance,
    Key,
    Mask,
    ModuleValue,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
)
from presk_rel.notation.formula import Cat, Dim, Formula, Sign, Sym, Word, bracketed, listed, row, tuple_of


def type_formula(ty: Type) -> Formula:
    """A type as headers show it; types nest no deeper than the source."""
    match ty:
        case Real(shape):
            return row(Sign("real"), _axes(shape))
        case Idx(bound, shape):
            return row(Sign("idx"), bracketed("[", (Dim(bound),), "]"), _axes(shape))
        case Mask(shape):
            return row(Sign("bool"), _axes(shape))
        case Hyper(kind):
            return Word(kind)
        case Key(shape):
            return row(Sign("key"), _axes(shape)) if shape.axes or shape.prefix else Sign("key")
        case TupleOf(items):
            return tuple_of(tuple(map(type_formula, items)))
        case Params(instance):
            return row(Sign("params"), instance_formula(instance))
        case Function(params, result):
            return row(bracketed("(", tuple(map(type_formula, params)), ")"), Sign("->"), type_formula(result))
        case ModuleValue(instance):
            return instance_formula(instance)
        case _:
            assert_never(ty)


def instance_formula(instance: Instance) -> Formula:
    match instance:
        case Applied(module, args):
            return row(path(module), bracketed("{", tuple(map(Dim, args)), "}")) if args else path(module)
        case Stacked(count, inner):
            return row(Sign("stack"), bracketed("{", (Dim(count),), "}"), Sign("("), instance_formula(inner), Sign(")"))
        case Composed(outer, inner):
            right = instance_formula(inner)
            whole = row(Sign("("), right, Sign(")")) if isinstance(inner, Composed) else right
            return row(instance_formula(outer), Sign("∘"), whole)
        case _:
            assert_never(instance)


def path(name: str) -> Formula:
    """`ff.Linear`"""
    first, *rest = name.split(".")
    out: Formula = Sym(first)
    for part in rest:
        out = row(out, Sign("."), Sym(part))
    return out


def axis_formula(axis: Axis) -> Formula:
    """`seq: T`, or `T` without a name."""
    return Dim(axis.length) if axis.name is None else row(Sym(axis.name), Sign("colon"), Dim(axis.length))


def _axes(shape: Shape) -> Formula:
    lead = () if shape.prefix is None else (Sign("dots") if shape.prefix == "..." else Sym(shape.prefix),)
    front, rest = map(axis_formula, shape.front), map(axis_formula, shape.axes)
    return Cat(((Sign("["), 0), *listed((*front, *lead, *rest), 0), (Sign("]"), 0)))
