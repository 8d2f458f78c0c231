"""Which types a literal may have."""

from __future__ import annotations

from presk_rel.elab.ty import Hyper, Real
from presk_rel.types.infer import IType, NumberKind

WIDTH: dict[NumberKind, int] = {"natural": 0, "integer": 1, "decimal": 2}

ADMITTING: dict[NumberKind, tuple[str, ...]] = {
    "natural": ("nat", "int", "rat", "f64"),
    "integer": ("int", "rat", "f64"),
    "decimal": ("rat", "f64"),
}
"""The hyperparameter types that have a literal's number."""

DEFAULT: dict[NumberKind, Hyper] = {"natural": Hyper("nat"), "integer": Hyper("int"), "decimal": Hyper("f64")}
"""What a literal is that no context says."""


def admits(ty: IType, number: NumberKind) -> bool:
    """May a literal have this type? A natural literal any numeric one, a decimal literal none of the integers."""
    match ty:
        case Real(shape):
            return not shape.axes and (shape.prefix is None or shape.prefix.startswith("?"))
        case Hyper(kind):
            return kind in ADMITTING[number]
        case _:
            return False
