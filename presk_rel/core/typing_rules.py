"""One typing rule per primitive of PSK-Core (`core.prims`): from the attributes, the operands' types and the type the
binding declares, the type of the result or an error text.

A rule sees attributes of the kinds its row says and as many operands as it has (`verify` checks both first). Its result
is compared with the declared type modulo axis names that one of them lacks. A primitive whose type its operands do not
say (`zeros`, `const`, `record`, `normal`) answers with the declared type, once that is of the right form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from presk_rel.core.ir import Attr
from presk_rel.core.prims import PRIMS, AttrKind, PrimRow
from presk_rel.core.shapes import compatible_axes, compatible_shapes, compatible_types, same, stack_type, tangent
from presk_rel.elab.broadcast import align, broadcast
from presk_rel.elab.ty import (
    SCALAR_REAL,
    Hyper,
    Idx,
    Key,
    ModuleDef,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
    field_names,
    field_type,
)
from presk_rel.smt.linear import Linear, constant


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a primitive: what a rule may look at."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Type, ...]
    declared: Type
    modules: Mapping[str, ModuleDef]


class RuleError(Exception):
    """The rule does not allow this use; the text says why. Never leaves this module."""


Rule = Callable[[Use], Type]


def infer(
    row: PrimRow, attrs: tuple[Attr, ...], args: tuple[Type, ...], declared: Type, modules: Mapping[str, ModuleDef]
) -> Type | str:
    """The type of a primitive's result, or the text of an error: wrong number or kind of attributes or operands, or
    operands its rule does not allow."""
    problem = attribute_problem(row, attrs)
    if problem is not None:
        return problem
    if row.arity is not None and len(args) != row.arity:
        return f"{row.name} takes {row.arity} operands, not {len(args)}"
    try:
        return RULES[row.name](Use(row.name, attrs, args, declared, modules))
    except RuleError as error:
        return str(error)


# ----------------------------------------------------------------------------------------------------- attributes


def attribute_problem(row: PrimRow, attrs: tuple[Attr, ...]) -> str | None:
    """What is wrong with the attributes of a primitive, by the kinds its row lists."""
    kinds = row.attrs
    if kinds and kinds[-1] == "axis?" and len(attrs) == len(kinds) - 1:
        kinds = kinds[:-1]
    if len(attrs) != len(kinds):
        return f"{row.name} takes {len(kinds)} attributes, not {len(attrs)}"
    for kind, attr in zip(kinds, attrs, strict=True):
        if not _of_kind(kind, attr):
            return f"{row.name} takes an attribute of kind {kind.rstrip('?')}, not {attr!r}"
    return None


def _of_kind(kind: AttrKind, attr: Attr) -> bool:
    match kind:
        case "axis?" | "axis" | "name":
            return isinstance(attr, str) and attr != ""
        case "int":
            return isinstance(attr, int) and not isinstance(attr, bool)
        case "rational":
            return isinstance(attr, Fraction)
        case "dim":
            return isinstance(attr, Linear)


def _int(u: Use) -> int:
    value = u.attrs[0]
    assert isinstance(value, int)
    if value < 0:
        raise RuleError(f"{u.op} takes a natural number, not {value}")
    return value


def _text(u: Use) -> str:
    return str(u.attrs[0])


# ------------------------------------------------------------------------------------------------ operands by form


def _real(u: Use, i: int) -> Shape:
    ty = u.args[i]
    if not isinstance(ty, Real):
        raise RuleError(f"operand {i + 1} of {u.op} is a real tensor, not {ty}")
    return ty.shape


def _params(u: Use, i: int) -> Params:
    ty = u.args[i]
    if not isinstance(ty, Params):
        raise RuleError(f"operand {i + 1} of {u.op} is a parameter tree, not {ty}")
    return ty


def _tuple(u: Use, i: int) -> tuple[Type, ...]:
    ty = u.args[i]
    if not isinstance(ty, TupleOf):
        raise RuleError(f"operand {i + 1} of {u.op} is a tuple, not {ty}")
    return ty.items


def _key(u: Use, i: int) -> None:
    if not isinstance(u.args[i], Key):
        raise RuleError(f"operand {i + 1} of {u.op} is a key, not {u.args[i]}")


def without_axis(shape: Shape, axis: str, op: str = "mean") -> Shape:
    """`shape` without its axis of that name; RuleError when there is none, or more than one."""
    where = [i for i, a in enumerate(shape.axes) if a.name == axis]
    if len(where) != 1:
        raise RuleError(f"{op}: {'two axes are' if where else 'no axis is'} named {axis} in ℝ[{shape}]")
    return Shape(shape.prefix, shape.axes[: where[0]] + shape.axes[where[0] + 1 :])


# ---------------------------------------------------------------------------------------- constants, hyperparameters


def _const(u: Use) -> Type:
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
            raise RuleError(f"const {value} is not of type {u.declared}")


def _dim(u: Use) -> Type:
    if u.declared not in (Hyper("nat"), Hyper("int")):
        raise RuleError(f"dim gives a nat or an int, not {u.declared}")
    return u.declared


def _injection(u: Use) -> Type:
    match u.args[0]:
        case Hyper(kind) if kind != "bool":
            return SCALAR_REAL
        case Idx(_, shape):
            return Real(shape)
        case ty:
            raise RuleError(f"real takes a hyperparameter or an index tensor, not {ty}")


# ----------------------------------------------------------------------------------------------------- arithmetic


def _arithmetic(u: Use) -> Type:
    return _combine(u, u.args[0], u.args[1])


def _combine(u: Use, a: Type, b: Type) -> Type:
    scaling = u.op in ("mul", "div")
    match a, b:
        case Real(s), Real(t):
            shape = broadcast(s, t, same)
            if shape is None:
                raise RuleError(f"{u.op}: {a} and {b} do not broadcast")
            return Real(shape)
        case Hyper(kind), Hyper() if a == b and kind != "bool":
            return Hyper("int") if kind == "nat" and u.op in ("sub", "div") else a
        case (Params() | TupleOf()) as tree, Real(Shape(None, ())) if scaling:
            return _scaled(u, tree)
        case Real(Shape(None, ())), (Params() | TupleOf()) as tree if u.op == "mul":
            return _scaled(u, tree)
        case Params(), Params() if a == b and not scaling:
            return a
        case TupleOf(xs), TupleOf(ys) if len(xs) == len(ys) and not scaling:
            return TupleOf(tuple(_combine(u, x, y) for x, y in zip(xs, ys, strict=True)))
        case _:
            raise RuleError(f"{u.op} does not apply to {a} and {b}")


def _scaled(u: Use, tree: Type) -> Type:
    match tree:
        case Real() | Params():
            return tree
        case TupleOf(items):
            return TupleOf(tuple(_scaled(u, t) for t in items))
        case _:
            raise RuleError(f"{u.op} by a scalar does not apply to {tree}")


def _neg(u: Use) -> Type:
    match u.args[0]:
        case Real() as ty:
            return ty
        case Hyper(kind) if kind != "bool":
            return Hyper("int") if kind == "nat" else u.args[0]
        case ty:
            raise RuleError(f"neg does not apply to {ty}")


def _pow(u: Use) -> Type:
    _int(u)
    match u.args[0]:
        case Real() as ty:
            return ty
        case Hyper(kind) as ty if kind != "bool":
            return ty
        case ty:
            raise RuleError(f"pow does not apply to {ty}")


def _elementwise(u: Use) -> Type:
    return Real(_real(u, 0))


# ---------------------------------------------------------------------------------------------------- contractions


def _first_axis(u: Use, w: Shape) -> None:
    if w.prefix is not None or not w.axes:
        raise RuleError(f"{u.op}: ℝ[{w}] has no first axis")


def _dot(u: Use) -> Type:
    x, w = _real(u, 0), _real(u, 1)
    _first_axis(u, w)
    if not x.axes or not compatible_axes(x.axes[-1:], w.axes[:1]):
        raise RuleError(f"dot: the last axis of ℝ[{x}] is not the first of ℝ[{w}]")
    return Real(Shape(x.prefix, x.axes[:-1] + w.axes[1:]))


def _dot_vjp_l(u: Use) -> Type:
    ct, w = _real(u, 0), _real(u, 1)
    _first_axis(u, w)
    cut = len(ct.axes) - (len(w.axes) - 1)
    if cut < 0 or not compatible_axes(ct.axes[cut:], w.axes[1:]):
        raise RuleError(f"dot_vjp_l: the last axes of ℝ[{ct}] are not those of ℝ[{w}]")
    return Real(Shape(ct.prefix, (*ct.axes[:cut], w.axes[0])))


def _dot_vjp_r(u: Use) -> Type:
    x, ct = _real(u, 0), _real(u, 1)
    cut = len(x.axes) - 1
    if cut < 0 or x.prefix != ct.prefix or not compatible_axes(x.axes[:cut], ct.axes[:cut]):
        raise RuleError(f"dot_vjp_r: the first axes of ℝ[{x}] are not those of ℝ[{ct}]")
    return Real(Shape(None, (x.axes[-1], *ct.axes[cut:])))


# ------------------------------------------------------------------------------------- reductions and broadcasting


def _reduction(u: Use) -> Type:
    x = _real(u, 0)
    return Real(without_axis(x, _text(u), u.op)) if u.attrs else SCALAR_REAL


def _mean_vjp(u: Use) -> Type:
    ct, x = _real(u, 0), _real(u, 1)
    reduced = without_axis(x, _text(u), u.op) if u.attrs else SCALAR_REAL.shape
    if not compatible_shapes(ct, reduced):
        raise RuleError(f"mean_vjp: the cotangent is ℝ[{ct}], the mean ℝ[{reduced}]")
    return Real(x)


def _broadcast_like(u: Use) -> Type:
    x, t = _real(u, 0), _real(u, 1)
    if not u.attrs:
        fits = align(x, t, same) is not None
    else:
        fits = compatible_shapes(x, without_axis(t, _text(u), u.op))
    if not fits:
        raise RuleError(f"broadcast_like: ℝ[{x}] does not broadcast to ℝ[{t}]")
    return Real(t)


def _sum_to(u: Use) -> Type:
    x, t = _real(u, 0), _real(u, 1)
    if align(t, x, same) is None:
        raise RuleError(f"sum_to: ℝ[{t}] does not broadcast to ℝ[{x}]")
    return Real(t)


def _like(u: Use) -> Type:
    return tangent(u.args[0])


def _filled(u: Use) -> Type:
    if not isinstance(u.declared, Real):
        raise RuleError(f"{u.op} gives a real tensor, not {u.declared}")
    return u.declared


# ------------------------------------------------------------------------------------------------ trees and tuples


def _field(u: Use) -> Type:
    tree = _params(u, 0)
    ty = field_type(dict(u.modules), tree.instance, _text(u))
    if ty is None:
        raise RuleError(f"{tree} has no field {_text(u)}")
    return ty


def _set_field(u: Use) -> Type:
    ty = _field(u)
    if not compatible_types(ty, u.args[1]):
        raise RuleError(f"field {_text(u)} has type {ty}, the new value {u.args[1]}")
    return u.args[0]


def _record(u: Use) -> Type:
    if not isinstance(u.declared, Params):
        raise RuleError(f"record gives a parameter tree, not {u.declared}")
    modules = dict(u.modules)
    instance = u.declared.instance
    names = field_names(modules, instance)
    if len(names) != len(u.args):
        raise RuleError(f"{u.declared} has {len(names)} fields, the record {len(u.args)}")
    for name, arg in zip(names, u.args, strict=True):
        ty = field_type(modules, instance, name)
        if ty is None or not compatible_types(ty, arg):
            raise RuleError(f"field {name} of {u.declared} has type {ty}, not {arg}")
    return u.declared


def _tuple_of(u: Use) -> Type:
    return TupleOf(u.args)


def _component(u: Use) -> int:
    i, items = _int(u), _tuple(u, 0)
    if i >= len(items):
        raise RuleError(f"{u.args[0]} has no component {i}")
    return i


def _proj(u: Use) -> Type:
    return _tuple(u, 0)[_component(u)]


def _set_elem(u: Use) -> Type:
    i, items = _component(u), _tuple(u, 0)
    if not compatible_types(items[i], u.args[1]):
        raise RuleError(f"component {i} has type {items[i]}, the new value {u.args[1]}")
    return u.args[0]


# ------------------------------------------------------------------------------------------- keys and initializers


def _split_key(u: Use) -> Type:
    _key(u, 0)
    return TupleOf((Key(),) * _int(u))


def _draw(u: Use) -> Type:
    _key(u, 0)
    return _filled(u)


def _normal(u: Use) -> Type:
    std = u.attrs[0]
    assert isinstance(std, Fraction)
    if std < 0:
        raise RuleError(f"normal takes a standard deviation, not {std}")
    return _draw(u)


def _stack_params(u: Use) -> Type:
    match u.declared:
        case Params() as ty if all(stack_type(constant(len(u.args)), a) == ty for a in u.args):
            if u.args or _stacks_none(ty):
                return ty
        case _:
            pass
    raise RuleError(f"{len(u.args)} trees do not stack to {u.declared}")


def _stacks_none(ty: Params) -> bool:
    return isinstance(ty.instance, Stacked) and ty.instance.count == constant(0)


_ELEMENTWISE = (
    "gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos", "gelu'", "normal_pdf", "heaviside",
    "sign",
)  # fmt: skip

RULES: dict[str, Rule] = {
    "const": _const,
    "dim": _dim,
    "real": _injection,
    "add": _arithmetic,
    "sub": _arithmetic,
    "mul": _arithmetic,
    "div": _arithmetic,
    "neg": _neg,
    "pow": _pow,
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "dot": _dot,
    "dot_vjp_l": _dot_vjp_l,
    "dot_vjp_r": _dot_vjp_r,
    "mean": _reduction,
    "sum": _reduction,
    "mean_vjp": _mean_vjp,
    "broadcast_like": _broadcast_like,
    "sum_to": _sum_to,
    "zeros_like": _like,
    "ones_like": _like,
    "zeros": _filled,
    "ones": _filled,
    "field": _field,
    "set_field": _set_field,
    "record": _record,
    "tuple": _tuple_of,
    "proj": _proj,
    "set_elem": _set_elem,
    "split_key": _split_key,
    "normal": _normal,
    "xavier_uniform": _draw,
    "stack_params": _stack_params,
}
"""Every row of `PRIMS` has its rule here."""

__all__ = ["PRIMS", "RULES", "Rule", "RuleError", "Use", "attribute_problem", "infer", "without_axis"]
