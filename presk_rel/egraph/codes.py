"""How heads become constructors of the e-graph: one per primitive of Core that rules mention (where it takes any number
of operands, one per number that they mention), one per number of operands for everything else (folds, calls, records,
ascribed bindings), which rules only see as opaque. Composites are opaque: only the rules of `egraph.recognise` know
them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from presk_rel.core.ir import Attr
from presk_rel.core.prims import PRIMS
from presk_rel.egraph.language import Head
from presk_rel.egraph.patterns import ABSENT, Kind, Name, Pattern, read_rule
from presk_rel.egraph.rules import RULES

LARGEST_INT = 2**31
"""An integer attribute beyond this makes its node opaque: the e-graph counts in 64 bits, and rules add attributes."""


@dataclass(frozen=True, slots=True)
class Code:
    """A constructor: `columns` are the kinds of its arguments in order, attributes first, then its type, then one per
    operand (`term`, or `shape` for an operand that is read for its type only). `op` None: the one attribute is the
    number of a head, and there is no type column."""

    name: str
    op: str | None
    columns: tuple[Kind, ...]
    attr_count: int

    @property
    def key(self) -> tuple[str, int]:
        """The primitive and its number of operands."""
        assert self.op is not None
        return self.op, len(self.operands)

    @property
    def operands(self) -> tuple[Kind, ...]:
        return self.columns[self.attr_count + (0 if self.op is None else 1) :]


def ops_of(pattern: Pattern) -> set[str]:
    """The primitives a pattern mentions."""
    return set() if isinstance(pattern, Name) else {pattern.op}.union(*map(ops_of, pattern.args))


Key = tuple[str, int]
"""A primitive with its number of operands."""


def keys_of(pattern: Pattern) -> set[Key]:
    """The primitives a pattern mentions, each with its number of operands."""
    if isinstance(pattern, Name):
        return set()
    return {(pattern.op, len(pattern.args))}.union(*map(keys_of, pattern.args))


@cache
def known_ops() -> frozenset[Key]:
    """The primitives that the rules of the e-graph mention."""
    sides = [read_rule(r) for r in RULES.values() if r.ruleset not in ("recognise", "contract", "merge")]
    return frozenset(key for s in sides for side in (s.left, s.right) for key in keys_of(side))


def primitive_code(op: str, count: int) -> Code:
    """The constructor of a primitive with so many operands."""
    row = PRIMS[op]
    operands: tuple[Kind, ...] = tuple("shape" if i in row.shape_only else "term" for i in range(count))
    name = "o_" + op.replace("'", "_prime") + (str(count) if row.arity is None else "")
    return Code(name, op, (*row.attrs, "type", *operands), len(row.attrs))


def opaque_code(arity: int) -> Code:
    """The constructor of everything rules do not look into."""
    operands: tuple[Kind, ...] = ("term",) * arity
    return Code(f"opaque{arity}", None, ("int", *operands), 1)


def code_of(head: Head, arity: int) -> Code:
    """The constructor a start term is loaded with."""
    if (head.op, arity) not in known_ops():
        return opaque_code(arity)
    if any(isinstance(a, int) and abs(a) > LARGEST_INT for a in head.attrs):
        return opaque_code(arity)
    return primitive_code(head.op, arity)


@dataclass(slots=True)
class Attributes:
    """Attributes as the e-graph's columns: numbers as they are, everything else interned, 0 for an absent axis."""

    _values: list[Attr]
    _ids: dict[Attr, int]

    @staticmethod
    def new() -> Attributes:
        return Attributes([ABSENT], {ABSENT: 0})

    def intern(self, value: Attr) -> int:
        known = self._ids.get(value)
        if known is None:
            known = self._ids[value] = len(self._values)
            self._values.append(value)
        return known

    def columns(self, code: Code, attrs: tuple[Attr, ...]) -> list[int | Fraction]:
        """The attribute columns of a node; an optional axis that is not there is column value 0."""
        out: list[int | Fraction] = []
        rest = list(attrs)
        for kind in code.columns[: code.attr_count]:
            value = rest.pop(0) if rest else ABSENT
            if kind in ("int", "rational") and isinstance(value, (int, Fraction)):
                out.append(value)
            else:
                out.append(self.intern(value))
        return out

    def attr(self, kind: Kind, column: int | Fraction) -> Attr:
        """The attribute a column stands for."""
        if kind in ("int", "rational"):
            return column
        assert isinstance(column, int)
        return self._values[column]

    def head(self, code: Code, columns: list[int | Fraction]) -> Head:
        """The head of a node from its attribute columns and its type column."""
        assert code.op is not None
        attrs = [self.attr(k, c) for k, c in zip(code.columns[: code.attr_count], columns, strict=False)]
        own = columns[code.attr_count]
        assert isinstance(own, int)
        return Head(code.op, tuple(a for a in attrs if a != ABSENT), own)
