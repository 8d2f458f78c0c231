"""Operations as formulas, for the typed program and for PSK-Core alike (`table` says how each is written)."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from presk_rel.core.ein import EinSpec
from presk_rel.core.prims import PRIMS, AttrKind
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Hyper, Idx, Key, Mask, Real, Type
from presk_rel.notation.formula import (
    ATOM,
    LIST,
    OPEN,
    POWER,
    Bars,
    Cat,
    Dim,
    Formula,
    Infix,
    Minus,
    Num,
    Over,
    Power,
    Root,
    Sign,
    SumOver,
    Sym,
    Word,
    listed,
    member,
    row,
    tuple_of,
)
from presk_rel.notation.table import SOURCE_ONLY, WRITTEN, Written
from presk_rel.notation.types import axis_formula, type_formula
from presk_rel.smt.linear import Linear

Attr = str | int | Fraction | Linear


def written(op: str) -> Written:
    """The operation's row. PreskBug if there is none."""
    found = WRITTEN.get(op)
    if found is None:
        raise PreskBug("notation", f"the operation {op} has no row in notation.table")
    return found


def operation(
    op: str, attrs: tuple[Attr, ...], args: tuple[Formula, ...], types: tuple[Type, ...], ty: Type
) -> Formula:
    """The operation on `args`, which have `types`; its value has type `ty`. Not for `ein`: `contraction`."""
    found = written(op)
    match found.form:
        case "infix":
            return Infix(found.sign, *args)
        case "product":
            return Infix("·" if any(map(is_scalar, types)) else found.sign, *args)
        case "quotient":
            return Over(*args)
        case "minus":
            return Minus(*args)
        case "root":
            return Root(*args)
        case "bars":
            return Bars(*args)
        case "power":
            return Power(args[0], _int(attrs[0]))
        case "operand":
            return args[0]
        case "attribute":
            return _attr(attrs[0])
        case "field":
            return member(args[0], _attr(attrs[0]))
        case "tuple":
            return tuple_of(args)
        case "made" | "typed" | "named":
            return _named(op, found.form, attrs, args, ty)
        case "ein":
            raise PreskBug("notation", "an ein is written as its sum")
        case _:
            assert_never(found.form)


def contraction(spec: EinSpec, factors: tuple[Formula, ...], bound: dict[str, Sym]) -> Formula:
    """The entry of an ein: the sum over the axes that the result lacks of the product of `factors`, the entries of the
    operands; `bound` says what stands for each axis."""
    product, *rest = factors
    for factor in rest:
        product = Infix("juxtaposed", product, factor)
    over = tuple(bound[a] for a in summed(spec))
    return SumOver(over, product) if over else product


def summed(spec: EinSpec) -> tuple[str, ...]:
    """The axes an ein sums over, in order of appearance."""
    every = dict.fromkeys(a for axes in spec.operands for a in axes)
    return tuple(a for a in every if a not in spec.result)


def is_scalar(ty: Type) -> bool:
    """Whether values of the type have no axes."""
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape) | Key(shape):
            return shape.is_scalar
        case Hyper():
            return True
        case _:
            return False


def _named(op: str, form: str, attrs: tuple[Attr, ...], args: tuple[Formula, ...], ty: Type) -> Formula:
    parts: list[tuple[Formula, int]] = [(Word(op), LIST)]
    for word in _attributes(op, attrs):
        parts += [(Sign("space"), LIST), (word, LIST)]
    if form == "made" and isinstance(ty, Idx | Mask) and ty.shape.axes:
        parts += [(Sign("space"), LIST), (axis_formula(ty.shape.axes[0]), LIST)]
    if args:
        parts += [(Sign("space"), LIST), *listed(args, POWER)]
    if form == "typed":
        parts += [(Sign("of"), LIST), (type_formula(ty), LIST)]
    level = ATOM if len(parts) == 1 else OPEN if len(args) < 2 else LIST
    return Cat(tuple(parts), level)


def _attributes(op: str, attrs: tuple[Attr, ...]) -> list[Formula]:
    """The attributes as PSK-Core writes them (`core.printer`): `axis model`, `seq: -1`, `pair: 0..1`, `12x64`."""
    kinds = PRIMS[op].attrs if op in PRIMS else SOURCE_ONLY.get(op, ())
    shown = [_attr(a) for a in attrs]
    match kinds:
        case ("int", "int"):
            return [row(shown[0], Sign("times"), shown[1])]
        case ("place", "dim"):
            return [row(shown[0], Sign("colon"), shown[1])]
        case ("place", "dim", "dim"):
            return [row(shown[0], Sign("colon"), shown[1], Sign("dot-dot"), shown[2])]
        case ("axis", "name", "dim", "name", "dim"):
            axis, a, m, b, n = shown
            return [row(Sign("axis"), axis), row(a, Sign("colon"), m), row(b, Sign("colon"), n)]
        case _:
            return [_with_axis(kind, a, op) for kind, a in zip(kinds, shown)]


def _with_axis(kind: AttrKind, shown: Formula, op: str) -> Formula:
    if kind == "spec":
        return row(Sign("["), shown, Sign("]"))
    return row(Sign("axis"), shown) if kind in ("axis", "axis?") and op != "concat" else shown


def _attr(attr: Attr) -> Formula:
    match attr:
        case str():
            return Sym(attr)
        case Linear():
            return Dim(attr)
        case int() | Fraction():
            return Num(Fraction(attr))
        case _:
            assert_never(attr)


def _int(attr: Attr) -> int:
    assert isinstance(attr, int)
    return attr
