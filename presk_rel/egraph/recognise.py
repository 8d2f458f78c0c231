"""Composite primitives found in a program, operands first: the rules of the set `recognise` matched on its terms.

These rules pay wherever they match (what they replace stays where something else reads it), and their patterns are too
large for the e-graph, which keeps every form of every part. So they rewrite the program before it is loaded, and again
what was chosen. Patterns of one or two operations wait for that second time: the e-graph may know better (`x · [x > 0]`
is relu x, not an adjoint of relu). The closure has the instances, from which the proof comes. Sums and products also
match in the other order of their operands, by the rules `add.commute` and `mul.commute`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from presk_rel.core.ein import ein_spec, matrix_form
from presk_rel.core.ir import Attr
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_shapes
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.conditions import (
    TYPE_FACTS,
    Condition,
    axis_length,
    last_of,
    order,
    read_conditions,
    read_guards,
    variables,
    without_axis,
)
from presk_rel.egraph.instances import Instance, Value, attribute, instantiate
from presk_rel.egraph.language import Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.patterns import ABSENT, Apply, Attribute, Name, Pattern, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import SCALAR_REAL, Real, Type
from presk_rel.smt.solver import Proven, Solver

_COMMUTING = ("add", "mul")

LARGE = 3
"""Operations of a pattern that is looked for before the e-graph has simplified."""

MOST = 100
"""How often one term is rewritten."""


@dataclass(frozen=True, slots=True)
class Match:
    """What a pattern's variables stand for, and the terms whose operands it takes in the other order."""

    values: dict[str, Value]
    swapped: tuple[TermId, ...] = ()
    shapes: tuple[tuple[str, TermId], ...] = ()
    """Terms of which only the type has to be that of a variable's."""


def recognise(terms: Terms, closure: Closure, root: TermId, rules: tuple[Rule, ...], *, first: bool) -> TermId:
    """The term that `root` is with everything recognised, equal to it in the closure; `first`: before the e-graph."""
    rules = tuple(r for r in rules if r.ruleset == "recognise" and not (first and r.left.count("(") < LARGE))
    order = terms.reachable(root)
    table: dict[str, list[Rule]] = {}
    for rule in _usable(rules, {terms.op(t).op for t in order}):
        left = read_rule(rule).left
        assert isinstance(left, Apply)
        table.setdefault(left.op, []).append(rule)
    finder = Finder(terms, closure, table)
    for t in order:
        if finder.rules and (closure.budget.rewrites <= 0 or closure.budget.late()):
            finder.rules = {}  # the rest is made of what was found
            closure.budget.cut("recognise")
        finder.visit(t)
    closure.settle()
    return finder.becomes[root]


def _usable(rules: tuple[Rule, ...], ops: set[str]) -> list[Rule]:
    """The rules of the set whose left sides are of these operations, and of those that they make, in their order."""
    waiting = [(r, _operations(r.left), _operations(r.right)) for r in rules]
    reached = set(ops)
    chosen: set[str] = set()
    while fresh := [w for w in waiting if w[0].name not in chosen and w[1] <= reached]:
        chosen.update(r.name for r, _, _ in fresh)
        reached = reached.union(*(made for _, _, made in fresh))
    return [r for r, _, _ in waiting if r.name in chosen]


def _operations(side: str) -> set[str]:
    return set(re.findall(r"\(([^\s()]+)", side))


@dataclass(slots=True)
class Finder:
    """Rewrites terms by rules, operands first, with the instances added to the closure."""

    terms: Terms
    closure: Closure
    rules: dict[str, list[Rule]]
    solver: Solver = field(default_factory=Solver)
    becomes: dict[TermId, TermId] = field(default_factory=dict[TermId, TermId])

    def visit(self, term: TermId) -> None:
        """Rewrite a term whose operands are, as often as a rule matches."""
        args = tuple(self.becomes[a] for a in self.terms.args[term])
        at = term if args == self.terms.args[term] else self.terms.make(self.terms.head[term], args)
        for _ in range(MOST):
            found = self.rewritten(at)
            if found is None:
                break
            at = found
        self.becomes[term] = at

    def rewritten(self, term: TermId) -> TermId | None:
        below = {self.terms.op(a).op for a in self.terms.args[term]}
        for rule in self.rules.get(self.terms.op(term).op, ()):
            side = read_rule(rule)
            if not _operations_below(side.left) <= below:
                continue
            for match in self.matches(side.left, term, Match({})):
                if self.holds(rule, match):
                    return self.applied(rule, match, term)
        return None

    def applied(self, rule: Rule, match: Match, term: TermId) -> TermId:
        """The right side; the closure learns that it is the term."""
        self.closure.budget.rewrites -= 1
        for t in match.swapped:
            x, y = self.terms.args[t]
            kind = self.terms.type[t]
            values: dict[str, Value] = {"x": x, "y": y, "t": kind, "#0": kind}
            flipped = self.terms.make(self.terms.head[t], (y, x))
            self.closure.add(Instance(RULES[f"{self.terms.op(t).op}.commute"], values, t, flipped))
        side = read_rule(rule)
        left = instantiate(self.terms, side.left, match.values)
        right = instantiate(self.terms, side.right, match.values)
        self.closure.add(Instance(rule, match.values, left, right))
        return right

    # ---------------------------------------------------------------------------------------------------- matching

    def matches(self, pattern: Pattern, term: TermId, match: Match) -> Iterator[Match]:
        """Every way to read a term as a pattern that agrees with `match`. (Patterns are shallow: rule text.)"""
        if isinstance(pattern, Name):
            yield from self.bound(match, pattern.name, term)
            return
        head = self.terms.op(term)
        if head.op != pattern.op or len(pattern.args) != len(self.terms.args[term]):
            return
        for typed in self.bound(match, pattern.type.name, head.type):
            read = self.attributes(pattern, head.attrs, typed)
            if read is not None:
                yield from self.operands(pattern, self.terms.args[term], read)
                if head.op in _COMMUTING and self.turns(term):
                    turned = Match(read.values, (*read.swapped, term), read.shapes)
                    yield from self.operands(pattern, self.terms.args[term][::-1], turned)

    def bound(self, match: Match, name: str, value: Value) -> Iterator[Match]:
        known = match.values.get(name)
        if known is None:
            yield Match({**match.values, name: value}, match.swapped, match.shapes)
        elif known == value:
            yield match

    def attributes(self, pattern: Apply, attrs: tuple[Attr, ...], match: Match) -> Match | None:
        given = (*attrs, *[ABSENT] * (len(pattern.attrs) - len(attrs)))
        for expected, value in zip(pattern.attrs, given, strict=True):
            found = _attribute(expected, value, match.values)
            if found is None:
                return None
            match = Match({**match.values, **found}, match.swapped, match.shapes)
        return match

    def operands(self, pattern: Apply, args: tuple[TermId, ...], match: Match) -> Iterator[Match]:
        found = [match]
        for i, (part, arg) in enumerate(zip(pattern.args, args, strict=True)):
            if i in PRIMS[pattern.op].shape_only and f"{pattern.op}.template" in RULES:
                assert isinstance(part, Name)
                found = [Match(m.values, m.swapped, (*m.shapes, (part.name, arg))) for m in found]
            else:
                found = [n for m in found for n in self.matches(part, arg, m)]
        yield from found

    def turns(self, term: TermId) -> bool:
        """Whether the operands may stand in the other order with the same type."""
        x, y = (self.terms.type[a] for a in self.terms.args[term])
        return self.terms.table.infer(self.terms.op(term).op, (), (y, x)) == self.terms.type[term]

    # -------------------------------------------------------------------------------------------------- conditions

    def holds(self, rule: Rule, match: Match) -> bool:
        """Whether the match is an instance: operands read for their type have that of their variable (bound here where
        nothing else binds it), all conditions and guards hold, and the right side has the type of the left."""
        types, values = self.terms.type, match.values
        kinds = variables(rule)
        read = [v for n, v in values.items() if kinds.get(n) == "term" and isinstance(v, int)]
        for name, arg in match.shapes:
            here = next((v for v in read if types[v] == types[arg]), arg)  # so that nothing is computed for its type
            known = values.setdefault(name, here)
            assert isinstance(known, int)
            if types[known] != types[arg]:
                return False
        if not all(self.condition(c, rule, values) for c in (*read_conditions(rule), *read_guards(rule))):
            return False
        side = read_rule(rule)
        assert isinstance(side.left, Apply)
        return self.fits(side.right, values, self._number(values[side.left.type.name]))

    def fits(self, right: Pattern, values: dict[str, Value], own: int) -> bool:
        """Whether the typing rules accept a right side as this type. (Patterns are shallow.)"""
        if isinstance(right, Name):
            return self.terms.type[self._number(values[right.name])] == own
        given = zip((attribute(a, values) for a in right.attrs), right.attr_kinds, strict=True)
        attrs = tuple(a for a, kind in given if kind != "axis?" or a != ABSENT)
        operands = tuple(self.kind(a, values) for a in right.args)
        below = all(self.fits(a, values, t) for a, t in zip(right.args, operands, strict=True))
        return below and self.terms.table.fits(right.op, attrs, operands, own)

    def kind(self, operand: Pattern, values: dict[str, Value]) -> int:
        if isinstance(operand, Name):
            return self.terms.type[self._number(values[operand.name])]
        return self._number(values[operand.type.name])

    def condition(self, c: Condition, rule: Rule, values: dict[str, Value]) -> bool:
        table = self.terms.table
        match c.row.name, c.args:
            case "as-inferred", ():
                side = read_rule(rule).left
                return self.inferred(side, instantiate(self.terms, side, values)) is not None
            case "type", (str(x), str(t)):
                return (
                    values.setdefault(t, self.terms.type[self._number(values[x])])
                    == self.terms.type[self._number(values[x])]
                )
            case "typed", (Apply() as application, str(t)):
                operands = tuple(
                    self.terms.type[self._number(values[a.name])] for a in application.args if isinstance(a, Name)
                )
                attrs = tuple(attribute(a, values) for a in application.attrs)
                found = table.infer(application.op, attrs, operands)
                return found is not None and values.setdefault(t, found) == found
            case "scalar-type", (str(t),):
                return table.types[self._number(values.setdefault(t, table.intern(SCALAR_REAL)))] == SCALAR_REAL
            case "nonzero", (str(n),):
                return values[n] != 0
            case "real-type" as fact, (str(t),):
                return TYPE_FACTS[fact](table.types[self._number(values[t])])
            case "without-axis", (str(a), str(t), str(d)):
                large, small = (table.types[self._number(values[n])] for n in (t, d))
                return without_axis(str(values[a]), large, small)
            case (("at-most" | "less" | "equal"), _):
                return isinstance(self.solver.prove(order(c, values)), Proven)
            case _:
                return self.shape_condition(c, rule, values)

    def shape_condition(self, c: Condition, rule: Rule, values: dict[str, Value]) -> bool:
        """Conditions on axes."""
        table = self.terms.table
        match c.row.name, c.args:
            case "row", (str(b),):
                return TYPE_FACTS["row"](table.types[self.terms.type[self._number(values[b])]])
            case "last-of", (str(a), str(t)):
                return last_of(str(values[a]), table.types[self._number(values[t])])
            case "of-matrices", (str(p), str(form)):
                return matrix_form(str(values[p])) == form
            case "last-axis", (str(a), str(p)):
                spec = ein_spec(str(values[p]))
                return spec is not None and spec.result[-1:] == (values[a],)
            case "length", (str(x), str(a), str(n)):
                found = axis_length(table.types[self.terms.type[self._number(values[x])]], values[a])
                return found is not None and values.setdefault(n, found) == found
            case name, _:
                raise PreskBug("egraph", f"{rule.name}: no way to recognise by `{name}`")

    def inferred(self, pattern: Pattern, term: TermId) -> TypeId | None:
        """The type that the typing rules infer for a term, all parts of the pattern below it having those that are
        inferred; None where that is not so, and the names of axes that a part has or lacks could make a difference."""
        if isinstance(pattern, Name):
            return self.terms.type[term]
        args, head, table = self.terms.args[term], self.terms.op(term), self.terms.table
        below = [self.inferred(p, a) for p, a in zip(pattern.args, args, strict=True)]
        found = tuple(t for t in below if t is not None)
        declared = tuple(self.terms.type[a] for a in args)
        if len(found) < len(below):
            return None
        if found != declared and not _line_up(head.op, *([table.types[t] for t in ts] for ts in (declared, found))):
            return None
        return table.infer(head.op, head.attrs, found)

    @staticmethod
    def _number(value: Value) -> int:
        assert isinstance(value, int)
        return value


def _operations_below(pattern: Pattern) -> set[str]:
    """The operations of its operands."""
    return {a.op for a in pattern.args if isinstance(a, Apply)} if isinstance(pattern, Apply) else set()


_POSITIONAL = frozenset(("dot", "dot_vjp_l", "dot_vjp_r", "ein"))


def _line_up(op: str, declared: list[Type], inferred: list[Type]) -> bool:
    """Whether operands line up alike under two sets of types that differ in names of axes: one by one from the front,
    or not by axes at all."""
    if any(kind in ("axis", "axis?", "place", "name") for kind in PRIMS[op].attrs):
        return False
    if len(declared) == 1 or op in _POSITIONAL:
        return True
    for types in (declared, inferred):
        shapes = [t.shape for t in types if isinstance(t, Real)]
        large = [s for s in shapes if not s.is_scalar]
        if len(shapes) < len(types) or not all(s.prefix is None and compatible_shapes(s, large[0]) for s in large):
            return False
    return True


def _attribute(expected: Attribute, value: Attr, values: dict[str, Value]) -> dict[str, Value] | None:
    """What an attribute binds; None where it is another one."""
    if isinstance(expected, Name):
        return {expected.name: value} if values.get(expected.name, value) == value else None
    return {} if attribute(expected, values) == value else None
