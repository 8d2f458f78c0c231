"""Rules as text: for people (proofs, messages), and for Soufflé (`souffle_text`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import assert_never

from presk_rel.diagnostics.record import record
from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    Binary,
    Call,
    Comparison,
    Constant,
    Literal,
    Negation,
    Program,
    RelationDecl,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)
from presk_rel.rules.facts_io import escape
from presk_rel.rules.walk import deep_terms, rule_terms


def value_text(value: Value | None) -> str:
    """A value as the rule language writes it; None, which stands for any value, is `_`."""
    if value is None:
        return "_"
    return str(value) if isinstance(value, int) else f'"{escape(value).replace(chr(34), chr(92) + chr(34))}"'


def atom_text(relation: str, row: tuple[Value | None, ...]) -> str:
    return f"{relation}({', '.join(value_text(v) for v in row)})"


@record
class Printer:
    """Writes terms and literals; `variable` and `value` say how names and constants look."""

    variable: Callable[[str], str] = lambda name: name.split("@")[0]
    value: Callable[[Value], str] = value_text

    def term(self, term: Term) -> str:
        match term:
            case Variable(name=name):
                return self.variable(name)
            case Wildcard():
                return "_"
            case Constant(value=value):
                return self.value(value)
            case Binary(operator=operator, left=left, right=right):
                return f"({self.term(left)} {operator} {self.term(right)})"
            case Call(function=function, arguments=arguments):
                return f"{function}({', '.join(map(self.term, arguments))})"
            case Aggregate(operator=operator, target=target, body=body):
                ranging = "" if target is None else f" {self.term(target)}"
                return f"{operator}{ranging} : {{ {self.body(body)} }}"
            case _:
                assert_never(term)

    def literal(self, literal: Literal) -> str:
        match literal:
            case Atom(relation=relation, arguments=arguments):
                return f"{relation}({', '.join(map(self.term, arguments))})"
            case Negation(atom=atom):
                return f"!{self.literal(atom)}"
            case Comparison(operator=operator, left=left, right=right):
                return f"{self.term(left)} {operator} {self.term(right)}"
            case _:
                assert_never(literal)

    def body(self, body: tuple[Literal, ...]) -> str:
        return ", ".join(map(self.literal, body))

    def rule(self, rule: Rule) -> str:
        head = self.literal(rule.head)
        return f"{head} :- {self.body(rule.body)}." if rule.body else f"{head}."


def souffle_text(program: Program, outputs: Collection[str]) -> str:
    """`program` for Soufflé, with `outputs` marked, all variables renamed, and symbols escaped as in `.facts` files.

    Types are printed as their base types: what may stand for what has been checked by `validate`.
    """
    return "\n".join(_souffle_lines(program, outputs)) + "\n"


def _souffle_lines(program: Program, outputs: Collection[str]) -> Iterator[str]:
    for decl in program.relations.values():
        columns = ", ".join(f"c{i}:{t}" for i, t in enumerate(decl.types))
        yield f".decl {decl.name}({columns})"
        yield from _directions(decl, decl.name in outputs)
    for fact in program.facts:
        yield f"{fact.relation}({', '.join(map(_souffle_value, fact.row))})."
    for rule in program.rules:
        variables = dict.fromkeys(t.name for t in deep_terms(rule_terms(rule)) if isinstance(t, Variable))
        names = {name: f"v{i}" for i, name in enumerate(variables)}
        yield Printer(names.__getitem__, _souffle_value).rule(rule)


def _directions(decl: RelationDecl, is_output: bool) -> Iterator[str]:
    if decl.is_input:
        yield f".input {decl.name}"
    if is_output:
        yield f".output {decl.name}"


def _souffle_value(value: Value) -> str:
    """A constant that Soufflé reads as the escaped form of the symbol, since that is what its `.facts` hold."""
    if isinstance(value, int):
        return str(value)
    return '"' + escape(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
