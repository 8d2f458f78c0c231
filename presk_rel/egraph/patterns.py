"""The S-expressions of rewrite rules, read into data (syntax: `egraph.rule`).

Every variable of a rule has one kind, which its first place says: `term` for an operand, `shape` for an operand that
a primitive reads for its type only, and the attribute kinds of `core.prims` or `type` behind a keyword. A keyword
names an attribute by its kind: `:axis` (of an optional axis too: `:axis? a` also matches an absent one), `:name`,
`:n` or `:index` (int), `:value` (rational), `:dim`, `:spec` (then `:spec2`, `:spec3`), `:place`, `:type`. A `term`
variable may also stand on the right side where only a type is read. Every operation inside a right side says its
type, by a variable that the left side or a condition binds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import count
from typing import Literal, assert_never

from presk_rel.core.prims import PRIMS, AttrKind
from presk_rel.egraph.rule import Rule
from presk_rel.smt.linear import Linear, constant

Kind = Literal["term", "shape", "type"] | AttrKind

TYPED = frozenset({"const", "dim", "zeros", "ones", "record", "stack_params", "normal", "xavier_uniform"})
"""Primitives whose type is the binding's, not a function of their operands; patterns must give it by `:type`."""

HIDDEN = "#"
"""The types of left-side operations that a rule does not name are variables too, `#0` the left side's own; they are no
part of a proof's substitution."""

_KEYWORDS: dict[AttrKind, tuple[str, ...]] = {
    "axis?": (":axis", ":axis?"),
    "axis": (":axis", ":axis2"),
    "name": (":name", ":name2"),
    "int": (":n", ":index"),
    "rational": (":value",),
    "dim": (":dim", ":dim2"),
    "spec": (":spec", ":spec2", ":spec3"),
    "place": (":place",),
}

ABSENT = ""
"""What a variable behind `:axis?` stands for when there is no axis."""


class PatternError(ValueError):
    """A rule's text that is not a pattern: a mistake in the rule table."""


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal_:
    """A fixed attribute; `ABSENT` for an optional axis that is not there."""

    value: int | str | Fraction | Linear


@dataclass(frozen=True, slots=True)
class Compute:
    """An attribute computed from others, only on right sides: `(+ c d)`, `(- c)`, `(pow c n)`."""

    operator: str
    args: tuple[Attribute, ...]


Attribute = Name | Literal_ | Compute


@dataclass(frozen=True, slots=True)
class Apply:
    """A primitive over patterns, of a type: a variable of the rule, or a hidden one."""

    op: str
    attrs: tuple[Attribute, ...]
    attr_kinds: tuple[AttrKind, ...]
    type: Name
    args: tuple[Pattern, ...]


Pattern = Name | Apply
Sexp = str | tuple["Sexp", ...]

_TOKEN = re.compile(r"[()]|[^\s()]+")
_NUMBER = re.compile(r"-?\d+(/\d+)?\Z")


def read_sexp(text: str) -> Sexp:
    """One S-expression; PatternError for unbalanced text."""
    stack: list[list[Sexp]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise PatternError(f"unbalanced: {text}")
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise PatternError(f"not one expression: {text}")
    return stack[0][0]


def parse(text: str, root: str | None = None) -> Pattern:
    """The pattern a side is written as. On a left side (`root` None) every operation may leave its type out; on a right
    side only the outermost may, whose type is `root`."""
    return _pattern(read_sexp(text), count() if root is None else None, root)


def _pattern(sexp: Sexp, hidden: Iterator[int] | None, root: str | None) -> Pattern:
    if isinstance(sexp, str):
        return Name(sexp)
    op = sexp[0] if sexp else ""
    if not isinstance(op, str) or op not in PRIMS:
        raise PatternError(f"no primitive: {op}")
    row = PRIMS[op]
    given, rest = _keywords(sexp[1:])
    type_ = _type(op, given.pop(":type", None), hidden, root)
    kinds: tuple[AttrKind, ...] = tuple([_present(kind, given) for kind in row.attrs])
    attrs = tuple(_attribute(kind, given, op) for kind in row.attrs)
    if given:
        raise PatternError(f"{op}: unknown keywords {sorted(given)}")
    if row.arity is not None and row.arity != len(rest):
        raise PatternError(f"{op}: {row.arity} operands")
    return Apply(op, attrs, kinds, type_, tuple(_pattern(a, hidden, None) for a in rest))


def _present(kind: AttrKind, given: dict[str, Sexp]) -> AttrKind:
    """`:axis` asks for an optional axis that is there."""
    return "axis" if kind == "axis?" and ":axis" in given else kind


def _type(op: str, given: Sexp | None, hidden: Iterator[int] | None, root: str | None) -> Name:
    if isinstance(given, str):
        return Name(given)
    if op in TYPED or (hidden is None and root is None):
        raise PatternError(f"{op}: needs `:type`")
    return Name(f"{HIDDEN}{next(hidden)}" if hidden is not None else str(root))


def _keywords(items: tuple[Sexp, ...]) -> tuple[dict[str, Sexp], tuple[Sexp, ...]]:
    given: dict[str, Sexp] = {}
    at = 0
    while at + 1 < len(items):
        key = items[at]
        if not isinstance(key, str) or not key.startswith(":"):
            break
        given[key] = items[at + 1]
        at += 2
    return given, items[at:]


def _attribute(kind: AttrKind, given: dict[str, Sexp], op: str) -> Attribute:
    for keyword in _KEYWORDS[kind]:
        if keyword in given:
            return _attribute_value(kind, given.pop(keyword))
    if kind == "axis?":
        return Literal_(ABSENT)
    raise PatternError(f"{op}: needs {_KEYWORDS[kind][0]}")


def _attribute_value(kind: AttrKind, sexp: Sexp) -> Attribute:
    if isinstance(sexp, tuple):
        operator, *args = sexp
        if not isinstance(operator, str):
            raise PatternError("an attribute expression starts with its operator")
        return Compute(operator, tuple(_attribute_value(kind, a) for a in args))
    if _NUMBER.match(sexp) and kind == "dim":
        return Literal_(constant(int(sexp)))
    if _NUMBER.match(sexp):
        return Literal_(Fraction(sexp) if kind == "rational" else int(sexp))
    return Name(sexp)


@dataclass(frozen=True, slots=True)
class Side:
    """Both sides of a rule, read, with the kind of every variable in the order of its first place."""

    left: Pattern
    right: Pattern
    kinds: dict[str, Kind]


@cache
def read_rule(rule: Rule) -> Side:
    """The rule's sides as data. Right-side variables that the left does not bind must be bound by conditions."""
    left = parse(rule.left)
    right = parse(rule.right, left.type.name if isinstance(left, Apply) else HIDDEN)
    kinds: dict[str, Kind] = {}
    _collect(left, "term", kinds, rule)
    _collect(right, "term", kinds, rule)
    return Side(left, right, kinds)


def _collect(pattern: Pattern, kind: Kind, kinds: dict[str, Kind], rule: Rule) -> None:
    match pattern:
        case Name(name):
            _declare(name, kind, kinds, rule)
        case Apply(op, attrs, attr_kinds, type_, args):
            for attr, attr_kind in zip(attrs, attr_kinds, strict=True):
                _collect_attribute(attr, attr_kind, kinds, rule)
            _declare(type_.name, "type", kinds, rule)
            for i, arg in enumerate(args):
                _collect(arg, "shape" if i in PRIMS[op].shape_only else "term", kinds, rule)
        case _:
            assert_never(pattern)


def _collect_attribute(attr: Attribute, kind: AttrKind, kinds: dict[str, Kind], rule: Rule) -> None:
    match attr:
        case Name(name):
            _declare(name, kind, kinds, rule)
        case Compute(operator, args):
            for i, a in enumerate(args):
                _collect_attribute(a, "int" if operator == "pow" and i == 1 else kind, kinds, rule)
        case Literal_():
            pass
        case _:
            assert_never(attr)


_AXES: frozenset[Kind] = frozenset(("axis", "place", "name"))
"""What names an axis: one variable may stand in all of these places."""


def _declare(name: str, kind: Kind, kinds: dict[str, Kind], rule: Rule) -> None:
    known = kinds.setdefault(name, kind)
    if (known, kind) == ("shape", "term"):
        kinds[name] = "term"
    elif known != kind and {known, kind} <= _AXES:
        kinds[name] = "axis"
    elif known != kind and (known, kind) != ("term", "shape"):
        raise PatternError(f"{rule.name}: `{name}` is both {kinds[name]} and {kind}")
