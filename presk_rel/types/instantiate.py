"""A callee's types in the caller's terms: its dims and its leading axes replaced (spec: "Typing", "Calls")."""

from __future__ import annotations

from collections.abc import Mapping

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import (
    Axis,
    Function,
    Hyper,
    Idx,
    Key,
    Mask,
    ModuleValue,
    Params,
    Real,
    Shape,
    TupleOf,
    Type,
    map_instance,
)
from presk_rel.elab.typeexpr import PREFIX
from presk_rel.smt.linear import Linear, symbol
from presk_rel.types.problems import Origin
from presk_rel.types.unify import Unifier


@record
class Instantiation:
    """`lengths` replaces the callee's dims, `prefixes` its `...` and Shape parameters."""

    lengths: Mapping[str, Linear]
    prefixes: Mapping[str, str]

    def length(self, form: Linear) -> Linear:
        return form.substitute(self.lengths)

    def shape(self, shape: Shape) -> Shape:
        prefix = None if shape.prefix is None else self.prefixes.get(shape.prefix, shape.prefix)
        return Shape(prefix, tuple(Axis(a.name, self.length(a.length)) for a in shape.axes))

    def type(self, ty: Type) -> Type:
        match ty:
            case Real(shape):
                return Real(self.shape(shape))
            case Idx(bound, shape):
                return Idx(self.length(bound), self.shape(shape))
            case Mask(shape):
                return Mask(self.shape(shape))
            case Hyper() | Key():
                return ty
            case TupleOf(items):
                return TupleOf(tuple(self.type(t) for t in items))
            case Function(params, result):
                return Function(tuple(self.type(t) for t in params), self.type(result))
            case Params(instance):
                return Params(map_instance(instance, self.length))
            case ModuleValue(instance):
                return ModuleValue(map_instance(instance, self.length))


def instantiate(unifier: Unifier, signature: Signature, given: Mapping[str, Linear], span: Span) -> Instantiation:
    """Fresh unknowns for the dims of `signature` that `given` does not fix, and for its leading axes. A file's dim that
    nothing will determine is the caller's dim of that name."""
    own = {*signature.module_dims, *signature.own_dims}

    def unknown(dim: str) -> Linear:
        default = None if dim in own else symbol(dim)
        return symbol(unifier.fresh(Origin(dim, span, signature.core, default)))

    lengths = {d: given[d] if d in given else unknown(d) for d in signature.dims}
    prefixes = {p: unifier.fresh(Origin(p, span, signature.core)) for p in (PREFIX, *signature.shapes)}
    return Instantiation(lengths, prefixes)
