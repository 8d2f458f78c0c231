"""The conditions of rewrite rules: one row each. A condition speaks about the *types* of terms and about attributes,
never about values, so each is decided before anything runs.

`decided_by` says how a condition is discharged, in the words of `presk prove`: by a type fact, by computing with
constants, or by Z3. Facts about types are decided here and told to the e-graph once per type; the checker decides by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

from presk_rel.core.shapes import same
from presk_rel.egraph.patterns import Apply, Kind, PatternError, Sexp, parse, read_rule, read_sexp
from presk_rel.egraph.rule import Rule
from presk_rel.elab.broadcast import align, same_lead
from presk_rel.elab.ty import Idx, Mask, Params, Real, TupleOf, Type
from presk_rel.smt.linear import Linear, constant
from presk_rel.smt.solver import AtMost, Equal, Less, decide_by_normal_form

Parameter = Literal["operand", "type", "rational", "int", "name", "spec", "dim", "application"]
"""`operand`: a term or shape variable, or `root` for the whole left side; `application`: a primitive over variables."""
SHORT = 2**512
"""Constants are folded while they are shorter: `cⁿ` of `cⁿ` would not end otherwise."""

DecidedBy = Literal["type fact", "constant", "Z3"]

ROOT = "root"
"""The reserved variable of conditions that stands for the left side itself."""


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """`meaning` is a sentence over `{0}`, `{1}`, … the arguments as written in the rule."""

    name: str
    params: tuple[Parameter, ...]
    decided_by: DecidedBy
    meaning: str


_ROWS = (
    ConditionRow("type", ("operand", "type"), "type fact", "{0} has type {1}"),
    ConditionRow("same-type", ("operand", "operand"), "type fact", "{0} and {1} have the same type"),
    ConditionRow("typed", ("application", "type"), "type fact", "{0} has type {1} by the typing rules"),
    ConditionRow("scalar", ("operand",), "type fact", "{0} is a real number, ℝ[]"),
    ConditionRow("real", ("operand",), "type fact", "{0} is a tensor of reals"),
    ConditionRow("tensors", ("operand",), "type fact", "{0} is a tensor of reals, or a tree or tuple of them"),
    ConditionRow("matrix", ("operand",), "type fact", "{0} has at least two axes"),
    ConditionRow("real-type", ("type",), "type fact", "{0} is a type of real tensors"),
    ConditionRow("scalar-type", ("type",), "type fact", "{0} is ℝ[]"),
    ConditionRow("entries", ("type", "rational"), "type fact", "a tensor of type {0} has exactly {1} entries, not 0"),
    ConditionRow(
        "without-axis",
        ("name", "type", "type"),
        "type fact",
        "{2} is {1} without its axis {0}, and lines up with it so",
    ),
    ConditionRow(
        "as-inferred",
        (),
        "type fact",
        "all parts of the left side have the types of their typing rules, up to names of axes that make no difference",
    ),
    ConditionRow(
        "contraction",
        ("spec",),
        "constant",
        "both sides are one sum of products of the same factors, axis by axis: {0}",
    ),
    ConditionRow("of-matrices", ("spec", "name"), "constant", "{0} is {1} in the last two axes of each, others alike"),
    ConditionRow("per-slice", ("name", "spec"), "constant", "[{1}] does to every slice what {0} does"),
    ConditionRow(
        "per-slice-of", ("spec", "name", "spec"), "constant", "[{2}] does to every slice ({1}) what [{0}] does"
    ),
    ConditionRow("summed-out", ("name", "spec", "spec"), "constant", "[{2}] is [{1}] that sums over {0} too"),
    ConditionRow("stack-of", ("operand", "name", "dim"), "type fact", "the first axis of {0} is {1}, of length {2}"),
    ConditionRow(
        "lines-up-per-slice",
        ("type", "type", "operand", "operand"),
        "type fact",
        "{2} and {3} line up as their slices, {0} and {1}, do",
    ),
    ConditionRow("last-of", ("name", "type"), "type fact", "{0} is the last axis of {1}"),
    ConditionRow("last-axis", ("name", "spec"), "constant", "{0} is the last axis of the result of {1}"),
    ConditionRow("length", ("operand", "name", "dim"), "type fact", "the axis {1} of {0} has the length {2}"),
    ConditionRow("at-most", ("dim", "dim"), "Z3", "{0} ≤ {1}"),
    ConditionRow("less", ("dim", "dim"), "Z3", "{0} < {1}"),
    ConditionRow("equal", ("dim", "dim"), "Z3", "{0} = {1}"),
    ConditionRow("distinct", ("name", "name"), "constant", "{0} and {1} differ"),
    ConditionRow("nonzero", ("rational",), "constant", "{0} ≠ 0"),
    ConditionRow("positive", ("rational",), "constant", "{0} > 0"),
    ConditionRow("negative", ("rational",), "constant", "{0} < 0"),
    ConditionRow("even", ("int",), "constant", "{0} is even"),
    ConditionRow("odd", ("int",), "constant", "{0} is odd"),
    ConditionRow("at-least-1", ("int",), "constant", "{0} ≥ 1"),
    ConditionRow("small", ("int",), "constant", "{0} ≤ 64"),
    ConditionRow("varying", ("operand",), "constant", "{0} is not known to be constant"),
    ConditionRow("row", ("operand",), "type fact", "{0} has one axis"),
    ConditionRow("tensor", ("operand",), "type fact", "{0} is not ℝ[]"),
    ConditionRow("factor", ("rational",), "constant", "{0} is neither 0 nor 1"),
    ConditionRow("short", ("rational",), "constant", "{0} has at most 512 bits"),
)

CONDITIONS: dict[str, ConditionRow] = {row.name: row for row in _ROWS}


@dataclass(frozen=True, slots=True)
class Condition:
    """A row applied to variables; an argument is a variable's name, or a primitive over variables (`typed`)."""

    row: ConditionRow
    args: tuple[str | Apply, ...]
    text: str


@cache
def read_conditions(rule: Rule) -> tuple[Condition, ...]:
    """The rule's conditions as data; PatternError for one the table does not have."""
    return tuple(_read(text) for text in rule.conditions)


@cache
def read_guards(rule: Rule) -> tuple[Condition, ...]:
    """What keeps the rule from making the e-graph grow without need."""
    return tuple(_read(text) for text in rule.guards)


def _read(text: str) -> Condition:
    sexp = read_sexp(text)
    if not isinstance(sexp, tuple) or not sexp or sexp[0] not in CONDITIONS:
        raise PatternError(f"no such condition: {text}")
    row = CONDITIONS[str(sexp[0])]
    if len(sexp) - 1 != len(row.params):
        raise PatternError(f"{text}: {len(row.params)} arguments")
    return Condition(row, tuple(_argument(p, a) for p, a in zip(row.params, sexp[1:], strict=True)), text)


def _argument(param: Parameter, sexp: Sexp) -> str | Apply:
    if param != "application":
        if isinstance(sexp, str):
            return sexp
        raise PatternError(f"a variable expected, not {sexp}")
    pattern = parse(_write(sexp), ROOT)
    if isinstance(pattern, Apply):
        return pattern
    raise PatternError(f"an operation expected, not {sexp}")


def _write(sexp: Sexp) -> str:
    return sexp if isinstance(sexp, str) else "(" + " ".join(map(_write, sexp)) + ")"


@cache
def variables(rule: Rule) -> dict[str, Kind]:
    """Every variable of a rule with its kind: those of its sides, then those that only conditions bind."""
    kinds = dict(read_rule(rule).kinds)
    for condition in read_conditions(rule):
        for param, arg in zip(condition.row.params, condition.args, strict=True):
            if isinstance(arg, str) and param in ("type", "rational") and arg not in kinds:
                kinds[arg] = "type" if param == "type" else "rational"
            if isinstance(arg, str) and condition.row.name in ("length", "stack-of") and param == "dim":
                kinds.setdefault(arg, "dim")
    return kinds


# ------------------------------------------------------------------------------------------------ facts about types


def is_scalar(ty: Type) -> bool:
    return isinstance(ty, Real) and ty.shape.is_scalar


def is_real(ty: Type) -> bool:
    return isinstance(ty, Real)


def is_matrix(ty: Type) -> bool:
    """Its first and last axes are two."""
    return isinstance(ty, Real) and ty.shape.prefix is None and len(ty.shape.axes) >= 2


def is_tensors(ty: Type) -> bool:
    """Only real tensors at the leaves: `zeros`, `ones` and the structural operations mean what they say."""
    match ty:
        case Real() | Params():
            return True
        case TupleOf(items):
            return all(is_tensors(t) for t in items)
        case _:
            return False


def entries(ty: Type) -> Fraction | None:
    """The number of entries of a real tensor whose lengths are all constants, unless it is 0."""
    if not isinstance(ty, Real) or ty.shape.prefix is not None:
        return None
    product = Fraction(1)
    for axis in ty.shape.axes:
        if not axis.length.is_constant:
            return None
        product *= axis.length.const
    return product or None


TYPE_FACTS: dict[str, Callable[[Type], bool]] = {
    "scalar": is_scalar,
    "scalar-type": is_scalar,
    "real": is_real,
    "real-type": is_real,
    "tensors": is_tensors,
    "matrix": is_matrix,
    "tensor": lambda ty: not is_scalar(ty),
    "row": lambda ty: isinstance(ty, Real) and ty.shape.prefix is None and len(ty.shape.axes) == 1,
}
"""The conditions that hold of one type."""


def without_axis(name: str, large: Type, small: Type) -> bool:
    """Whether `small` is `large` without an axis, and broadcasting lines them up just so."""
    if not isinstance(large, Real) or not isinstance(small, Real) or not same_lead(large.shape, small.shape, same):
        return False
    kept = [i for i, a in enumerate(large.shape.axes) if a.name != name]
    return len(kept) + 1 == len(large.shape.axes) and align(small.shape, large.shape, same) == tuple(kept)


def last_of(name: str, ty: Type) -> bool:
    """Whether it is the name of the last axis, and of no other."""
    names = [a.name for a in ty.shape.axes] if isinstance(ty, Real) else []
    return names[-1:] == [name] and names.count(name) == 1


# ------------------------------------------------------------------------------------------------ dimensions


def axis_length(ty: Type, name: object) -> Linear | None:
    """The length of the axis of this name, if there is one."""
    if not isinstance(ty, Real | Mask | Idx):
        return None
    return next((a.length for a in ty.shape.axes if a.name is not None and a.name == name), None)


_ORDERS: dict[str, type[AtMost] | type[Less] | type[Equal]] = {"at-most": AtMost, "less": Less, "equal": Equal}


def order(condition: Condition, values: Mapping[str, object]) -> AtMost | Less | Equal:
    """A condition on dimensions as a question to the solver; a number stands for itself."""
    left, right = (_dimension(str(a), values) for a in condition.args)
    return _ORDERS[condition.row.name](left, right)


def _dimension(text: str, values: Mapping[str, object]) -> Linear:
    value = values.get(text)
    return value if isinstance(value, Linear) else constant(int(text))


def discharged_by(condition: Condition, values: Mapping[str, object]) -> str:
    """How a condition that holds is decided: of an order of dimensions, whether the normal form is enough."""
    if condition.row.name not in _ORDERS:
        return condition.row.decided_by
    return "normal form" if decide_by_normal_form(order(condition, values)) else "Z3"
