"""What a declared default (`temperature : f64 = 0.8`) stands for when an entry is run without that argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from presk_rel.core.ir import Program
from presk_rel.core.lower import lower
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.rationals import GivenUp, Rationals
from presk_rel.exec.inputs import bind, require
from presk_rel.exec.literals import Node
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import HyperValue, Tensor, Value
from presk_rel.types.tree import TDim, TExpr, TFn, TPrim, TypedProgram


def complete(
    program: Program,
    entry: str,
    defaults: Sequence[tuple[str, TExpr]],
    given: Mapping[str, Node],
    dims: Mapping[str, int],
) -> dict[str, Node]:
    """`given`, checked against `entry`, and its `defaults` for what is not. A default may count with the entry's dims,
    which the arguments may be what says. E7014 for a parameter that has to be given, or whose default has no exact
    value."""
    bound, found = bind(program, entry, given, dims), dict(given)
    for name, default in defaults:
        if name not in given:
            found[name] = _node(entry, name, default, bound.env.dims)
    require(bound, found)
    return found


def _node(entry: str, name: str, default: TExpr, dims: Mapping[str, int]) -> Node:
    foreign = sorted(_dims(default) - dims.keys())
    value = None if foreign else default_value(default, dims)
    if value is None:
        why = f"counts with `{foreign[0]}`, no dimension of `{entry}`" if foreign else "is not a rational number"
        message = f"`{name}` has to be given: its default {why}"
        fail("E7014", message, default.span, help=f"--arg {name}=VALUE")
    return value


def _dims(default: TExpr) -> set[str]:
    match default:
        case TDim(dim):
            return set(dim.symbols)
        case TPrim(args=args):
            return set[str]().union(*map(_dims, args))
        case _:
            return set()


def default_value(default: TExpr, dims: Mapping[str, int]) -> Fraction | None:
    """The exact number of a default at `dims`; None where it is irrational (`sqrt(2)`), and so has no exact host
    value."""
    constant = TFn("default", tuple(dims), None, (), default.type, (), default, default.span, default.span)
    program = lower(TypedProgram("", {}, (constant,), {}, ()))
    try:
        return _number(Interpreter(program, Rationals(frozenset(), {})).run(constant.name, (), dims))
    except GivenUp:
        return None


def _number(value: Value) -> Fraction | None:
    match value:
        case HyperValue(_, q):
            return q
        case Tensor(_, data):
            q = data.item()
            return None if q is None else Fraction(int(q.p), int(q.q))
        case _:
            return None
