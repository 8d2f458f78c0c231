"""Derivative rows of contractions, reductions and broadcasts: each is linear in every operand, so the cotangent of one
operand is the transposed map. The maps and their adjoints are closed under this, to any order."""

from __future__ import annotations

from presk_rel.ad.builder import Builder
from presk_rel.ad.row import Flat, Row, Rule, Site
from presk_rel.core.ir import Var

_SHAPE = Flat("read for its shape only")


def _contraction(op: str, left: str, right: str) -> Rule:
    """`op` of two of {ct, the site's operands}, named by position: the cotangent of operand i, of its type."""

    def rule(b: Builder, s: Site, i: int) -> Var:
        pick = {"ct": s.ct, "0": s.args[0], "1": s.args[1]}
        return b.prim(op, b.types[s.args[i]], pick[left], pick[right])

    return rule


def _mean(b: Builder, s: Site, i: int) -> Var:
    return b.prim("mean_vjp", b.types[s.args[0]], s.ct, s.args[0], attrs=s.attrs)


def _sum(b: Builder, s: Site, i: int) -> Var:
    return b.prim("broadcast_like", b.types[s.args[0]], s.ct, s.args[0], attrs=s.attrs)


def _mean_vjp(b: Builder, s: Site, i: int) -> Var:
    """x ↦ x/N repeated N times: its transpose is the mean."""
    return b.prim("mean", b.types[s.args[0]], s.ct, attrs=s.attrs)


def _broadcast_like(b: Builder, s: Site, i: int) -> Var:
    ty = b.types[s.args[0]]
    return b.prim("sum", ty, s.ct, attrs=s.attrs) if s.attrs else b.prim("sum_to", ty, s.ct, s.args[0])


def _sum_to(b: Builder, s: Site, i: int) -> Var:
    return b.prim("broadcast_like", b.types[s.args[0]], s.ct, s.args[0])


ROWS = (
    Row("dot", (_contraction("dot_vjp_l", "ct", "1"), _contraction("dot_vjp_r", "0", "ct"))),
    Row("dot_vjp_l", (_contraction("dot", "ct", "1"), _contraction("dot_vjp_r", "ct", "0"))),
    Row("dot_vjp_r", (_contraction("dot_vjp_l", "1", "ct"), _contraction("dot", "0", "ct"))),
    Row("mean", (_mean,)),
    Row("sum", (_sum,)),
    Row("mean_vjp", (_mean_vjp, _SHAPE)),
    Row("broadcast_like", (_broadcast_like, _SHAPE)),
    Row("sum_to", (_sum_to, _SHAPE)),
    Row("zeros_like", (_SHAPE,)),
    Row("ones_like", (_SHAPE,)),
)
