"""Congruence closure with a proof forest (Nieuwenhuis and Oliveras, "Fast congruence closure and extensions", 2007).

Nodes are terms; edges are rule instances or congruences. A path between two terms is the proof that they are equal; a
congruence on it needs proofs for its operands, which become lemmas of their own, each proven once.

Edges are dated. The forest alone always has a path; edges that found their ends equal already are kept too, because
they make shorter ones. An operand's proof uses only edges older than the congruence that needs it, so proofs are well
founded whichever path is taken.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from operator import ne

from presk_rel.egraph.budget import WHOLE, Budget, Limits
from presk_rel.egraph.instances import FoldChange, Instance
from presk_rel.egraph.language import Terms
from presk_rel.egraph.proof import TermId

CONGRUENCE = -1


@dataclass(frozen=True, slots=True)
class Edge:
    """`before = after` by instance number `instance` (left to right if `forward`), or by congruence, at a date."""

    before: TermId
    after: TermId
    instance: int
    forward: bool
    date: int


Lemma = tuple[TermId, TermId, list[Edge]]
"""Left side, right side, steps."""

WIDE = 16
"""Records and tuples with more operands are looked at once, when all is known: each union of an operand would sign them
anew."""

SEARCHED = 2_000
"""Terms a search for a short path may visit, before the path in the forest is taken instead."""

NEAR = 40
"""Steps of a path that one congruence may take the place of."""


@dataclass(slots=True)
class Closure:
    """All consequences of rule instances, over the terms of a table. Terms made later are taken in by `extend`."""

    terms: Terms
    budget: Budget = field(default_factory=lambda: Budget.of(Limits()))
    instances: list[Instance | FoldChange] = field(default_factory=list["Instance | FoldChange"])
    _leader: list[int] = field(default_factory=list[int])
    _size: list[int] = field(default_factory=list[int])
    _users: list[list[TermId]] = field(default_factory=list[list[TermId]])
    _parent: list[Edge | None] = field(default_factory=list["Edge | None"])
    _edges: list[list[Edge]] = field(default_factory=list[list[Edge]])
    _congruent: set[tuple[TermId, TermId]] = field(default_factory=set[tuple[TermId, TermId]])
    _wide: list[TermId] = field(default_factory=list[TermId])
    _date: int = 0
    _signature: dict[tuple[int, ...], TermId] = field(default_factory=dict[tuple[int, ...], TermId])
    _pending: deque[tuple[TermId, TermId, int]] = field(default_factory=deque[tuple[TermId, TermId, int]])

    def find(self, term: TermId) -> TermId:
        leader = self._leader
        while leader[term] != term:
            leader[term] = leader[leader[term]]
            term = leader[term]
        return term

    def equal(self, a: TermId, b: TermId) -> bool:
        self.settle()
        return self.find(a) == self.find(b)

    def settle(self) -> None:
        """Take in new terms, and find the congruences between wide ones."""
        self.extend()
        dated = -1
        while dated != self._date:
            dated = self._date
            for t in self._wide:
                self._sign(t)
            self._flush()

    def extend(self) -> None:
        """Take in the terms that are new in the table."""
        for t in range(len(self._leader), len(self.terms)):
            self._leader.append(t)
            self._size.append(1)
            self._users.append([])
            self._parent.append(None)
            self._edges.append([])
            if len(self.terms.args[t]) > WIDE:
                self._wide.append(t)
                continue
            for a in set(self.terms.args[t]):
                self._users[self.find(a)].append(t)
            self._sign(t)
        self._flush()

    def add(self, instance: Instance | FoldChange) -> None:
        """Merge the sides of an instance."""
        self.extend()
        self.instances.append(instance)
        self._pending.append((instance.left, instance.right, len(self.instances) - 1))
        self._flush()

    def _sign(self, term: TermId) -> None:
        args = self.terms.args[term]
        if not args:
            return
        signature = (self.terms.head[term], *map(self.find, args))
        other = self._signature.setdefault(signature, term)
        if other != term and (term, other) not in self._congruent:
            self._congruent.add((term, other))
            self._pending.append((term, other, CONGRUENCE))

    def _flush(self) -> None:
        while self._pending:
            self._union(*self._pending.popleft())

    def _union(self, a: TermId, b: TermId, reason: int) -> None:
        if a == b:
            return
        self._date += 1
        edge = Edge(a, b, reason, True, self._date)
        self._edges[a].append(edge)
        self._edges[b].append(_turned(edge))
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return
        if self._size[ra] > self._size[rb]:
            ra, rb, edge = rb, ra, _turned(edge)
        self._hang(edge)
        self._leader[ra] = rb
        self._size[rb] += self._size[ra]
        moved, self._users[ra] = self._users[ra], []
        for t in moved:
            self._sign(t)
        self._users[rb] += moved

    def _hang(self, edge: Edge) -> None:
        """Make the edge's start the root of its tree, then hang it under its end."""
        up: Edge | None = edge
        while up is not None:
            x = up.before
            old, self._parent[x] = self._parent[x], up
            up = None if old is None else _turned(old)

    # ------------------------------------------------------------------------------------------------ explaining

    def path(self, a: TermId, b: TermId, before: int) -> list[Edge]:
        """Steps from a to b by edges older than `before`: the fewest, counting the operands of a congruence too, unless
        the search gets long; then cut short where two terms on the way are congruent."""
        if a == b:
            return []
        if self.budget.searched <= 0 or self.budget.late():
            self.budget.cut("short proofs")
            return self._in_forest(a, b)
        return self._cut(self._shortest(a, b, before) or self._in_forest(a, b), before)

    def _cut(self, edges: list[Edge], before: int) -> list[Edge]:
        out: list[Edge] = []
        i = 0
        while i < len(edges):
            j = min(len(edges), i + NEAR)
            self.budget.searched -= j - i
            shorter: Edge | None = None
            while shorter is None and j > i:
                shorter = self._congruence(edges[i:j], before)
                j -= 1
            out.append(shorter or edges[i])
            i = j + 1 if shorter is not None else i + 1
        return out

    def _congruence(self, edges: list[Edge], before: int) -> Edge | None:
        """One congruence in place of some edges, if there is one that costs less."""
        a, b = edges[0].before, edges[-1].after
        terms = self.terms
        if terms.head[a] != terms.head[b] or len(terms.args[a]) != len(terms.args[b]):
            return None
        edge = Edge(a, b, CONGRUENCE, True, 0)
        different = self.differing(edge)
        if self.weight(edge) >= sum(map(self.weight, edges)):
            return None
        if any(self.find(p) != self.find(q) for p, q in different):
            return None
        dates = [e.date for p, q in different for e in self._in_forest(p, q)]
        date = max(dates, default=0) + 1
        return Edge(a, b, CONGRUENCE, True, date) if date < before else None

    def _shortest(self, a: TermId, b: TermId, before: int) -> list[Edge] | None:
        """Dijkstra's algorithm from both ends: a path through a term that very many equal (a zero) ends at it from both
        sides, so its edges are never looked through."""
        search = _Search(self, before, (a, b))
        while search.open() and search.visited() < SEARCHED:
            search.step()
        self.budget.searched -= search.looked
        return search.path() if search.meeting is not None and not search.open() else None

    def edges(self, term: TermId) -> list[Edge]:
        return self._edges[term]

    def weight(self, edge: Edge) -> int:
        """What an edge counts in a path."""
        if edge.instance != CONGRUENCE:
            return 2
        args = self.terms.args
        return 1 + 2 * sum(map(ne, args[edge.before], args[edge.after]))

    def _in_forest(self, a: TermId, b: TermId) -> list[Edge]:
        meet = self._meeting(a, b)
        up: list[Edge] = []
        while a != meet:
            up.append(self._up(a))
            a = up[-1].after
        down: list[Edge] = []
        while b != meet:
            down.append(_turned(self._up(b)))
            b = down[-1].before
        return up + down[::-1]

    def _up(self, term: TermId) -> Edge:
        edge = self._parent[term]
        assert edge is not None
        return edge

    def _meeting(self, a: TermId, b: TermId) -> TermId:
        """Where the ways of two terms to the root meet; both walk by turns, so the cost is that of the path."""
        seen: set[TermId] = {a, b}
        walkers = [a, b]
        while walkers:
            walking: list[TermId] = []
            for w in walkers:
                edge = self._parent[w]
                if edge is None:
                    continue
                if edge.after in seen:
                    return edge.after
                seen.add(edge.after)
                walking.append(edge.after)
            walkers = walking
        raise ValueError(f"terms {a} and {b} are not equal")

    def explain(self, a: TermId, b: TermId) -> list[Lemma]:
        """Lemmas, each after those it needs; the last is `a = b`. ValueError if they are not equal,
        OutOfBudget if the user's seconds are over."""
        if not self.equal(a, b):
            raise ValueError(f"terms {a} and {b} are not equal")
        done: set[tuple[TermId, TermId]] = set()
        order: list[Lemma] = []
        stack: list[tuple[TermId, TermId, int, list[Edge] | None]] = [(a, b, self._date + 1, None)]
        while stack:
            left, right, before, edges = stack.pop()
            if (left, right) in done:
                continue
            if edges is not None:
                done.add((left, right))
                order.append((left, right, edges))
                continue
            self.budget.watch("prove", WHOLE)
            edges = self.path(left, right, before)
            stack.append((left, right, before, edges))
            stack += [(p, q, date, None) for p, q, date in self._needs(edges) if (p, q) not in done]
        return order

    def _needs(self, edges: list[Edge]) -> list[tuple[TermId, TermId, int]]:
        return [(*goal(p, q), e.date) for e in edges if e.instance == CONGRUENCE for p, q in self.differing(e)]

    def differing(self, edge: Edge) -> list[tuple[TermId, TermId]]:
        """The operands in which the two sides of a congruence differ."""
        before, after = self.terms.args[edge.before], self.terms.args[edge.after]
        return [(p, q) for p, q in zip(before, after, strict=True) if p != q]


def goal(p: TermId, q: TermId) -> tuple[TermId, TermId]:
    """One lemma serves both directions."""
    return (p, q) if p < q else (q, p)


@dataclass(slots=True)
class _Search:
    """A shortest-path search between two terms; side 0 starts at the one, side 1 at the other. `looked`
    counts the edges looked through."""

    closure: Closure
    before: int
    ends: tuple[TermId, TermId]
    cost: tuple[dict[TermId, int], dict[TermId, int]] = field(init=False)
    came: tuple[dict[TermId, Edge], dict[TermId, Edge]] = field(default_factory=lambda: ({}, {}))
    heaps: tuple[list[tuple[int, int, TermId]], list[tuple[int, int, TermId]]] = field(init=False)
    meeting: TermId | None = None
    best: int = 0
    looked: int = 0

    def __post_init__(self) -> None:
        self.cost = ({self.ends[0]: 0}, {self.ends[1]: 0})
        self.heaps = ([self.entry(0, self.ends[0])], [self.entry(0, self.ends[1])])

    def entry(self, cost: int, term: TermId) -> tuple[int, int, TermId]:
        """At equal cost the term with fewer edges comes first."""
        return (cost, len(self.closure.edges(term)), term)

    def visited(self) -> int:
        return len(self.cost[0]) + len(self.cost[1])

    def open(self) -> bool:
        """Whether a shorter path may still be found."""
        if not self.heaps[0] or not self.heaps[1]:
            return False
        return self.meeting is None or self.heaps[0][0][0] + self.heaps[1][0][0] < self.best

    def step(self) -> None:
        """Look through the edges of the nearest open term."""
        side = 0 if self.heaps[0][0] <= self.heaps[1][0] else 1
        so_far, _, x = heapq.heappop(self.heaps[side])
        here, there = self.cost[side], self.cost[1 - side]
        if so_far > here[x]:
            return
        self.looked += 1 + len(self.closure.edges(x))
        for edge in self.closure.edges(x):
            amount = so_far + self.closure.weight(edge)
            if edge.date >= self.before or amount >= here.get(edge.after, amount + 1):
                continue
            here[edge.after], self.came[side][edge.after] = amount, edge
            heapq.heappush(self.heaps[side], self.entry(amount, edge.after))
            other = there.get(edge.after)
            if other is not None and (self.meeting is None or amount + other < self.best):
                self.meeting, self.best = edge.after, amount + other

    def path(self) -> list[Edge]:
        assert self.meeting is not None
        first = _collected(self.came[0], self.ends[0], self.meeting)
        second = _collected(self.came[1], self.ends[1], self.meeting)
        return [*first, *(_turned(e) for e in reversed(second))]


def _turned(edge: Edge) -> Edge:
    return Edge(edge.after, edge.before, edge.instance, not edge.forward, edge.date)


def _collected(came: dict[TermId, Edge], a: TermId, b: TermId) -> list[Edge]:
    found: list[Edge] = []
    while b != a:
        found.append(came[b])
        b = found[-1].before
    return found[::-1]
