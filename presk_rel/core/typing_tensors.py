"""Typing rules of the primitives on hyperparameters and tensors (`core.typing_rules`)."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.numbers import number_text
from presk_rel.core.rule import RuleError, Use, natural, real, tensor, text, with_shape, without_axis
from presk_rel.core.shapes import compatible_axes, compatible_shapes, compatible_types, same, tangent
from presk_rel.elab.broadcast import align, broadcast
from presk_rel.elab.ty import SCALAR_REAL, Hyper, Idx, Params, Real, Shape, TupleOf, Type

# ---------------------------------------------------------------------------------------- constants, hyperparameters


def rule_const(u: Use) -> Type:
    value = u.attrs[0]
    assert isinstance(value, Fraction)
    match u.declared:
        case Real(Shape(None, ())) | Hyper("rat" | "f64"):
            return u.declared
        case Hyper("int") if value.denominator == 1:
            return u.declared
        case Hyper("nat") if value.denominator == 1 and value >= 0:
            return u.declared
        case _:
            raise RuleError(f"const {number_text(value)} is not of type {u.declared}")


def rule_dim(u: Use) -> Type:
    if u.declared not in (Hyper("nat"), Hyper("int")):
        raise RuleError(f"dim gives a nat or an int, not {u.declared}")
    return u.declared


def rule_injection(u: Use) -> Type:
    match u.args[0]:
        case Hyper(kind) if kind != "bool":
            return SCALAR_REAL
        case Idx(_, shape):
            return Real(shape)
        case ty:
            raise RuleError(f"real takes a hyperparameter or an index tensor, not {ty}")


# ----------------------------------------------------------------------------------------------------- arithmetic


def rule_arithmetic(u: Use) -> Type:
    return _combine(u, u.args[0], u.args[1])


def _combine(u: Use, a: Type, b: Type) -> Type:
    match a, b:
        case Real(s), Real(t):
            return Real(_broadcast(u, s, t))
        case Hyper(kind), Hyper() if a == b and kind != "bool":
            return Hyper("int") if kind == "nat" and u.op in ("sub", "div") else a
        case (Params() | TupleOf()) as tree, Real(Shape(None, ())):
            return _on_leaves(u, tree)
        case Real(Shape(None, ())), (Params() | TupleOf()) as tree:
            return _on_leaves(u, tree)
        case Params(), Params() if a == b:
            return a
        case TupleOf(xs), TupleOf(ys) if len(xs) == len(ys):
            return TupleOf(tuple(_leafwise(u, x, y) for x, y in zip(xs, ys, strict=True)))
        case _:
            raise RuleError(f"{u.op} does not apply to {a} and {b}")


def _broadcast(u: Use, s: Shape, t: Shape) -> Shape:
    shape = broadcast(s, t, same)
    if shape is None:
        raise RuleError(f"{u.op}: ℝ[{s}] and ℝ[{t}] do not broadcast")
    return shape


def _leafwise(u: Use, a: Type, b: Type) -> Type:
    """Inside tuples nothing broadcasts."""
    if (isinstance(a, Real) or isinstance(b, Real)) and not compatible_types(a, b):
        raise RuleError(f"{u.op}: {a} and {b} do not match leaf by leaf")
    return _combine(u, a, b)


def _on_leaves(u: Use, tree: Type) -> Type:
    """A tree of real leaves, on each of which something is done."""
    match tree:
        case Real() | Params():
            return tree
        case TupleOf(items):
            return TupleOf(tuple(_on_leaves(u, t) for t in items))
        case _:
            raise RuleError(f"{u.op} does not apply to {tree}")


def rule_extremum(u: Use) -> Type:
    return Real(_broadcast(u, real(u, 0), real(u, 1)))


def rule_neg(u: Use) -> Type:
    match u.args[0]:
        case Hyper(kind) if kind != "bool":
            return Hyper("int") if kind == "nat" else u.args[0]
        case ty:
            return _on_leaves(u, ty)


def rule_pow(u: Use) -> Type:
    natural(u)
    match u.args[0]:
        case Hyper(kind) as ty if kind != "bool":
            return ty
        case ty:
            return _on_leaves(u, ty)


def rule_sqrt(u: Use) -> Type:
    return _on_leaves(u, u.args[0])


def rule_sum_squares(u: Use) -> Type:
    _on_leaves(u, u.args[0])
    return SCALAR_REAL


def rule_pi(u: Use) -> Type:
    return SCALAR_REAL


def rule_elementwise(u: Use) -> Type:
    return Real(real(u, 0))


# ---------------------------------------------------------------------------------------------------- contractions


def _first_axis(u: Use, w: Shape) -> None:
    if w.prefix is not None or not w.axes:
        raise RuleError(f"{u.op}: ℝ[{w}] has no first axis")


def rule_dot(u: Use) -> Type:
    x, w = real(u, 0), real(u, 1)
    _first_axis(u, w)
    if not x.axes or not compatible_axes(x.axes[-1:], w.axes[:1]):
        raise RuleError(f"dot: the last axis of ℝ[{x}] is not the first of ℝ[{w}]")
    return Real(x.with_axes(x.axes[:-1] + w.axes[1:]))


def rule_dot_vjp_l(u: Use) -> Type:
    ct, w = real(u, 0), real(u, 1)
    _first_axis(u, w)
    cut = len(ct.axes) - (len(w.axes) - 1)
    if cut < 0 or not compatible_axes(ct.axes[cut:], w.axes[1:]):
        raise RuleError(f"dot_vjp_l: the last axes of ℝ[{ct}] are not those of ℝ[{w}]")
    return Real(ct.with_axes((*ct.axes[:cut], w.axes[0])))


def rule_dot_vjp_r(u: Use) -> Type:
    x, ct = real(u, 0), real(u, 1)
    cut = len(x.axes) - 1
    if cut < 0 or not compatible_shapes(x.with_axes(x.axes[:cut]), ct.with_axes(ct.axes[:cut])):
        raise RuleError(f"dot_vjp_r: the first axes of ℝ[{x}] are not those of ℝ[{ct}]")
    return Real(Shape(None, (x.axes[-1], *ct.axes[cut:])))


# ------------------------------------------------------------------------------------- reductions and broadcasting


def rule_reduction(u: Use) -> Type:
    x = real(u, 0)
    return Real(without_axis(x, text(u), u.op)) if u.attrs else SCALAR_REAL


def rule_mean_vjp(u: Use) -> Type:
    ct, x = real(u, 0), real(u, 1)
    reduced = without_axis(x, text(u), u.op) if u.attrs else SCALAR_REAL.shape
    if not compatible_shapes(ct, reduced):
        raise RuleError(f"mean_vjp: the cotangent is ℝ[{ct}], the mean ℝ[{reduced}]")
    return Real(x)


def rule_broadcast_like(u: Use) -> Type:
    x, t = tensor(u, 0), tensor(u, 1)
    if not u.attrs:
        fits = align(x, t, same) is not None
    else:
        fits = compatible_shapes(x, without_axis(t, text(u), u.op))
    if not fits:
        raise RuleError(f"broadcast_like: [{x}] does not broadcast to [{t}]")
    return with_shape(u.args[0], t)


def rule_sum_to(u: Use) -> Type:
    x, t = real(u, 0), real(u, 1)
    if align(t, x, same) is None:
        raise RuleError(f"sum_to: ℝ[{t}] does not broadcast to ℝ[{x}]")
    return Real(t)


def rule_like(u: Use) -> Type:
    return tangent(u.args[0])


def rule_filled(u: Use) -> Type:
    if not isinstance(u.declared, Real):
        raise RuleError(f"{u.op} gives a real tensor, not {u.declared}")
    return u.declared
