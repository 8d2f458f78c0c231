"""Derivative rows of what builds and takes apart trees and tuples, of constants, and of what has no derivative. The
cotangent of one part is `zeros_like` the whole with that part set (spec: "Parameter trees are differentiated
structurally")."""

from __future__ import annotations

from presk_rel.ad.builder import Builder
from presk_rel.ad.forward import each, jointly
from presk_rel.ad.row import Flat, Opaque, Row, Rule, Site
from presk_rel.core.ir import Var
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import Params, field_names
from presk_rel.smt.linear import constant as constant_form

_SETTER = {"field": "set_field", "proj": "set_elem"}
_GETTER = {"set_field": "field", "set_elem": "proj"}


def _taken(get: str) -> Rule:
    """`θ.n`, `p.i`: zeros with that part set to ct."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        ty = tangent(b.types[s.args[0]])
        return b.prim(_SETTER[get], ty, b.prim("zeros_like", ty, s.args[0]), s.ct, attrs=s.attrs)

    return rule


def _replaced_whole(put: str) -> Rule:
    """`set_field n θ, v` with respect to θ: ct with the part zeroed."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        zero = b.prim("zeros_like", tangent(b.types[s.args[1]]), s.args[1])
        return b.prim(put, tangent(b.types[s.args[0]]), s.ct, zero, attrs=s.attrs)

    return rule


def _replaced_part(put: str) -> Rule:
    """`set_field n θ, v` with respect to v: that part of ct."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        return b.prim(_GETTER[put], tangent(b.types[s.args[1]]), s.ct, attrs=s.attrs)

    return rule


def _record(b: Builder, s: Site, i: int) -> Var:
    whole = b.types[s.result]
    assert isinstance(whole, Params)
    name = field_names(b.modules, whole.instance)[i]
    return b.prim("field", tangent(b.types[s.args[i]]), s.ct, attrs=(name,))


def _tuple(b: Builder, s: Site, i: int) -> Var:
    return b.prim("proj", tangent(b.types[s.args[i]]), s.ct, attrs=(i,))


def _slice_of_stack(b: Builder, s: Site, i: int) -> Var:
    """`slice_params i p`: zeros of the stack with ct in slice i."""
    return b.prim("scatter_params", tangent(b.types[s.args[0]]), s.ct, s.args[0], attrs=s.attrs)


def _own_slice(b: Builder, s: Site, i: int) -> Var:
    """`set_slice`, `scatter_params` with respect to the slice: that slice of ct."""
    return b.prim("slice_params", tangent(b.types[s.args[i]]), s.ct, attrs=s.attrs)


def _other_slices(b: Builder, s: Site, i: int) -> Var:
    """`set_slice i p, v` with respect to p: ct with slice i zeroed."""
    zero = b.prim("zeros_like", tangent(b.types[s.args[1]]), s.args[1])
    return b.prim("set_slice", tangent(b.types[s.args[0]]), s.ct, zero, attrs=s.attrs)


def _stacked(b: Builder, s: Site, i: int) -> Var:
    """`stack_params v…`: slice i of ct."""
    return b.prim("slice_params", tangent(b.types[s.args[i]]), s.ct, attrs=(constant_form(i),))


_DRAW = Opaque("a draw is a function of its key, which is no real number")

ROWS = (
    Row("field", (_taken("field"),), each),
    Row("proj", (_taken("proj"),), each),
    Row("set_field", (_replaced_whole("set_field"), _replaced_part("set_field")), jointly),
    Row("set_elem", (_replaced_whole("set_elem"), _replaced_part("set_elem")), jointly),
    Row("record", (_record,), jointly),
    Row("tuple", (_tuple,), jointly),
    Row("stack_params", (_stacked,), jointly),
    Row("slice_params", (_slice_of_stack,), each),
    Row("scatter_params", (_own_slice, Flat("read for its shape only")), each),
    Row("set_slice", (_other_slices, _own_slice), jointly),
    Row("const"),
    Row("dim"),
    Row("pi"),
    Row("zeros"),
    Row("ones"),
    Row("real", (Opaque("a hyperparameter or an index carries no cotangent"),)),
    Row("split_key", (Opaque("a key is no real number"),)),
    Row("normal", (_DRAW,)),
    Row("xavier_uniform", (_DRAW,)),
)
