"""The checker's own reading of rules: S-expressions, attributes computed exactly, facts about constants and types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_types, same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Idx, Mask, Params, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, constant

Sexp = str | list["Sexp"]
Bound = Mapping[str, object]

KEYWORDS = {
    "axis?": (":axis", ":axis?"), "axis": (":axis", ":axis2"), "name": (":name", ":name2"), "int": (":n", ":index"),
    "rational": (":value",), "dim": (":dim", ":dim2"), "place": (":place",), "spec": (":spec", ":spec2", ":spec3"),
}  # fmt: skip


def read(text: str) -> Sexp:
    """An S-expression as nested lists."""
    stack: list[list[Sexp]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    (whole,) = stack
    (expression,) = whole
    return expression


def parts(pattern: list[Sexp]) -> tuple[str, dict[str, Sexp], list[Sexp]]:
    """Operation, keyword arguments, operands."""
    op, *rest = pattern
    keywords: dict[str, Sexp] = {}
    while rest and isinstance(rest[0], str) and rest[0].startswith(":"):
        keywords[rest[0]] = rest[1]
        rest = rest[2:]
    return str(op), keywords, rest


def attributes(op: str, keywords: Mapping[str, Sexp], bound: Bound) -> tuple[object, ...]:
    """The attributes that a pattern asks for, under the substitution. An optional axis may be absent."""
    found: list[object] = []
    left = dict(keywords)
    for kind in PRIMS[op].attrs:
        word = next((k for k in KEYWORDS[kind] if k in left), None)
        value = None if word is None else evaluate(left.pop(word), bound, rational=kind == "rational")
        if kind == "dim" and isinstance(value, int):
            value = constant(value)
        if kind == "axis?" and word != ":axis" and value in (None, ""):
            continue
        found.append(value)
    return tuple(found)


def evaluate(sexp: Sexp, bound: Bound, *, rational: bool) -> object:
    """An attribute: a variable, a number, or exact arithmetic on attributes."""
    if isinstance(sexp, list):
        name, *rest = sexp
        return arithmetic(str(name), [evaluate(a, bound, rational=rational) for a in rest])
    if re.fullmatch(r"-?\d+(/\d+)?", sexp):
        return Fraction(sexp) if rational else int(sexp)
    return bound[sexp]


def arithmetic(name: str, values: list[object]) -> object:
    match name, values:
        case "+", [Linear() as a, Linear() as b]:
            return a + b
        case "-", [Linear() as a, Linear() as b]:
            return a - b
        case "+", [Fraction() | int() as a, Fraction() | int() as b]:
            return a + b
        case "-", [Fraction() | int() as a, Fraction() | int() as b]:
            return a - b
        case "-", [Fraction() | int() as a]:
            return -a
        case "*", [Fraction() | int() as a, Fraction() | int() as b]:
            return a * b
        case "/", [Fraction() | int() as a, Fraction() | int() as b]:
            return Fraction(a) / Fraction(b)
        case "pow", [Fraction() as a, int() as n] if 0 <= n <= 4096:
            return a**n
        case "abs", [Fraction() | int() as a]:
            return abs(a)
        case _:
            raise ValueError(f"no arithmetic `{name}` of {values}")


# ----------------------------------------------------------------------------------------------------- dimensions


def axis_length(ty: object, name: object) -> Linear | None:
    """The length of the axis of this name."""
    axes = ty.shape.axes if isinstance(ty, Real | Mask | Idx) else ()
    found = [a.length for a in axes if a.name == name and name]
    return found[0] if len(found) == 1 else None


def dimension_fact(name: str, left: object, right: object) -> bool:
    """An order of dimensions, whatever naturals the symbols stand for: no coefficient of the difference is negative, so
    it is least where all are 0."""
    if not isinstance(left, Linear) or not isinstance(right, Linear):
        return False
    difference = right - left
    rising = all(c > 0 for _, c in difference.terms)
    match name:
        case "at-most":
            return rising and difference.const >= 0
        case "less":
            return rising and difference.const > 0
        case "equal":
            return not difference.terms and difference.const == 0
        case _:
            return False


# ---------------------------------------------------------------------------------------------------------- facts


def tensors(ty: object) -> bool:
    return isinstance(ty, Real | Params) or (isinstance(ty, TupleOf) and all(tensors(t) for t in ty.items))


def entries(ty: Real) -> Fraction | None:
    product = Fraction(1)
    for axis in ty.shape.axes:
        if not axis.length.is_constant:
            return None
        product *= axis.length.const
    return None if ty.shape.prefix is not None else product


def _lead(shape: Shape) -> tuple[object, ...]:
    """What stands before the axes that can be named: the prefix, and the lengths before it."""
    return (shape.prefix, *(a.length for a in shape.front))


def without_axis(name: object, large: object, small: object) -> bool:
    """Whether a type is another without one axis, and its axes line up with the rest in order."""
    if not isinstance(large, Real) or not isinstance(small, Real) or _lead(large.shape) != _lead(small.shape):
        return False
    places = range(len(large.shape.axes))
    rest = tuple(i for i in places if large.shape.axes[i].name != name)
    return len(rest) == len(places) - 1 and align(small.shape, large.shape, same) == rest


def names_are_idle(op: str, declared: list[Type], inferred: list[Type]) -> bool:
    """Whether an operation means the same under types of its operands that differ in names of axes only: it names no
    axis, and does not line operands up, or these have all axes (or none) under both."""
    if declared == inferred:
        return True
    if {"axis", "axis?", "place", "name"} & set(PRIMS[op].attrs):
        return False
    if op in ("dot", "dot_vjp_l", "dot_vjp_r", "ein") or len(declared) == 1:
        return True
    wholes = [[t for t in types if not (isinstance(t, Real) and not t.shape.axes)] for types in (declared, inferred)]
    return all(
        isinstance(t, Real) and t.shape.prefix is None and compatible_types(t, types[0])
        for types in wholes
        for t in types
    )


def constant_fact(name: str, values: list[object]) -> bool:
    match name, values:
        case "distinct", [str() as a, str() as b] | [int() as a, int() as b]:
            return a != b
        case "nonzero", [Fraction() | int() as c]:
            return c != 0
        case "positive", [Fraction() | int() as c]:
            return c > 0
        case "negative", [Fraction() | int() as c]:
            return c < 0
        case "even", [int() as n]:
            return n % 2 == 0
        case "odd", [int() as n]:
            return n % 2 == 1
        case "at-least-1", [int() as n]:
            return n >= 1
        case "small", [int() as n]:
            return n <= 64
        case _:
            return False
