"""Sums as multisets: `(x + y) - x`, however far apart the two x stand, and sums of the same terms in another order.

Associativity and commutativity as rewrite rules blow an e-graph up (319 operations gave 4.6 million nodes). So sums are
put in order here, before the e-graph: a sum is its terms, each with a coefficient, and its normal form is the chain of
additions of these in the order of the program. Where that says more than the program does (a term occurs twice, or two
sums have the same terms) the chain is made, with the rule instances that prove it equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.conditions import is_real
from presk_rel.egraph.instances import Instance, Value, instantiate
from presk_rel.egraph.language import Head, Terms
from presk_rel.egraph.patterns import Apply, read_rule
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules import RULES
from presk_rel.elab.ty import SCALAR_REAL

LONGEST, WIDEST = 100_000, 24
"""Terms of a sum that is put in order, with repetitions and without: the proof of an order is the product of both."""
SHORT = 24
"""A longer sum whose terms repeat is its normal form only: what it adds up on the way is not looked at."""

Part = tuple[TermId, int]
"""A term of a sum and its coefficient, not 0."""


Pairs = list[tuple[TermId, TermId]]


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of the program with the normal forms that say more about them, equal in the closure now. `instead` has those
    that their normal forms stand for."""

    equal: Pairs
    instead: dict[TermId, TermId]

    def start(self, terms: Terms, leaves: list[TermId]) -> list[TermId]:
        """The terms of the program that the e-graph is to know, operands first."""
        return sorted(self._under(terms, leaves) - self.instead.keys())

    def loaded(self, terms: Terms, leaves: list[TermId]) -> list[TermId]:
        """These, and those of normal forms."""
        there = self._under(terms, leaves)
        return sorted(self._under(terms, [*leaves, *(n for t, n in self.equal if t in there)]) - self.instead.keys())

    def pairs(self, terms: Terms, leaves: list[TermId], more: Pairs) -> Pairs:
        """What is known to be equal, of what the e-graph knows: the sums, and `more`."""
        there = self._under(terms, [*leaves, *self.loaded(terms, leaves)])
        return [pair for pair in (*more, *self.equal) if there.issuperset(pair)]

    def _under(self, terms: Terms, roots: list[TermId]) -> set[TermId]:
        seen = set(roots)
        stack = list(roots)
        while stack:
            t = stack.pop()
            for a in (self.instead[t],) if t in self.instead else terms.args[t]:
                if a not in seen:
                    seen.add(a)
                    stack.append(a)
        return seen


def normal_sums(terms: Terms, closure: Closure) -> Sums:
    """The normal forms of the sums of a program."""
    reader = Reader(terms)
    roots = reader.roots(range(len(terms)))
    count: dict[tuple[Part, ...], int] = {}
    for t in roots:
        key = tuple(sorted(reader.parts(t).items()))
        count[key] = count.get(key, 0) + 1
    found = Sums([], {})
    writer = Writer(terms, closure, reader)
    for t in roots:
        parts = reader.parts(t)
        shorter = len(parts) < reader.terms_in(t)
        if reader.ordered(t) and (shorter or count[tuple(sorted(parts.items()))] > 1):
            normal = writer.normal(t)
            if normal is None:
                break
            found.equal.append((t, normal))
            if shorter and reader.terms_in(t) > SHORT and normal != t:
                found.instead[t] = normal
    return found


def over(budget: Budget) -> bool:
    """Whether no more sums can be put in order."""
    if budget.sums > 0 and not budget.late():
        return False
    budget.cut("sums")
    return True


@dataclass(slots=True)
class Reader:
    """Sums as multisets. `sums` are additions, subtractions and negations whose operands have their own type."""

    terms: Terms
    _parts: dict[TermId, dict[TermId, int]] = field(default_factory=dict[TermId, dict[TermId, int]])
    _length: dict[TermId, int] = field(default_factory=dict[TermId, int])
    _terms: dict[TermId, int] = field(default_factory=dict[TermId, int])

    def is_sum(self, t: TermId) -> bool:
        own = self.terms.type[t]
        if self.terms.op(t).op not in ("add", "sub", "neg") or not is_real(self.terms.table.types[own]):
            return False
        return all(self.terms.type[a] == own for a in self.terms.args[t])

    def roots(self, among: Sequence[TermId]) -> list[TermId]:
        """The sums of a program, whose terms are `among`, operands first, that are more than a part of a larger one,
        with the multiset of every sum computed."""
        inner: set[TermId] = set()
        outer: set[TermId] = set()
        for t in among:
            (inner if self.is_sum(t) else outer).update(a for a in self.terms.args[t] if self.is_sum(a))
            self._read(t)
        sums = [t for t in among if self.is_sum(t) and self.terms.op(t).op != "neg"]
        return [t for t in sums if t in outer or t not in inner]

    def ordered(self, t: TermId) -> bool:
        """Whether it is a sum that can be put in order."""
        return t in self._parts

    def parts(self, t: TermId) -> dict[TermId, int]:
        """Its terms with their coefficients."""
        return self._parts.get(t, {t: 1})

    def length(self, t: TermId) -> int:
        """Its terms, with repetitions, and its negations."""
        return self._length.get(t, 1)

    def terms_in(self, t: TermId) -> int:
        """Its terms, with repetitions."""
        return self._terms.get(t, 1)

    def _read(self, t: TermId) -> None:
        if not self.is_sum(t):
            return
        args = self.terms.args[t]
        self._length[t] = min(sum(map(self.length, args)) + (len(args) == 1), LONGEST + 1)
        if self._length[t] > LONGEST or any(self.is_sum(a) and a not in self._parts for a in args):
            return
        self._terms[t] = sum(map(self.terms_in, args))
        signs = {"add": (1, 1), "sub": (1, -1), "neg": (-1,)}[self.terms.op(t).op]
        found: dict[TermId, int] = {}
        for a, sign in zip(args, signs, strict=True):
            for leaf, c in self.parts(a).items():
                found[leaf] = found.get(leaf, 0) + sign * c
        if len(found) <= WIDEST:
            self._parts[t] = {leaf: c for leaf, c in found.items() if c}


@dataclass(slots=True)
class Writer:
    """Makes normal forms, and adds to the closure what proves each step."""

    terms: Terms
    closure: Closure
    reader: Reader
    rank: Callable[[TermId], tuple[int, int]] = lambda t: (0, t)
    """The order of a sum's terms."""
    _known: dict[TermId, list[Part]] = field(default_factory=dict[TermId, list[Part]])
    _said: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])

    def say(self, rule: str, **values: Value) -> None:
        """An instance of a rule, once; `t` is the type of everything in it."""
        said = (rule, *values.items())
        if said in self._said:
            return
        self._said.add(said)
        self.closure.budget.sums -= 1
        side = read_rule(RULES[rule])
        assert isinstance(side.left, Apply)
        values.setdefault(side.left.type.name, values["t"])
        left = instantiate(self.terms, side.left, values)
        self.closure.add(Instance(RULES[rule], values, left, instantiate(self.terms, side.right, values)))

    # ------------------------------------------------------------------------------------------------ terms

    def make(self, op: str, like: TermId, *args: TermId) -> TermId:
        return self.terms.make(self.terms.intern(Head(op, (), self.terms.type[like])), args)

    def constant(self, c: int) -> TermId:
        scalar = self.terms.table.intern(SCALAR_REAL)
        return self.terms.make(self.terms.intern(Head("const", (Fraction(c),), scalar)), ())

    def part(self, part: Part) -> TermId:
        """`x`, `-x`, or `x · c`."""
        x, c = part
        if abs(c) == 1:
            return x if c == 1 else self.make("neg", x, x)
        return self.make("mul", x, x, self.constant(c))

    def chain(self, parts: list[Part], like: TermId) -> TermId:
        return self.chains(parts, like)[-1]

    def chains(self, parts: list[Part], like: TermId) -> list[TermId]:
        """The chains of the first parts: of none, of one, and so on."""
        found = [self.terms.make(self.terms.intern(Head("zeros", (), self.terms.type[like])), ())]
        add = self.terms.intern(Head("add", (), self.terms.type[like]))
        for k, p in enumerate(parts):
            own = self.part(p)
            found.append(self.terms.make(add, (found[-1], own)) if k else own)
        self.closure.budget.sums -= len(parts)
        return found

    # ------------------------------------------------------------------------------------------------ normal forms

    def normal(self, root: TermId) -> TermId | None:
        """The chain of the parts of a sum, in order; None where there are too many steps to it."""
        stack = [root]
        while stack:
            if over(self.closure.budget):
                return None
            t = stack[-1]
            missing = [a for a in self.terms.args[t] if self.reader.is_sum(a) and a not in self._known]
            stack += missing
            if not missing:
                stack.pop()
                if t not in self._known:
                    self._known[t] = self._normal(t)
        return self.chain(self._known[root], root)

    def _of(self, t: TermId) -> list[Part]:
        return self._known[t] if self.reader.is_sum(t) else [(t, 1)]

    def _normal(self, t: TermId) -> list[Part]:
        args = self.terms.args[t]
        own = self.terms.type[t]
        match self.terms.op(t).op:
            case "add":
                return self.added(self._of(args[0]), self._of(args[1]), t)
            case "sub":
                self.say("add.neg-right", x=args[0], y=args[1], t=own, u=own)
                return self.added(self._of(args[0]), self.negated(self._of(args[1]), t), t)
            case _:
                return self.negated(self._of(args[0]), t)

    def negated(self, parts: list[Part], like: TermId) -> list[Part]:
        """The parts of the negative; the negative of the chain is their chain."""
        t = self.terms.type[like]
        if not parts:
            self.say("neg.zero", t=t, u=t)
        before = self.chains(parts, like)
        for k, (x, c) in enumerate(parts):
            if k:
                self.say("neg.add", x=before[k], y=self.part((x, c)), t=t)
            if c == -1:
                self._say_hidden("neg.neg", x, t)
            elif c != 1:
                self.say("neg.mul-const", x=x, c=Fraction(c), s=self.terms.table.intern(SCALAR_REAL), t=t)
        return [(x, -c) for x, c in parts]

    def _say_hidden(self, rule: str, x: TermId, t: int) -> None:
        self.say(rule, x=x, t=t, **{"#0": t, "#1": t})

    def added(self, left: list[Part], right: list[Part], like: TermId) -> list[Part]:
        """The parts of a sum of two chains, which is their chain."""
        t = self.terms.type[like]
        whole = self.chain(left, like)
        if not right:
            self.say("add.zero-right", x=whole, t=t, u=t)
            return left
        before = self.chains(right, like)
        for k in range(len(right) - 1, 0, -1):
            self.say("add.associate", x=whole, y=before[k], z=self.part(right[k]), t=t)
        parts = left
        for p in right:
            parts = self.inserted(parts, p, like)
        return parts

    def inserted(self, parts: list[Part], new: Part, like: TermId) -> list[Part]:
        """The parts with one more; the chain plus the new part is their chain."""
        t = self.terms.type[like]
        e = self.part(new)
        at = len(parts)
        before = self.chains(parts, like)
        while at and self.rank(parts[at - 1][0]) > self.rank(new[0]):
            at -= 1
            moved = self.part(parts[at])
            if at:
                self.say("add.exchange", x=before[at], y=moved, z=e, t=t)
            else:
                self.say("add.commute", x=moved, y=e, t=t)
        if not at:
            if not parts:
                self.say("add.zero-left", x=e, t=t, u=t)
            return [new, *parts]
        if parts[at - 1][0] != new[0]:
            return [*parts[:at], new, *parts[at:]]
        return self.merged(parts, at - 1, new, like)

    def merged(self, parts: list[Part], at: int, new: Part, like: TermId) -> list[Part]:
        """`x·c + x·d = x·(c + d)`, in its place."""
        t = self.terms.type[like]
        s = self.terms.table.intern(SCALAR_REAL)
        x, c = parts[at]
        d = new[1]
        if at:
            self.say("add.associate", x=self.chain(parts[:at], like), y=self.part(parts[at]), z=self.part(new), t=t)
        self.scaled(x, c)
        self.scaled(x, d)
        self.say("add.like-const", x=x, c=Fraction(c), d=Fraction(d), s=s, t=t)
        if c + d:
            self.scaled(x, c + d)
            return [*parts[:at], (x, c + d), *parts[at + 1 :]]
        self.vanished(x, t, s)
        if at:
            self.say("add.zero-right", x=self.chain(parts[:at], like), t=t, u=t)
        if at + 1 < len(parts) and not at:
            self.say("add.zero-left", x=self.part(parts[1]), t=t, u=t)
        return [*parts[:at], *parts[at + 1 :]]

    def scaled(self, x: TermId, c: int) -> None:
        """A part as a product: `x = x · 1`, `-x = x · (-1)`."""
        t, s = self.terms.type[x], self.terms.table.intern(SCALAR_REAL)
        if c == 1:
            self.say("mul.one-right", x=x, u=s, t=t)
            self.say("const.one", s=s, t=s)
        elif c == -1:
            self.say("mul.minus-one", x=x, s=s, t=t)

    def vanished(self, x: TermId, t: int, s: int) -> None:
        """`x · 0 = 0`."""
        self.say("const.zero", s=s, t=s)
        self.say("mul.zero-right", x=x, u=s, t=t)
