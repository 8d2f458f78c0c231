"""Ground instances of rules: a substitution, and both sides as terms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from presk_rel.core.ir import Attr
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.patterns import ABSENT, Apply, Attribute, Compute, Literal_, Name, Pattern
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rule import Rule
from presk_rel.smt.linear import Linear

Value = TermId | TypeId | Attr
"""By the kind of the variable: the term of a `term` or `shape`, the interned type of a `type`, an attribute."""


@dataclass(frozen=True, slots=True)
class Instance:
    """`left = right` by `rule` under `values`."""

    rule: Rule
    values: dict[str, Value]
    left: TermId
    right: TermId


@dataclass(frozen=True, slots=True)
class FoldChange:
    """`left = right`, in which folds differ, by laws of `folds.laws`."""

    laws: tuple[str, ...]
    left: TermId
    right: TermId


def instantiate(terms: Terms, pattern: Pattern, values: dict[str, Value]) -> TermId:
    """The term a pattern stands for under a substitution. (Patterns are shallow: rule text, never user input.)"""
    match pattern:
        case Name(name):
            value = values[name]
            assert isinstance(value, int)
            return value
        case Apply(op=op, attrs=attrs, attr_kinds=kinds, type=type_, args=args):
            given = tuple(attribute(a, values) for a in attrs)
            kept = tuple(v for v, k in zip(given, kinds, strict=True) if not (k == "axis?" and v == ABSENT))
            own = values[type_.name]
            assert isinstance(own, int)
            below = tuple(instantiate(terms, a, values) for a in args)
            return terms.make(terms.intern(Head(op, kept, own)), below)
        case _:
            assert_never(pattern)


def attribute(attr: Attribute, values: dict[str, Value]) -> Attr:
    """The value of an attribute expression."""
    match attr:
        case Name(name):
            return values[name]
        case Literal_(value):
            return value
        case Compute(operator, args):
            return compute(operator, [attribute(a, values) for a in args])
        case _:
            assert_never(attr)


def compute(operator: str, args: list[Attr]) -> int | Fraction | Linear:
    """Attribute arithmetic: `+ - * /`, unary `-`, `pow c n`, and `rational n` (a natural as a rational); of dimensions
    `+` and `-`."""
    match operator, args:
        case "+", [Linear() as a, Linear() as b]:
            return a + b
        case "-", [Linear() as a, Linear() as b]:
            return a - b
        case _:
            pass
    numbers = [a for a in args if isinstance(a, (int, Fraction))]
    match operator, numbers:
        case "+", [a, b]:
            return a + b
        case "-", [a]:
            return -a
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return Fraction(a) / b
        case "pow", [a, int(n)]:
            return Fraction(a) ** n
        case "rational", [int(n)]:
            return Fraction(n)
        case _:
            raise PreskBug("egraph", f"no attribute operation {operator} on {args}")


def fired(instances: list[Instance]) -> tuple[tuple[str, int], ...]:
    """How many instances there are of each rule, in the order in which the rules are met."""
    counts: dict[str, int] = {}
    for instance in instances:
        counts[instance.rule.name] = counts.get(instance.rule.name, 0) + 1
    return tuple(counts.items())
