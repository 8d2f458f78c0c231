"""Derivative rows of contractions, reductions and broadcasts: each is linear in every operand, so the cotangent of one
operand is the transposed map. The maps and their adjoints are closed under this, to any order."""

from __future__ import annotations

from presk_rel.ad.axes import as_large, as_small, with_names
from presk_rel.ad.builder import Builder
from presk_rel.ad.forward import each
from presk_rel.ad.row import Flat, Row, Rule, Site
from presk_rel.core.ein import EinSpec, ein_spec
from presk_rel.core.ir import Var
from presk_rel.core.shapes import compatible_types
from presk_rel.elab.ty import Axis, Real, Shape

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
    return b.prim("mean", b.types[s.args[0]], with_names(b, s.ct, s.attrs, s.args[1]), attrs=s.attrs)


def _broadcast_like(b: Builder, s: Site, i: int) -> Var:
    ty = b.types[s.args[0]]
    if not s.attrs:
        return b.prim("sum_to", ty, as_large(b, s.ct, s.args[1], s.args[0]), s.args[0])
    return b.prim("sum", ty, with_names(b, s.ct, s.attrs, s.args[1]), attrs=s.attrs)


def _sum_to(b: Builder, s: Site, i: int) -> Var:
    x, template = s.args
    return b.prim("broadcast_like", b.types[x], as_small(b, s.ct, template, x), x)


def _ein(b: Builder, s: Site, i: int) -> Var:
    """The cotangent contracted with the other operands; an axis that only operand i has is spread by ones. The names of
    the contraction are chosen so that the result has those of the operand's type."""
    spec = ein_spec(str(s.attrs[0]))
    ty = b.types[s.args[i]]
    assert spec is not None and isinstance(ty, Real)
    names = _operand_names(spec, i, ty.shape)
    others = [k for k in range(len(s.args)) if k != i]
    lists = [spec.result, *(spec.operands[k] for k in others)]
    args = [s.ct, *(s.args[k] for k in others)]
    known = {name for axes in lists for name in axes}
    alone = [(n, x) for n, x in zip(spec.operands[i], ty.shape.axes, strict=True) if n not in known]
    if alone:
        lists.append(tuple(n for n, _ in alone))
        args.append(b.prim("ones", Real(Shape(None, tuple(Axis(names[n], x.length) for n, x in alone)))))
    renamed = [tuple(names[n] for n in axes) for axes in (*lists, spec.operands[i])]
    made = Real(Shape(None, tuple(Axis(n, x.length) for n, x in zip(renamed[-1], ty.shape.axes, strict=True))))
    fits = compatible_types(made, ty)
    text = str(EinSpec(tuple(renamed[:-1]), renamed[-1]))
    out = b.prim("ein", ty if fits else made, *args, attrs=(text,))
    return out if fits else b.prim("reshape_like", ty, out, s.args[i])


def _operand_names(spec: EinSpec, i: int, shape: Shape) -> dict[str, str]:
    """The names of a contraction with those of operand i as its type has them; a name in the way is exchanged."""
    names = {name: name for axes in spec.operands for name in axes}
    for name, axis in zip(spec.operands[i], shape.axes, strict=True):
        now = names[name]
        if axis.name is None or axis.name == now:
            continue
        holder = next((n for n, m in names.items() if m == axis.name), None)
        if holder is not None:
            names[holder] = now
        names[name] = axis.name
    return names


ROWS = (
    Row("dot", (_contraction("dot_vjp_l", "ct", "1"), _contraction("dot_vjp_r", "0", "ct")), each),
    Row("dot_vjp_l", (_contraction("dot", "ct", "1"), _contraction("dot_vjp_r", "ct", "0")), each),
    Row("dot_vjp_r", (_contraction("dot_vjp_l", "1", "ct"), _contraction("dot", "0", "ct")), each),
    Row("ein", (_ein,), each),
    Row("mean", (_mean,), each),
    Row("sum", (_sum,), each),
    Row("mean_vjp", (_mean_vjp, _SHAPE), each),
    Row("broadcast_like", (_broadcast_like, _SHAPE), each),
    Row("sum_to", (_sum_to, _SHAPE), each),
    Row("zeros_like", (_SHAPE,)),
    Row("ones_like", (_SHAPE,)),
)
