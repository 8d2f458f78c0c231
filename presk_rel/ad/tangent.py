"""Which values have a cotangent (its type is `core.shapes.tangent`), and why others have none."""

from __future__ import annotations

from presk_rel.elab.ty import Function, Hyper, Idx, Key, Mask, ModuleValue, Params, Real, TupleOf, Type


def has_tangent(ty: Type) -> bool:
    """Whether a value of this type has a real leaf, so that a cotangent of it says something."""
    match ty:
        case Real() | Params():
            return True
        case TupleOf(items):
            return any(has_tangent(t) for t in items)
        case Idx() | Mask() | Hyper() | Key() | Function() | ModuleValue():
            return False


def without_tangent(ty: Type) -> str | None:
    """Why some part of a value of this type has no cotangent, in words; None when every part has one."""
    match ty:
        case Real() | Params():
            return None
        case TupleOf(items):
            return next((why for t in items if (why := without_tangent(t)) is not None), None)
        case Idx():
            return f"an index tensor ({ty})"
        case Mask():
            return f"a mask ({ty})"
        case Hyper():
            return f"a hyperparameter ({ty})"
        case Key():
            return "a key"
        case Function() | ModuleValue():
            return f"a function ({ty})"
