"""Derivative rows of what selects, joins and splits axes: linear maps that move entries, whose transposes move them
back."""

from __future__ import annotations

from presk_rel.ad.axes import axes, place
from presk_rel.ad.builder import Builder
from presk_rel.ad.forward import each, jointly
from presk_rel.ad.row import Flat, Row, Rule, Site
from presk_rel.core.ir import Var
from presk_rel.smt.linear import constant

_SHAPE = Flat("read for its shape only")


def _back(op: str, *, shaped: bool) -> Rule:
    """The transpose `op` of the cotangent, which reads the operand's shape where `shaped`."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        args = (s.ct, s.args[0]) if shaped else (s.ct,)
        return b.prim(op, b.types[s.args[0]], *args, attrs=() if op == "reshape_like" else s.attrs)

    return rule


def _taken(op: str) -> Rule:
    """`op` of the cotangent, at the place where the operand was put into the shape of the template."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        where, *bounds = s.attrs
        at = place(b, s.ct, where, s.args[1])
        return b.prim(op, b.types[s.args[0]], s.ct, attrs=(at, *bounds))

    return rule


def _piece(b: Builder, s: Site, i: int) -> Var:
    """`concat a x, y`: the part of ct that is the operand's."""
    (axis,) = s.attrs
    lengths = [next(a.length for a in axes(b, v) if a.name == axis) for v in s.args]
    start = constant(0) if i == 0 else lengths[0]
    at = place(b, s.ct, axis, s.args[0])
    return b.prim("slice", b.types[s.args[i]], s.ct, attrs=(at, start, start + lengths[i]))


ROWS = (
    Row("merge", (_back("reshape_like", shaped=True),), each),
    Row("split", (_back("reshape_like", shaped=True),), each),
    Row("reshape_like", (_back("reshape_like", shaped=True), _SHAPE), each),
    Row("split_heads", (_back("merge_heads", shaped=False),), each),
    Row("merge_heads", (_back("split_heads", shaped=False),), each),
    Row("index", (_back("scatter_index", shaped=True),), each),
    Row("scatter_index", (_taken("index"), _SHAPE), each),
    Row("slice", (_back("slice_vjp", shaped=True),), each),
    Row("slice_vjp", (_taken("slice"), _SHAPE), each),
    Row("concat", (_piece,), jointly),
)
