"""Typing rules of the primitives that select, join and split axes, and of the contractions (`core.typing_rules`)."""

from __future__ import annotations

from presk_rel.core.ein import ein_spec
from presk_rel.core.rule import RuleError, Use, real, tensor, text, with_shape
from presk_rel.core.shapes import compatible_axes, compatible_shapes, merge_names, same
from presk_rel.core.volume import product, same_volume
from presk_rel.elab.broadcast import align, same_lead
from presk_rel.elab.ty import Axis, Mask, Real, Shape, Type
from presk_rel.smt.linear import Linear, constant

# ----------------------------------------------------------------------------------------------------------- places


def _named(u: Use, shape: Shape, name: object) -> int:
    where = [i for i, a in enumerate(shape.axes) if a.name == name]
    if len(where) != 1:
        raise RuleError(f"{u.op}: {'two axes are' if where else 'no axis is'} named {name} in [{shape}]")
    return where[0]


def _place(u: Use, shape: Shape) -> int:
    """The axis that an attribute of kind `place` means, counted after a prefix."""
    place = u.attrs[0]
    if isinstance(place, str):
        return _named(u, shape, place)
    assert isinstance(place, int)
    if not 0 <= place < len(shape.axes):
        raise RuleError(f"{u.op}: [{shape}] has no axis {place}")
    return place


def _dim(u: Use, i: int) -> Linear:
    dim = u.attrs[i]
    assert isinstance(dim, Linear)
    return dim


def _replaced(shape: Shape, i: int, *axes: Axis, width: int = 1) -> Shape:
    return shape.with_axes((*shape.axes[:i], *axes, *shape.axes[i + width :]))


# ------------------------------------------------------------------------------------------------- index and slice


def _without(u: Use, shape: Shape) -> Shape:
    return _replaced(shape, _place(u, shape))


def _between(u: Use, shape: Shape) -> Shape:
    i, length = _place(u, shape), _dim(u, 2) - _dim(u, 1)
    if length.is_constant and length.const < 0:
        raise RuleError(f"{u.op}: {u.attrs[1]}..{u.attrs[2]} ends before it begins")
    return _replaced(shape, i, Axis(shape.axes[i].name, length))


def rule_index(u: Use) -> Type:
    return with_shape(u.args[0], _without(u, tensor(u, 0)))


def rule_slice(u: Use) -> Type:
    return with_shape(u.args[0], _between(u, tensor(u, 0)))


def _placed(u: Use, expected: Shape) -> Type:
    ct = real(u, 0)
    if not compatible_shapes(ct, expected):
        raise RuleError(f"{u.op}: the cotangent is ℝ[{ct}], the value ℝ[{expected}]")
    return u.args[1]


def rule_scatter_index(u: Use) -> Type:
    return _placed(u, _without(u, real(u, 1)))


def rule_slice_vjp(u: Use) -> Type:
    return _placed(u, _between(u, real(u, 1)))


def rule_concat(u: Use) -> Type:
    x, y = real(u, 0), real(u, 1)
    i, j = _named(u, x, text(u)), _named(u, y, text(u))
    if i != j or not compatible_shapes(_replaced(x, i), _replaced(y, j)):
        raise RuleError(f"concat: ℝ[{x}] and ℝ[{y}] differ in more than the length of {text(u)}")
    joined = _replaced(x, i, Axis(text(u), x.axes[i].length + y.axes[j].length))
    return Real(merge_names(joined, _replaced(y, j, joined.axes[i])))


# ---------------------------------------------------------------------------------------------- other ways to read


def rule_merge(u: Use) -> Type:
    shape = tensor(u, 0)
    i, j = _named(u, shape, u.attrs[0]), _named(u, shape, u.attrs[1])
    if j != i + 1:
        raise RuleError(f"merge: {u.attrs[1]} does not follow {u.attrs[0]} in [{shape}]")
    length = product(shape.axes[i].length, shape.axes[j].length)
    if length is None:
        raise RuleError(f"merge: neither {shape.axes[i]} nor {shape.axes[j]} has a constant length")
    return with_shape(u.args[0], _replaced(shape, i, Axis(None, length), width=2))


def rule_split(u: Use) -> Type:
    shape = tensor(u, 0)
    i = _named(u, shape, u.attrs[0])
    outer, inner = Axis(str(u.attrs[1]), _dim(u, 2)), Axis(str(u.attrs[3]), _dim(u, 4))
    if product(outer.length, inner.length) != shape.axes[i].length:
        raise RuleError(f"split: {outer.length} times {inner.length} is not {shape.axes[i].length}")
    return with_shape(u.args[0], _replaced(shape, i, outer, inner))


def rule_reshape_like(u: Use) -> Type:
    x, t = tensor(u, 0), tensor(u, 1)
    if not same_lead(x, t, same) or not same_volume(x.axes, t.axes):
        raise RuleError(f"reshape_like: [{x}] and [{t}] may differ in their number of entries")
    return with_shape(u.args[0], t)


def _heads(u: Use) -> tuple[Linear, Linear]:
    h, e = u.attrs
    assert isinstance(h, int) and isinstance(e, int)
    if h < 0 or e < 0:
        raise RuleError(f"{u.op} takes natural numbers, not {h}x{e}")
    return constant(h), constant(e)


def rule_split_heads(u: Use) -> Type:
    (h, e), x = _heads(u), real(u, 0)
    if len(x.axes) < 2 or x.axes[-1].length != h.scale(e.const):
        raise RuleError(f"split_heads {h}x{e}: the last two axes of ℝ[{x}] are not seq, model: {h.scale(e.const)}")
    return Real(x.with_axes((*x.axes[:-2], Axis("heads", h), x.axes[-2], Axis("hd", e))))


def rule_merge_heads(u: Use) -> Type:
    (h, e), x = _heads(u), real(u, 0)
    if len(x.axes) < 3 or not _are_heads(x.axes[-3], x.axes[-1], h, e):
        raise RuleError(f"merge_heads {h}x{e}: the last axes of ℝ[{x}] are not heads: {h}, seq, hd: {e}")
    return Real(x.with_axes((*x.axes[:-3], x.axes[-2], Axis(None, h.scale(e.const)))))


def _are_heads(heads: Axis, hd: Axis, h: Linear, e: Linear) -> bool:
    return compatible_axes((heads, hd), (Axis("heads", h), Axis("hd", e)))


# --------------------------------------------------------------------------------------------- softmax, contractions


def rule_softmax(u: Use) -> Type:
    if len(u.args) not in (1, 2):
        raise RuleError(f"softmax takes 1 or 2 operands, not {len(u.args)}")
    x = real(u, 0)
    _named(u, x, text(u))
    if len(u.args) == 2:
        match u.args[1]:
            case Mask(m) if align(m, x, same) is not None:
                pass
            case ty:
                raise RuleError(f"softmax: {ty} is no mask that broadcasts into ℝ[{x}]")
    return Real(x)


def rule_ein(u: Use) -> Type:
    spec = ein_spec(text(u))
    if spec is None:
        raise RuleError(f"ein: [{text(u)}] is no contraction")
    if len(spec.operands) != len(u.args):
        raise RuleError(f"ein [{spec}] takes {len(spec.operands)} operands, not {len(u.args)}")
    lengths: dict[str, Linear] = {}
    for i, names in enumerate(spec.operands):
        x = real(u, i)
        if x.prefix is not None or len(x.axes) != len(names):
            raise RuleError(f"ein: ℝ[{x}] does not have the axes {' '.join(names)}")
        for name, axis in zip(names, x.axes, strict=True):
            if lengths.setdefault(name, axis.length) != axis.length:
                raise RuleError(f"ein: the axis {name} has the lengths {lengths[name]} and {axis.length}")
    return Real(Shape(None, tuple(Axis(name, lengths[name]) for name in spec.result)))
