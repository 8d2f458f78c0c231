"""The rule language as a tree: what `dialect` reads, and what engines, proofs and the proof checker share.

Spans never take part in equality: two atoms are equal when they say the same. Not for engines' inner forms
(`normal`) nor for text (`printer`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal as OneOf

from presk_rel.diagnostics import NOWHERE, Span
from presk_rel.diagnostics.record import record

BaseType = OneOf["number", "symbol"]
Value = int | str
Row = tuple[Value, ...]
ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
ComparisonOperator = OneOf["=", "!=", "<", "<=", ">", ">="]
FunctionName = OneOf["cat", "strlen", "min", "max"]
AggregateOperator = OneOf["count", "sum", "min", "max"]

INT_MIN = -(2**31)
INT_MAX = 2**31 - 1


@record
class Variable:
    name: str


@record
class Wildcard:
    """`_`: any value, and no two need agree."""


@record
class Constant:
    """A number of 32 bits with sign, or a symbol (any text)."""

    value: Value


@record
class Binary:
    """Arithmetic modulo 2^32 with sign; `/` and `%` truncate towards zero."""

    operator: ArithmeticOperator
    left: Term
    right: Term


@record
class Call:
    function: FunctionName
    arguments: tuple[Term, ...]


@record
class Aggregate:
    """`operator target : { body }`; `target` is None for `count` alone. Bodies with `;` have been refused."""

    operator: AggregateOperator
    target: Term | None
    body: tuple[Literal, ...]
    span: Span = field(default=NOWHERE, compare=False)


Term = Variable | Wildcard | Constant | Binary | Call | Aggregate


@record
class Atom:
    relation: str
    arguments: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False)


@record
class Negation:
    atom: Atom
    span: Span = field(default=NOWHERE, compare=False)


@record
class Comparison:
    operator: ComparisonOperator
    left: Term
    right: Term
    span: Span = field(default=NOWHERE, compare=False)


Literal = Atom | Negation | Comparison


@record
class Attribute:
    name: str
    type_name: str


@record
class RelationDecl:
    """One declared relation. `types` are the base types of its columns, resolved through `.type`."""

    name: str
    attributes: tuple[Attribute, ...]
    types: tuple[BaseType, ...]
    is_input: bool
    is_output: bool
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def arity(self) -> int:
        return len(self.attributes)


@record
class TypeDecl:
    """`.type name <: base` (one base) or `.type name = a | b` (a union)."""

    name: str
    bases: tuple[str, ...]
    is_union: bool
    span: Span = field(default=NOWHERE, compare=False)


@record
class Rule:
    """One head and one conjunction. A clause with several heads or `;` gives several rules of one name.

    `name` is what proof trees show: the bracketed name of the comment above the clause, or `relation/index`.
    """

    head: Atom
    body: tuple[Literal, ...]
    name: str
    span: Span = field(default=NOWHERE, compare=False)


@record
class FactClause:
    """`relation(constants).` in the program's text: an input fact like those of `.facts` files."""

    relation: str
    row: Row
    span: Span = field(default=NOWHERE, compare=False)


@record
class Program:
    """A validated rule program. `relations` is in order of declaration."""

    relations: Mapping[str, RelationDecl]
    types: tuple[TypeDecl, ...]
    rules: tuple[Rule, ...]
    facts: tuple[FactClause, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name, decl in self.relations.items() if decl.is_input)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(name for name, decl in self.relations.items() if decl.is_output)
