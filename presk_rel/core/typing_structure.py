"""Typing rules of the primitives on parameter trees, tuples and keys (`core.typing_rules`)."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.numbers import number_text
from presk_rel.core.rule import RuleError, Use, key, natural, params, text, tuple_items
from presk_rel.core.shapes import compatible_types, slice_type, stack_count, tangent
from presk_rel.core.typing_tensors import rule_filled
from presk_rel.elab.ty import Key, Params, TupleOf, Type, field_names, field_type
from presk_rel.smt.linear import Linear, constant

MAX_KEYS = 100_000
"""A limit on what one text of a few characters may ask for."""


# ------------------------------------------------------------------------------------------------ trees and tuples


def rule_field(u: Use) -> Type:
    tree = params(u, 0)
    ty = field_type(u.modules, tree.instance, text(u))
    if ty is None:
        raise RuleError(f"{tree} has no field {text(u)}")
    return ty


def rule_set_field(u: Use) -> Type:
    ty = rule_field(u)
    if not compatible_types(ty, u.args[1]):
        raise RuleError(f"field {text(u)} has type {ty}, the new value {u.args[1]}")
    return u.args[0]


def rule_record(u: Use) -> Type:
    if not isinstance(u.declared, Params):
        raise RuleError(f"record gives a parameter tree, not {u.declared}")
    instance = u.declared.instance
    names = field_names(u.modules, instance)
    if len(names) != len(u.args):
        raise RuleError(f"{u.declared} has {len(names)} fields, the record {len(u.args)}")
    for name, arg in zip(names, u.args, strict=True):
        ty = field_type(u.modules, instance, name)
        if ty is None or not compatible_types(ty, arg):
            raise RuleError(f"field {name} of {u.declared} has type {ty}, not {arg}")
    return u.declared


def rule_tuple_of(u: Use) -> Type:
    return TupleOf(u.args)


def _component(u: Use) -> int:
    i, items = natural(u), tuple_items(u, 0)
    if i >= len(items):
        raise RuleError(f"{u.args[0]} has no component {i}")
    return i


def rule_proj(u: Use) -> Type:
    return tuple_items(u, 0)[_component(u)]


def rule_set_elem(u: Use) -> Type:
    i, items = _component(u), tuple_items(u, 0)
    if not compatible_types(items[i], u.args[1]):
        raise RuleError(f"component {i} has type {items[i]}, the new value {u.args[1]}")
    return u.args[0]


# ------------------------------------------------------------------------------------------- keys and initializers


def rule_split_key(u: Use) -> Type:
    key(u, 0)
    if natural(u) > MAX_KEYS:
        raise RuleError(f"split_key gives at most {MAX_KEYS} keys")
    return TupleOf((Key(),) * natural(u))


def rule_draw(u: Use) -> Type:
    key(u, 0)
    return rule_filled(u)


def rule_normal(u: Use) -> Type:
    std = u.attrs[0]
    assert isinstance(std, Fraction)
    if std < 0:
        raise RuleError(f"normal takes a standard deviation, not {number_text(std)}")
    return rule_draw(u)


# ---------------------------------------------------------------------------------------------------------- stacks


def rule_stack_params(u: Use) -> Type:
    ty = u.declared
    count = constant(len(u.args))
    slice_ = slice_type(count, ty)
    if slice_ is None or not all(compatible_types(slice_, a) for a in u.args):
        raise RuleError(f"{len(u.args)} values do not stack to {ty}")
    return ty


def _slice(u: Use, i: int) -> Type:
    ty = u.args[i]
    count = stack_count(ty)
    slice_ = slice_type(count, ty) if count is not None else None
    if count is None or slice_ is None:
        raise RuleError(f"operand {i + 1} of {u.op} is a stack, not {ty}")
    _check_number(u, count)
    return slice_


def _check_number(u: Use, count: Linear) -> None:
    """Slices are counted from 0. A number that is one of them at some lengths is for the run to judge (E7003)."""
    number = u.attrs[0]
    assert isinstance(number, Linear)
    if _negative(number) or _negative(count - number - constant(1)):
        raise RuleError(f"{u.op}: a stack of {count} has no slice {number}")


def _negative(form: Linear) -> bool:
    """Whether a form is below 0, or no integer, whatever naturals its symbols stand for."""
    if form.is_constant and form.const.denominator != 1:
        return True
    return form.const < 0 and all(c <= 0 for _, c in form.terms)


def rule_slice_params(u: Use) -> Type:
    return _slice(u, 0)


def rule_scatter_params(u: Use) -> Type:
    slice_ = tangent(_slice(u, 1))
    if not compatible_types(u.args[0], slice_):
        raise RuleError(f"scatter_params: the cotangent has type {u.args[0]}, a slice {slice_}")
    return tangent(u.args[1])


def rule_set_slice(u: Use) -> Type:
    slice_ = _slice(u, 0)
    if not compatible_types(u.args[1], slice_):
        raise RuleError(f"set_slice: a slice has type {slice_}, the new value {u.args[1]}")
    return u.args[0]
