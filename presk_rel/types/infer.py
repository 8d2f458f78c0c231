"""Types while they are being inferred: the semantic types of `elab.ty`, and three things more that no typed program
holds.

- `Meta`: a type not known yet (of an untyped parameter, a literal). May stand wherever a type stands, inside
  tuples and functions too.
- `Broken`: the type of what has an error that is reported. It agrees with everything, so one mistake gives one
  message.
- symbols `?n` in lengths, and prefixes `?n` in shapes: unknown lengths and unknown leading axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.ty import Function, TupleOf, Type
from presk_rel.types.tree import TExpr

UNKNOWN: Final = "an unknown type"

NumberKind = Literal["natural", "integer", "decimal"]
"""What a literal is by its text: `3`, `-3`, `0.3`."""


@record
class Meta:
    """`number` says that it is the type of a literal: a real scalar or a hyperparameter, whatever its context takes."""

    id: int
    number: NumberKind | None = None

    def __str__(self) -> str:
        return UNKNOWN if self.number is None else "a decimal number" if self.number == "decimal" else "a number"


@record
class Broken:
    def __str__(self) -> str:
        return UNKNOWN


BROKEN = Broken()

IType = Type | Meta | Broken


def tuple_of(items: Iterable[IType]) -> TupleOf:
    """A tuple whose items may still be unknown."""
    return TupleOf(cast("tuple[Type, ...]", tuple(items)))


def function_of(params: Sequence[IType], result: IType) -> Function:
    """A function type whose parts may still be unknown."""
    return Function(cast("tuple[Type, ...]", tuple(params)), cast("Type", result))


def items_of(ty: TupleOf) -> tuple[IType, ...]:
    return cast("tuple[IType, ...]", ty.items)


def params_of(ty: Function) -> tuple[IType, ...]:
    return cast("tuple[IType, ...]", ty.params)


def result_of(ty: Function) -> IType:
    return cast("IType", ty.result)


def held(ty: IType) -> Type:
    """`ty` where a typed tree wants a type: trees under construction hold unknown types until `zonk` replaces them."""
    return cast("Type", ty)


@dataclass(eq=False, slots=True)
class Hole:
    """A place of a tree under construction whose expression is settled later (`check.stuck`)."""

    type: Type
    span: Span
    node: TExpr | None = None


def in_tree(hole: Hole) -> TExpr:
    return cast("TExpr", hole)


def ity(expr: TExpr) -> IType:
    """The type of an expression of a tree under construction."""
    return cast("IType", expr.type)
