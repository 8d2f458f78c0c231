"""What a declared default (`temperature : f64 = 0.8`) stands for when an entry is run without that argument."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from presk_rel.core.ir import Program
from presk_rel.core.lower import lower
from presk_rel.exec.exact.interp import Interpreter
from presk_rel.exec.exact.rationals import GivenUp, Rationals
from presk_rel.exec.inputs import bind
from presk_rel.exec.literals import Node
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import HyperValue, Tensor, Value
from presk_rel.types.tree import TDim, TExpr, TFn, TPrim, TypedProgram


def with_defaults(program: Program, fn: TFn, given: Mapping[str, Node], dims: Mapping[str, int]) -> dict[str, Node]:
    """`given`, and the defaults of `fn`, an entry of `program`, for what is not. A default may count with the entry's
    dims, which the arguments may be what says. E7014 for one that has no exact value."""
    solved = bind(program, fn.name, given, dims).env.dims
    found = dict(given)
    for name, default in fn.defaults:
        if name in given:
            continue
        foreign = sorted(_dims(default) - solved.keys())
        value = None if foreign else default_value(fn, default, solved)
        if value is None:
            why = f"counts with `{foreign[0]}`, no dimension of `{fn.name}`" if foreign else "is not a rational number"
            message = f"`{name}` has to be given: its default {why}"
            fail("E7014", message, default.span, help=f"--arg {name}=VALUE")
        found[name] = value
    return found


def _dims(default: TExpr) -> set[str]:
    match default:
        case TDim(dim):
            return set(dim.symbols)
        case TPrim(args=args):
            return set[str]().union(*map(_dims, args))
        case _:
            return set()


def default_value(fn: TFn, default: TExpr, dims: Mapping[str, int]) -> Fraction | None:
    """The exact number of a default of `fn`, at `dims`; None where it is irrational (`sqrt(2)`), and so has no exact
    host value."""
    constant = TFn(fn.name, fn.dims, None, (), default.type, (), default, fn.span, fn.name_span)
    program = lower(TypedProgram("", {}, (constant,), {}, ()))
    try:
        return _number(Interpreter(program, Rationals(frozenset(), {})).run(fn.name, (), dict(dims)))
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
