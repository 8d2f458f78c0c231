"""Terms of contractions, reductions and products proven equal to one flat `ein`, and two such to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from presk_rel.core.ein import EinSpec, ein_spec
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.contract.operations import axes_of
from presk_rel.egraph.contract.products import Label, Labels, product_of
from presk_rel.egraph.contract.read import Flat
from presk_rel.egraph.instances import Instance, Value, instantiate
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.op_types import TypeId
from presk_rel.egraph.patterns import ABSENT, Name, Pattern, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules import RULES
from presk_rel.egraph.templates import shape_operands
from presk_rel.elab.ty import Axis


@dataclass(frozen=True, slots=True)
class Expr:
    """A term of an operation that is read. `parts` are the operands whose values are read: None where a factor of the
    whole, else read themselves, by a term that equals the operand."""

    term: TermId
    parts: tuple[Expr | None, ...]


def named(lists: Sequence[Labels], result: Labels, called: dict[Label, str | None], given: Sequence[Axis]) -> EinSpec:
    """A contraction by labels as one by names: the result's as its type (`given`) has them, others as they are `called`
    where that is free."""
    names: dict[Label, str] = {a: axis.name for a, axis in zip(result, given, strict=True) if axis.name is not None}
    taken = set(names.values())
    for label in (*result, *(a for labels in lists for a in labels)):
        if label not in names:
            fresh = (f"i{n}" for n in range(len(taken) + 1))
            names[label] = next(n for n in (called.get(label), *fresh) if n is not None and n not in taken)
            taken.add(names[label])
    return EinSpec(tuple(tuple(names[a] for a in x) for x in lists), tuple(names[a] for a in result))


@dataclass(frozen=True, slots=True)
class Unfolder:
    """Makes terms, and adds to the closure the instances that prove each step."""

    terms: Terms
    closure: Closure

    def shape(self, ty: TypeId) -> tuple[Axis, ...]:
        return axes_of(self.terms.table, ty)

    def spec(self, term: TermId) -> EinSpec:
        found = ein_spec(str(self.terms.op(term).attrs[0]))
        assert found is not None
        return found

    def spec_of(self, flat: Flat, own: TypeId) -> EinSpec:
        """A sum of products of classes, by names."""
        called = {a: axis.name for a, axis in flat.axes.items()}
        return named([labels for _, labels in flat.factors], flat.result, called, self.shape(own))

    def ein(self, spec: EinSpec, factors: Sequence[TermId], ty: TypeId) -> TermId:
        return self.terms.make(self.terms.intern(Head("ein", (str(spec),), ty)), tuple(factors))

    def say(self, rule: str, left: TermId, right: TermId) -> TermId:
        """The instance of a rule between two terms."""
        row = RULES[rule]
        side = read_rule(row)
        values: dict[str, Value] = {}
        _bind(self.terms, side.left, left, values)
        _bind(self.terms, side.right, right, values)
        if (instantiate(self.terms, side.left, values), instantiate(self.terms, side.right, values)) != (left, right):
            raise PreskBug("egraph", f"{rule}: no instance")
        self.closure.add(Instance(row, values, left, right))
        return right

    # ------------------------------------------------------------------------------------------------ unfolding

    def flat(self, whole: Expr) -> TermId:
        """The flat `ein` that an expression equals."""
        done = self.as_ein(whole.term)
        for i in reversed(range(len(whole.parts))):
            part = whole.parts[i]
            if part is not None:
                done = self.inlined(done, i, part)
        return done

    def as_ein(self, term: TermId) -> TermId:
        head = self.terms.op(term)
        if head.op == "ein":
            return term
        args = self.terms.args[term]
        types = self.terms.table.types
        product = product_of(head.op, head.attrs, tuple(types[self.terms.type[a]] for a in args))
        assert product is not None
        read = [a for i, a in enumerate(args) if i not in shape_operands(head)]
        called = {a: x.name for labels, t in zip(product.factors, read, strict=True)
                  for a, x in zip(labels, self.shape(self.terms.type[t]), strict=True)}  # fmt: skip
        spec = named(product.factors, product.result, called, self.shape(head.type))
        return self.say(f"{head.op}.as-ein", term, self.ein(spec, read, head.type))

    def inlined(self, whole: TermId, at: int, part: Expr) -> TermId:
        """A contraction with its factor number `at` read."""
        spec, factors, own = self.spec(whole), self.terms.args[whole], self.terms.type[whole]
        if self.terms.op(part.term).op == "broadcast_like":
            return self.spread(whole, at, part)
        inner = self.flat(part)
        below = self.spec(inner)
        before = self.ein(spec, (*factors[:at], inner, *factors[at + 1 :]), own)
        label: dict[str, Label] = {}
        outer = [tuple(label.setdefault(n, len(label)) for n in x) for x in (*spec.operands, spec.result)]
        known = dict(zip(below.result, outer[at], strict=True))
        fresh = iter(range(len(label), len(label) + sum(map(len, below.operands))))
        mine = [tuple(known[n] if n in known else known.setdefault(n, next(fresh)) for n in x) for x in below.operands]
        called: dict[Label, str | None] = {a: n for n, a in (*known.items(), *label.items())}
        flat = named([*outer[:at], *mine, *outer[at + 1 : -1]], outer[-1], called, self.shape(own))
        given = (*factors[:at], *self.terms.args[inner], *factors[at + 1 :])
        rule = f"ein.of-ein-{len(factors)}-{at}-{len(mine)}"
        return self.say(rule, before, self.ein(flat, given, own))

    def spread(self, whole: TermId, at: int, part: Expr) -> TermId:
        spec, factors, own = self.spec(whole), self.terms.args[whole], self.terms.type[whole]
        before = self.ein(spec, (*factors[:at], part.term, *factors[at + 1 :]), own)
        head, args = self.terms.op(part.term), self.terms.args[part.term]
        types = self.terms.table.types
        product = product_of(head.op, head.attrs, tuple(types[self.terms.type[a]] for a in args))
        assert product is not None
        label = dict(zip(product.result, spec.operands[at], strict=True))
        operands = (*spec.operands[:at], tuple(label[a] for a in product.factors[0]), *spec.operands[at + 1 :])
        after = self.ein(EinSpec(operands, spec.result), (*factors[:at], args[0], *factors[at + 1 :]), own)
        done = self.say(f"ein.of-broadcast-{len(factors)}-{at}", before, after)
        return done if part.parts[0] is None else self.inlined(done, at, part.parts[0])

    # ------------------------------------------------------------------------------------------------ equality

    def equal(self, a: TermId, b: TermId) -> None:
        """Two flat contractions, the same up to the order of their factors and the names of their axes."""
        for order in permutations(range(len(self.terms.args[a]))):
            if self.same(a, b, order):
                self.turn(a, b, order)
                return
        raise PreskBug("egraph", "two contractions that should be the same are not")

    def same(self, a: TermId, b: TermId, order: tuple[int, ...]) -> bool:
        """Whether factor i of b is factor `order[i]` of a, with the same axes."""
        one, other = self.spec(a), self.spec(b)
        if any(self.terms.args[a][k] != x for k, x in zip(order, self.terms.args[b], strict=True)):
            return False
        lists = zip((one.result, *(one.operands[k] for k in order)), (other.result, *other.operands), strict=True)
        there: dict[str, str] = {}
        for x, y in lists:
            if any(there.setdefault(n, m) != m for n, m in zip(x, y, strict=True)):
                return False
        return len(set(there.values())) == len(there)

    def turn(self, a: TermId, b: TermId, order: tuple[int, ...]) -> None:
        """Factors of a moved to the front one by one, until it is b."""
        places = list(range(len(order)))
        for i in reversed(range(len(order))):
            at = places.index(order[i])
            places.insert(0, places.pop(at))
            spec, factors, own = self.spec(a), self.terms.args[a], self.terms.type[a]
            moved = (at, *(k for k in range(len(order)) if k != at))
            after = b if i == 0 else self.ein(
                EinSpec(tuple(spec.operands[k] for k in moved), spec.result), [factors[k] for k in moved], own
            )  # fmt: skip
            if a != after:
                a = self.say(f"ein.first-{len(order)}-{at}", a, after)


def _bind(terms: Terms, pattern: Pattern, term: TermId, values: dict[str, Value]) -> None:
    """The values of a pattern's variables in a term."""
    if isinstance(pattern, Name):
        values[pattern.name] = term
        return
    head = terms.op(term)
    values[pattern.type.name] = head.type
    attrs = (*head.attrs, *[ABSENT] * (len(pattern.attrs) - len(head.attrs)))
    values |= {a.name: v for a, v in zip(pattern.attrs, attrs, strict=True) if isinstance(a, Name)}
    for inner, arg in zip(pattern.args, terms.args[term], strict=True):
        _bind(terms, inner, arg, values)
