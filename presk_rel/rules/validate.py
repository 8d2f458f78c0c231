"""What a rule program must satisfy before any engine sees it: known relations, arities, types, bound variables, strata.

The same conditions as Soufflé's, so that a program accepted here runs there. Stricter in one point: a variable that an
aggregate ranges over may not have the name of one outside it, since readers take it for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from presk_rel.diagnostics import Diagnostics, Span
from presk_rel.rules.ast import (
    INT_MAX,
    INT_MIN,
    Aggregate,
    Atom,
    Call,
    Comparison,
    Constant,
    FactClause,
    Literal,
    Program,
    Rule,
    Term,
    Value,
    Variable,
    Wildcard,
)
from presk_rel.rules.rule_types import check_types
from presk_rel.rules.strata import check_stratified
from presk_rel.rules.walk import (
    aggregates,
    deep_terms,
    deep_variables,
    literal_terms,
    own_variables,
    rename_apart,
    rule_terms,
    scope_variables,
    subterms,
    used_atoms,
)

ARITY_LIMIT = 20
"""Columns of a relation: what Soufflé's interpreter takes, less what its own transformations add."""


def validate(program: Program, found: Diagnostics) -> None:
    """Adds a diagnostic (E9102, E9106 … E9111, E9115) for each condition that `program` does not satisfy."""
    for decl in program.relations.values():
        if decl.arity > ARITY_LIMIT:
            found.error("E9102", f"`{decl.name}` has {decl.arity} columns; at most {ARITY_LIMIT}", decl.span)
    for fact in program.facts:
        _check_fact(program, fact, found)
    sound = [rule for rule in program.rules if _check_names(program, rule, found)]
    for rule in sound:
        _check_rule(program, rule, found)
    if len(sound) == len(program.rules):
        check_stratified(program, found)


def _check_fact(program: Program, fact: FactClause, found: Diagnostics) -> None:
    if not _check_atom(program, Atom(fact.relation, tuple(Constant(v) for v in fact.row), fact.span), found):
        return
    for value, wanted in zip(fact.row, program.relations[fact.relation].types, strict=True):
        actual = "number" if isinstance(value, int) else "symbol"
        if actual != wanted:
            found.error("E9108", f"a {wanted} is wanted here, but this is a {actual}", fact.span)
        _check_number(value, fact.span, found)


def _check_names(program: Program, rule: Rule, found: Diagnostics) -> bool:
    atoms = [rule.head, *(atom for atom, _ in used_atoms(rule.body))]
    wrong = [atom for atom in atoms if not _check_atom(program, atom, found)]
    return not wrong


def _check_atom(program: Program, atom: Atom, found: Diagnostics) -> bool:
    decl = program.relations.get(atom.relation)
    if decl is None:
        found.error("E9106", f"the relation `{atom.relation}` is not declared", atom.span)
        return False
    if len(atom.arguments) != decl.arity:
        given = len(atom.arguments)
        found.error("E9107", f"`{atom.relation}` has {decl.arity} columns, but {given} are given", atom.span)
        return False
    return True


def is_well_formed(program: Program, atom: Atom) -> bool:
    """Whether the atom's relation is declared and has as many columns as the atom."""
    return _check_atom(program, atom, Diagnostics())


def _check_number(value: Value, span: Span, found: Diagnostics) -> None:
    if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        found.error("E9115", f"{value} does not fit a number of the rule language, which has 32 bits", span)


def _check_rule(program: Program, rule: Rule, found: Diagnostics) -> None:
    for term in deep_terms(rule_terms(rule)):
        if isinstance(term, Constant):
            _check_number(term.value, rule.span, found)
        if isinstance(term, Call):
            _check_call(term, rule.span, found)
    if aggregates(rule.head.arguments):
        found.error("E9111", "an aggregate stands in a body: `n = count : {…}`, not in a head", rule.head.span)
    for aggregate in aggregates(rule_terms(rule)):
        _check_scope(rule, aggregate, found)
    for term in deep_terms(rule_terms(rule)):
        if isinstance(term, Aggregate):
            _check_counting(term, found)
    _check_wildcards(rule, found)
    apart = rename_apart(rule)
    check_types(program.relations, apart, found)
    _check_bound(apart, found)


def _check_call(call: Call, span: Span, found: Diagnostics) -> None:
    count = len(call.arguments)
    if (call.function == "strlen" and count != 1) or (call.function == "cat" and count < 2):
        wanted = "one argument" if call.function == "strlen" else "at least two arguments"
        found.error("E9107", f"`{call.function}` takes {wanted}, but {count} are given", span)


def _check_scope(rule: Rule, aggregate: Aggregate, found: Diagnostics) -> None:
    if aggregate.target is None:
        return
    for name in sorted(set(own_variables(aggregate.target)) & scope_variables(rule_terms(rule))):
        found.error(
            "E9111",
            f"`{name}` is what the aggregate ranges over, so it may not also stand outside it",
            aggregate.span,
            help=f"rename the `{name}` inside the aggregate",
        )


def _check_counting(aggregate: Aggregate, found: Diagnostics) -> None:
    """Soufflé counts a `_` when the aggregate is over one plain atom, and not when it must make a relation of the body;
    since readers cannot be expected to know which, the second is refused."""
    atoms = [literal for literal in aggregate.body if isinstance(literal, Atom)]
    names = [n for atom in atoms for argument in atom.arguments for n in own_variables(argument)]
    plain = len(atoms) <= 1 and len(set(names)) == len(names) and not aggregates(_body_terms(aggregate))
    if plain or aggregate.operator in ("min", "max"):
        return
    for atom in atoms:
        if any(isinstance(a, Wildcard) for a in atom.arguments):
            message = "`_` is not counted in an aggregate over more than one plain relation"
            found.error("E9111", message, atom.span, help="give it a name, which is counted")


def _body_terms(aggregate: Aggregate) -> list[Term]:
    return [term for literal in aggregate.body for term in literal_terms(literal)]


def _check_wildcards(rule: Rule, found: Diagnostics) -> None:
    for argument in rule.head.arguments:
        _refuse_wildcards([argument], rule.head.span, found)
    todo: list[Literal] = list(rule.body)
    while todo:
        literal = todo.pop()
        terms = literal_terms(literal)
        nested = terms if isinstance(literal, Comparison) else [t for t in terms if not isinstance(t, Wildcard)]
        _refuse_wildcards(nested, literal.span, found)
        for aggregate in aggregates(terms):
            _refuse_wildcards([aggregate.target] if aggregate.target is not None else [], aggregate.span, found)
            todo.extend(aggregate.body)


def _refuse_wildcards(terms: Iterable[Term], span: Span, found: Diagnostics) -> None:
    if any(isinstance(t, Wildcard) for term in terms for t in subterms(term)):
        found.error("E9109", "`_` has no value here; it may only be an argument of a relation in a body", span)


def _check_bound(rule: Rule, found: Diagnostics) -> None:
    bound = bound_variables(rule.body, set())
    body_aggregates = aggregates(rule_terms(rule))
    inside = frozenset(name for aggregate in body_aggregates for name in deep_variables(aggregate))
    _report_unbound(scope_variables(rule.head.arguments), bound, rule.head.span, found, inside)
    _check_body_bound(rule.body, bound, found)


def _check_body_bound(body: Sequence[Literal], bound: set[str], found: Diagnostics) -> None:
    for literal in body:
        terms = literal_terms(literal)
        _report_unbound(scope_variables(terms), bound, literal.span, found)
        for aggregate in aggregates(terms):
            _check_aggregate_bound(aggregate, bound, found)


def _check_aggregate_bound(aggregate: Aggregate, bound: set[str], found: Diagnostics) -> None:
    inner = bound_variables(aggregate.body, bound)
    target = [] if aggregate.target is None else [aggregate.target]
    _report_unbound(scope_variables(target), inner, aggregate.span, found)
    _check_body_bound(aggregate.body, inner, found)


def _report_unbound(
    names: set[str], bound: set[str], span: Span, found: Diagnostics, inside: frozenset[str] = frozenset()
) -> None:
    """Reports each name once: it counts as bound from here on. `inside` are the variables of aggregates."""
    for name in sorted(names - bound):
        bound.add(name)
        shown = name.split("@")[0]
        found.error(
            "E9109",
            f"nothing gives `{shown}` a value: it must be an argument of a relation that is not negated, or equal "
            "to something bound",
            span,
            help=None if name not in inside else f"`{shown}` of the aggregate is not seen outside it",
        )


def bound_variables(body: Sequence[Literal], outside: set[str]) -> set[str]:
    """The variables that a body gives values to (in rules renamed apart), with those of `outside`.

    An argument of a positive atom binds; `x = e` binds `x` once all of `e` is bound; an aggregate needs the variables
    that it shares with its outside bound first.
    """
    bound = outside | {
        t.name for atom in body if isinstance(atom, Atom) for t in atom.arguments if isinstance(t, Variable)
    }
    equalities = [c for c in body if isinstance(c, Comparison) and c.operator == "="]
    sides = [(a, b) for c in equalities for a, b in ((c.left, c.right), (c.right, c.left)) if isinstance(a, Variable)]
    names = {n for literal in body for n in scope_variables(literal_terms(literal))} | bound
    before = -1
    while before != len(bound):
        before = len(bound)
        bound |= {variable.name for variable, term in sides if _needs(term, names) <= bound}
    return bound


def _needs(term: Term, names: set[str]) -> set[str]:
    """The variables of the scope `names` whose values `term` depends on."""
    shared = {n for aggregate in aggregates([term]) for n in deep_variables(aggregate) & names}
    return set(own_variables(term)) | shared
