"""Derivative rows of what builds and takes apart trees and tuples, of constants, and of what has no derivative. The
cotangent of one part is `zeros_like` the whole with that part set (spec: "Parameter trees are differentiated
structurally")."""

from __future__ import annotations

from presk_rel.ad.builder import Builder
from presk_rel.ad.row import Opaque, Row, Rule, Site
from presk_rel.core.ir import Var
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import Params, field_names

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


ROWS = (
    Row("field", (_taken("field"),)),
    Row("proj", (_taken("proj"),)),
    Row("set_field", (_replaced_whole("set_field"), _replaced_part("set_field"))),
    Row("set_elem", (_replaced_whole("set_elem"), _replaced_part("set_elem"))),
    Row("record", (_record,)),
    Row("tuple", (_tuple,)),
    Row("const"),
    Row("dim"),
    Row("zeros"),
    Row("ones"),
    Row("real", (Opaque("a hyperparameter or an index carries no cotangent"),)),
    Row("split_key", (Opaque("a key is no real number"),)),
    Row("normal", (Opaque("a draw is a function of its key, which is no real number"),)),
    Row("stack_params", (Opaque("stacked trees are built from drawn parameters only"),)),
    Row("xavier_uniform", (Opaque("a draw is a function of its key, which is no real number"),)),
)
