"""Long chains of factors and signs, before the e-graph: `((x · w) · 2 · w) · 2 …` is `(x · w · w …) · 2ⁿ`.

The rules that carry factors outwards run everywhere at once in an e-graph, so a chain of n steps has a product for each
of its n² parts. Operands first, each step is rewritten once. So chains that are longer than `LONG` are rewritten here,
as `egraph.recognise` rewrites, and go into the e-graph in their normal form only; so do those of zeros and of
constants, which would take a round for each step. Where their factors cost least is found after saturation, as of all
others (`egraph.placement`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.conditions import SHORT, TYPE_FACTS, Condition, is_scalar
from presk_rel.egraph.instances import Value
from presk_rel.egraph.language import Terms
from presk_rel.egraph.patterns import Apply, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.recognise import MOST, Finder, Match
from presk_rel.egraph.rule import Rule
from presk_rel.egraph.sums import Sums
from presk_rel.elab.ty import SCALAR_REAL

LONG = 12
"""Steps, one the operand of the other, that the e-graph rewrites by itself."""

HALF = 2**256
"""Constants are shorter, so that a product of two of them is short."""

_NORMAL = re.compile(
    r"neg\.(neg|mul-const|zero|const|sub)|(mul|div)\.(neg|one|zero|const)[\w-]*|(add|sub)\.(zero-\w+|like-\w+|const)"
    r"|(add|sub)\.self|real\.const|pow\.(const|neg-\w+|mul-const)|const\.(zero|one)|mul\.minus-one|[\w-]+\.scale-out"
    r"|\w+\.(axis-)?zeros[\w-]*|\w+\.(zero|odd|even)"
)
"""The rules of normal forms, by name: constants folded, zeros, factors and signs carried outwards."""
_CONSTANTS = ("const", "zeros", "ones")
_OF_NUMBERS = ("nonzero", "positive", "negative", "factor", "short", "even", "odd", "small", "at-least-1")


def shortened(terms: Terms, closure: Closure, roots: list[TermId], rules: tuple[Rule, ...], sums: Sums) -> Sums:
    """The sums with the normal forms of long chains, equal in the closure; both stand for what they are of."""
    under = terms.reachable(*roots)
    length = _possible(terms, under)
    ends = [t for t in under if length[t] > LONG]
    if not ends:
        return sums
    finder = _Chains(terms, closure, {})
    for rule in rules:
        left = read_rule(rule).left
        if _NORMAL.fullmatch(rule.name) and isinstance(left, Apply) and rule.ruleset in ("simplify", "expand"):
            finder.rules.setdefault(left.op, []).append(rule)
    visited = terms.reachable(*ends)
    for t in visited:
        if closure.budget.rewrites <= 0 or closure.budget.late():
            closure.budget.cut("chains")
            return sums
        finder.visit(t)
    closure.settle()
    long = [t for t in visited if finder.length[t] > LONG and t not in sums.instead and finder.becomes[t] != t]
    found = {t: finder.becomes[t] for t in long}
    return Sums([*sums.equal, *found.items()], {**sums.instead, **found})


@cache
def _carriers(rules: tuple[Rule, ...]) -> frozenset[str]:
    """The operations that a normal form may look through."""
    sides = [read_rule(r).left for r in rules if _NORMAL.fullmatch(r.name)]
    return frozenset(s.op for s in sides if isinstance(s, Apply)) - {"const", "field", "proj"}


def _possible(terms: Terms, under: list[TermId]) -> dict[TermId, int]:
    """For every term how many operations that carry factors follow each other up to it, from a constant or a sign."""
    from presk_rel.egraph.rules import RULES

    carriers = _carriers(tuple(RULES.values()))
    found: dict[TermId, int] = {}
    for t in under:
        op = terms.op(t).op
        args = terms.args[t]
        below = max((found[a] for a in args), default=0)
        same = op in ("add", "sub") and args[0] == args[1]
        starts = op in _CONSTANTS or op == "neg" or same
        found[t] = below + 1 if op in carriers and (below or starts) else int(starts)
    return found


@dataclass(slots=True)
class _Chains(Finder):
    """`length` counts, for every term, the rewritten steps that follow each other up to it."""

    length: dict[TermId, int] = field(default_factory=dict[TermId, int])

    def visit(self, term: TermId) -> None:
        if term not in self.becomes:
            self.settle(term)
        at = self.becomes[term]
        below = max((self.length[a] for a in self.terms.args[term]), default=0)
        rewritten = at != self.with_normal_operands(term)
        self.length[term] = below + 1 if rewritten else int(self.terms.op(term).op in _CONSTANTS)

    def with_normal_operands(self, term: TermId) -> TermId:
        args = tuple(self.becomes[a] for a in self.terms.args[term])
        return term if args == self.terms.args[term] else self.terms.make(self.terms.head[term], args)

    def settle(self, term: TermId) -> None:
        """Find the normal form of a term, and of all that is made on the way, which may be as deep as the program."""
        waiting = [self.settling(term)]
        while waiting:
            needed = next(waiting[-1], None)
            if needed is None:
                waiting.pop()
            elif needed not in self.becomes:
                waiting.append(self.settling(needed))

    def settling(self, term: TermId) -> Iterator[TermId]:
        """Yields the terms whose normal forms are needed next."""
        yield from self.terms.args[term]
        at = self.with_normal_operands(term)
        for _ in range(MOST):
            found = self.rewritten(at)
            if found is None:
                break
            yield from self.terms.args[found]
            at = self.with_normal_operands(found)
        self.becomes[term] = at

    def turns(self, term: TermId) -> bool:
        """Operands stay in their order."""
        return False

    def holds(self, rule: Rule, match: Match) -> bool:
        """No number gets long: what is squared again and again has factors as long as itself."""
        numbers = [v for v in match.values.values() if isinstance(v, Fraction)]
        return all(abs(v) < HALF and v.denominator < HALF for v in numbers) and Finder.holds(self, rule, match)

    def condition(self, c: Condition, rule: Rule, values: dict[str, Value]) -> bool:
        side = read_rule(rule)
        assert isinstance(side.left, Apply)
        own = values[side.left.type.name]
        match c.row.name, c.args:
            case "type", ("root", str(t)):
                return values.setdefault(t, own) == own
            case "same-type", ("root", str(x)):
                return self.terms.type[self._number(values[x])] == own
            case "scalar-type", (str(t),):
                scalar = self.terms.table.intern(SCALAR_REAL)
                return is_scalar(self.terms.table.types[self._number(values.setdefault(t, scalar))])
            case ("real" | "scalar" | "tensors" | "tensor" | "matrix") as fact, (str(x),):
                return TYPE_FACTS[fact](self.terms.table.types[self.terms.type[self._number(values[x])]])
            case "varying", (str(x),):
                return self.terms.op(self._number(values[x])).op not in _CONSTANTS
            case name, (str(x),) if name in _OF_NUMBERS:
                return _of_number(name, values[x])
            case _:
                return Finder.condition(self, c, rule, values)


def _of_number(name: str, value: Value) -> bool:
    """A condition on a constant."""
    assert isinstance(value, (int, Fraction))
    match name:
        case "nonzero":
            return value != 0
        case "positive":
            return value > 0
        case "negative":
            return value < 0
        case "factor":
            return value not in (0, 1)
        case "short":
            return abs(value) < SHORT and Fraction(value).denominator < SHORT
        case "even" | "odd":
            return (value % 2 == 0) == (name == "even")
        case "small":
            return value <= 64
        case "at-least-1":
            return value >= 1
        case _:
            raise PreskBug("egraph", f"no condition on numbers: {name}")
