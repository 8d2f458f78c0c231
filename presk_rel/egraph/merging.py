"""Contractions of one form that share an operand, and sums of contractions, as one contraction of stacks.

This runs on what was extracted, where it is known which contractions there are. Groups are found by what they share, in
one pass; each is proposed as a whole (never by pairs), with the rule instances that prove it, and an integer program
chooses by cost, as everywhere: a stack is a copy and a launch, but where the tensors are leaves of a tree that lie at
equal distances already (`egraph.places`).

    x · w₀, x · w₁, …              an operand is shared: slices of x · W
    ct₀ · w₀ᵀ + ct₁ · w₁ᵀ + …      terms of a sum: the contraction of C and W that sums over the stack's axis too
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.choices import Weights
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.cost import BYTE, LAUNCH, CostModel
from presk_rel.egraph.extract import Choice, Choices, extract
from presk_rel.egraph.fusion.roles import ROLES
from presk_rel.egraph.language import INPUT, Terms
from presk_rel.egraph.merging_laws import Laws, Ways
from presk_rel.egraph.places import WAYS, Layout, Place
from presk_rel.egraph.products import Product, lengths, product
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.rules.merging import MOST
from presk_rel.egraph.sums import Reader, Writer
from presk_rel.egraph.templates import shape_operands

TOGETHER = 64
"""Contractions that share an operand and are looked at together; more are taken in the order of the program."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The term that the root is now, and how far from the optimum the choice may be."""

    root: TermId
    gap: float


def merged(terms: Terms, closure: Closure, root: TermId, model: CostModel, budget: Budget) -> Merged:
    """The cheapest of a program and what it is with contractions merged (`rules.merging`); equal to it in the
    closure."""
    if budget.late():
        return Merged(root, 0.0)
    merger = _Merger(terms, closure, model, Laws(terms, closure))
    merger.propose(root)
    if not merger.ways:
        return Merged(root, 0.0)
    closure.settle()
    found = extract(merger.choices(root), root, budget.limits.solver, budget)
    if found is None:
        return Merged(root, 0.0)
    return Merged(merger.rebuilt(root, {t: c.key for t, c in found.chosen.items()}), found.gap)


@dataclass(slots=True)
class _Merger:
    """`ways` has the other terms that a term is; `place` says where leaves lie; `order` in which order operands of
    a merged sum are stacked. `epilogue` are the terms that are worked on entry by
    entry: the launch of a contraction may do that too, but not what takes a slice of one."""

    terms: Terms
    closure: Closure
    model: CostModel
    laws: Laws
    ways: dict[TermId, list[TermId]] = field(default_factory=dict[TermId, list[TermId]])
    place: dict[TermId, Place] = field(default_factory=dict[TermId, Place])
    order: dict[frozenset[TermId], tuple[TermId, ...]] = field(
        default_factory=dict[frozenset[TermId], tuple[TermId, ...]]
    )
    epilogue: set[TermId] = field(default_factory=set[TermId])
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        self.layout = Layout(self.model.modules, self.model.items)

    def propose(self, root: TermId) -> None:
        """Find the groups, sums first: their order is that of others too."""
        order = self.needed(root)
        if sum(product(self.terms, t) is not None for t in order) < 2:
            return
        self.locate(order)
        self.sums(order)
        self.shared(order)
        self.biases(order)

    # ------------------------------------------------------------------------------------------------ the program

    def read(self, t: TermId) -> list[TermId]:
        """The operands whose values are read."""
        shapes = shape_operands(self.terms.op(t))
        return [a for i, a in enumerate(self.terms.args[t]) if i not in shapes]

    def needed(self, root: TermId) -> list[TermId]:
        seen = {root}
        stack = [root]
        while stack:
            for a in self.read(stack.pop()):
                if a not in seen:
                    seen.add(a)
                    stack.append(a)
        return sorted(seen)

    def locate(self, order: list[TermId]) -> None:
        """Where the parts of parameters lie, and what is worked on entry by entry."""
        for t in order:
            head = self.terms.op(t)
            if ROLES.get(head.op) == "pointwise":
                self.epilogue.update(self.read(t))
            if head.op == "linear":
                self.epilogue.add(self.terms.args[t][2])
            ty = self.terms.table.types[head.type]
            if head.op == INPUT:
                self.place[t] = Place(t, ty)
            elif head.op in WAYS and self.terms.args[t][0] in self.place:
                inner = self.place[self.terms.args[t][0]].inside(head.op, head.attrs, ty)
                if inner is not None:
                    self.place[t] = inner

    def start(self, t: TermId) -> tuple[str, int] | None:
        """The buffer that a leaf of a tree is in, and where."""
        found = self.place.get(t)
        at = None if found is None else self.layout.offset(found)
        return None if found is None or at is None else (repr(found.root), at[0])

    # ------------------------------------------------------------------------------------------------ finding

    def shared(self, order: list[TermId]) -> None:
        """Contractions that share an operand."""
        groups: dict[object, list[Product]] = {}
        for t in order:
            p = product(self.terms, t)
            if p is None:
                continue
            bias = None if p.bias is None else lengths(self.terms, p.bias)
            for side in (0, 1):
                other = lengths(self.terms, p.operands[1 - side])
                key = (p.op, p.spec, side, p.operands[side], other, self.terms.type[t], bias)
                groups.setdefault(key, []).append(p)
        groups = {k: g for k, g in groups.items() if len(g) > 1}
        depends = self.dependences(order, {p.term for g in groups.values() for p in g})
        for key, group in groups.items():
            assert isinstance(key, tuple)
            for first in range(0, len(group), TOGETHER):
                for members in independent(group[first : first + TOGETHER], depends):
                    self.group(members, "right" if key[2] == 0 else "left")

    def dependences(self, order: list[TermId], marked: set[TermId]) -> dict[TermId, int]:
        """For each term, what of the marked ones it is computed from, as bits; a marked one has its own too."""
        bit = {t: 1 << i for i, t in enumerate(sorted(marked))}
        found: dict[TermId, int] = {}
        for t in order if marked else ():
            below = 0
            for a in self.terms.args[t]:
                below |= found.get(a, 0)
            found[t] = below | bit.get(t, 0)
        return found

    def sums(self, order: list[TermId]) -> None:
        """Contractions of one form that are added up."""
        written = self.written_out(order)
        reader = Reader(self.terms)
        reader.roots(range(len(self.terms)))
        sums = {t: written.get(t, t) for t in order if reader.is_sum(written.get(t, t))}
        inner = {a for t in sums for a in self.terms.args[t]}
        outer = {a for t in order if t not in sums for a in self.terms.args[t]}
        for t, as_sum in sums.items():
            if reader.ordered(as_sum) and (t in outer or t not in inner):
                self.sum(t, as_sum, reader)

    def written_out(self, order: list[TermId]) -> dict[TermId, TermId]:
        """A product that is added to a tensor of its own type, as a sum; and the sums of such."""
        found: dict[TermId, TermId] = {}
        for t in order:
            own, args = self.terms.type[t], self.terms.args[t]
            p = product(self.terms, t)
            if p is not None and p.bias is not None and self.terms.type[p.bias] == own:
                found[t] = self.laws.written_out(p, found.get(p.bias, p.bias))
            elif self.terms.op(t).op == "add" and any(a in found for a in args):
                found[t] = self.terms.make(self.terms.head[t], tuple(found.get(a, a) for a in args))
        return found

    def sum(self, term: TermId, root: TermId, reader: Reader) -> None:
        """Merge the largest group of a sum, `root`, that a term is."""
        groups: dict[object, list[Product]] = {}
        for leaf, c in reader.parts(root).items():
            p = product(self.terms, leaf)
            if p is not None and p.bias is None and c == 1:
                both = tuple(lengths(self.terms, a) for a in p.operands)
                groups.setdefault((p.op, p.spec, both), []).append(p)
        if not groups or len(group := max(groups.values(), key=len)) < 2:
            return
        members = self.sorted(group, 1)[:MOST]
        for side in (0, 1):
            given = tuple(p.operands[side] for p in members)
            self.order.setdefault(frozenset(given), given)
        rank = {p.term: k for k, p in enumerate(members)}
        writer = Writer(self.terms, self.closure, reader, lambda t: (0, rank[t]) if t in rank else (1, t))
        normal = writer.normal(root)
        if normal is None:
            return
        self.take([(term, normal)])
        chain = writer.chain([(p.term, reader.parts(root)[p.term]) for p in members], root)
        self.take(self.laws.total(members, chain))

    # ------------------------------------------------------------------------------------------------ order

    def sorted(self, group: Sequence[Product], side: int) -> list[Product]:
        """In the order in which the operands of that side lie in memory, or, as operands of a sum, were put already;
        else as they are in the program."""
        operands = [p.operands[side] for p in group]
        known = self.order.get(frozenset(operands))
        if known is not None and len(known) == len(group):
            return sorted(group, key=lambda p: known.index(p.operands[side]))
        starts = [s for a in operands if (s := self.start(a)) is not None]
        if len(starts) < len(group):
            return list(group)
        return [group[k] for k in sorted(range(len(group)), key=lambda k: starts[k])]

    def group(self, group: Sequence[Product], side: str) -> None:
        """Merge those that share an operand, in stacks of `MOST`."""
        place = 0 if side == "left" else 1
        members = self.sorted(list({p.operands[place]: p for p in group}.values()), place)
        for first in range(0, len(members), MOST):
            if len(members[first : first + MOST]) > 1:
                self.take(self.laws.shared(members[first : first + MOST], side))

    def biases(self, order: list[TermId]) -> None:
        """Parts of a stack that are summed down alike: the gradients of biases."""
        sums: dict[TermId, list[TermId]] = {}
        for t in order:
            if self.terms.op(t).op == "sum_to":
                sums.setdefault(self.terms.args[t][0], []).append(t)
        for parts in list(self.laws.stacks):
            for t in sums.get(parts[0], ()):
                own = self.terms.type[t]
                alike = [s for a in parts for s in sums.get(a, ()) if self.terms.type[s] == own]
                if len(alike) == len(parts):
                    self.take(self.laws.summed_down(alike, parts))

    def take(self, ways: Ways) -> None:
        """Remember what terms are otherwise."""
        for term, other in ways:
            if other != term and other not in self.ways.setdefault(term, []):
                self.ways[term].append(other)

    # ------------------------------------------------------------------------------------------------ choosing

    def choices(self, root: TermId) -> Choices:
        """Every term with the ways to compute it."""
        weights = Weights(self.terms, self.model)
        found: Choices = {}
        stack = [root]
        while stack:
            t = stack.pop()
            if t in found:
                continue
            found[t] = [self.choice(weights, way, own=t) for way in self.all_ways(t)]
            stack += [a for way in found[t] for a in way.needs]
        return found

    def all_ways(self, t: TermId) -> list[TermId]:
        """A term, what it is otherwise, and what that is otherwise."""
        found = [t]
        for way in found:
            found += [other for other in self.ways.get(way, ()) if other not in found]
        return found

    def choice(self, weights: Weights, t: TermId, own: TermId) -> Choice:
        """One way, `t`, to compute the term `own`."""
        args = self.terms.args[t]
        view = self.terms.op(t).op == "stack_params" and self.lies(args)
        cost = (
            2
            if view or t in self.laws.sums
            else weights.units(self.terms.head[t], tuple(self.terms.type[a] for a in args))
        )
        if t != own and own in self.epilogue and self.terms.op(t).op == "slice_params":
            own_type = self.terms.table.types[self.terms.type[own]]
            cost += 4 * (LAUNCH + 2 * BYTE * self.model.bytes(own_type))  # written, and read by another launch
        return Choice(cost + (t != own), frozenset(self.read(t)), t)

    def lies(self, parts: Sequence[TermId]) -> bool:
        """Whether a stack is there already."""
        return self.layout.lies([self.place.get(a) for a in parts])

    def rebuilt(self, root: TermId, chosen: dict[TermId, TermId]) -> TermId:
        """The term of what was chosen."""
        made: dict[TermId, TermId] = {}
        stack = [root]
        while stack:
            t = stack[-1]
            way = chosen[t]
            missing = [a for a in self.read(way) if a not in made]
            stack += missing
            if not missing:
                stack.pop()
                args = tuple(made.get(a, a) for a in self.terms.args[way])
                made[t] = self.terms.make(self.terms.head[way], args)
        return made[root]


def independent(group: Sequence[Product], depends: dict[TermId, int]) -> list[list[Product]]:
    """Members of a group that can be computed at once: by how many of the others each waits for in a row."""
    level: dict[TermId, int] = {}
    for p in group:
        below = [level[q.term] for q in group if q.term in level and depends[q.term] & ~depends[p.term] == 0]
        level[p.term] = max(below, default=-1) + 1
    found: dict[int, list[Product]] = {}
    for p in group:
        found.setdefault(level[p.term], []).append(p)
    return [members for members in found.values() if len(members) > 1]
