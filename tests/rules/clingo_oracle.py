"""The least model by clingo, an answer-set solver: an oracle that shares nothing with presk's engines but the syntax
tree. For programs without functions on symbols, division and order of symbols, which clingo has otherwise or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import clingo

from presk_rel.rules.ast import (
    Aggregate,
    Atom,
    Binary,
    Comparison,
    Constant,
    Literal,
    Negation,
    Program,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)


def solve_clingo(program: Program, facts: Mapping[str, Iterable[Row]]) -> dict[str, set[Row]]:
    """All relations of `program` over `facts`."""
    control = clingo.Control(["--warn=none"])
    control.add("base", [], _text(program, facts))
    control.ground([("base", [])])
    return {name: _rows(control, name, decl.arity) for name, decl in program.relations.items()}


def _rows(control: clingo.Control, name: str, arity: int) -> set[Row]:
    atoms = list(control.symbolic_atoms.by_signature(f"r_{name}", arity))
    assert all(atom.is_fact for atom in atoms)
    return {tuple(_value(argument) for argument in atom.symbol.arguments) for atom in atoms}


def _value(symbol: clingo.Symbol) -> Value:
    return symbol.number if symbol.type == clingo.SymbolType.Number else symbol.string


def _text(program: Program, facts: Mapping[str, Iterable[Row]]) -> str:
    lines = [f"#defined r_{name}/{decl.arity}." for name, decl in program.relations.items()]
    rows = [(name, row) for name, table in facts.items() for row in table]
    rows += [(fact.relation, fact.row) for fact in program.facts]
    lines += [_Writer().atom(Atom(name, tuple(Constant(v) for v in row))) + "." for name, row in rows]
    lines += [_Writer().rule(rule) for rule in program.rules]
    return "\n".join(lines)


class _Writer:
    """One rule as clingo's text."""

    def __init__(self) -> None:
        self.fresh = 0

    def rule(self, rule: Rule) -> str:
        body = ", ".join(map(self.literal, rule.body))
        return f"{self.atom(rule.head)} :- {body}." if body else f"{self.atom(rule.head)}."

    def atom(self, atom: Atom) -> str:
        return (
            f"r_{atom.relation}({','.join(map(self.term, atom.arguments))})" if atom.arguments else f"r_{atom.relation}"
        )

    def literal(self, literal: Literal) -> str:
        match literal:
            case Atom():
                return self.atom(literal)
            case Negation(atom=atom):
                return f"not {self.atom(atom)}"
            case Comparison(left=Variable() as result, right=Aggregate() as aggregate):
                return self.aggregate(self.term(result), aggregate)
            case Comparison(operator=operator, left=left, right=right):
                return f"{self.term(left)} {operator} {self.term(right)}"

    def aggregate(self, result: str, aggregate: Aggregate) -> str:
        """Every variable and wildcard of the body is part of the counted tuple, since the rule language counts
        solutions; clingo's extrema of nothing are `#inf` and `#sup`, the rule language's fail."""
        body = [self.named(literal) for literal in aggregate.body]
        names = sorted({t.name for b in body if isinstance(b, Atom) for t in b.arguments if isinstance(t, Variable)})
        target = [] if aggregate.target is None else [self.term(aggregate.target)]
        counted = ",".join([*target, *(self.term(Variable(n)) for n in names)]) or "0"
        text = f"{result} = #{aggregate.operator}{{{counted} : {', '.join(map(self.literal, body))}}}"
        return f"{text}, {result} != #inf, {result} != #sup" if aggregate.operator in ("min", "max") else text

    def named(self, literal: Literal) -> Literal:
        if not isinstance(literal, Atom):
            return literal
        arguments: list[Term] = []
        for argument in literal.arguments:
            if isinstance(argument, Wildcard):
                self.fresh += 1
                argument = Variable(f"w{self.fresh}")
            arguments.append(argument)
        return Atom(literal.relation, tuple(arguments))

    def term(self, term: Term) -> str:
        match term:
            case Variable(name=name):
                return f"V_{name}"
            case Wildcard():
                return "_"
            case Constant(value=value):
                return (
                    str(value)
                    if isinstance(value, int)
                    else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
                )
            case Binary(operator=operator, left=left, right=right):
                return f"({self.term(left)} {operator} {self.term(right)})"
            case _:
                raise NotImplementedError(term)
