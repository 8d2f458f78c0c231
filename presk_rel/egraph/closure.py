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

from presk_rel.egraph.instances import Instance
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

SEARCHED = 2_000
"""Terms a search for a short path may visit, before the path in the forest is taken instead."""


@dataclass(slots=True)
class Closure:
    """All consequences of rule instances, over the terms of a table. Terms made later are taken in by `extend`."""

    terms: Terms
    instances: list[Instance] = field(default_factory=list[Instance])
    _leader: list[int] = field(default_factory=list[int])
    _size: list[int] = field(default_factory=list[int])
    _users: list[list[TermId]] = field(default_factory=list[list[TermId]])
    _parent: list[Edge | None] = field(default_factory=list["Edge | None"])
    _edges: list[list[Edge]] = field(default_factory=list[list[Edge]])
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
        self.extend()
        return self.find(a) == self.find(b)

    def extend(self) -> None:
        """Take in the terms that are new in the table."""
        for t in range(len(self._leader), len(self.terms)):
            self._leader.append(t)
            self._size.append(1)
            self._users.append([])
            self._parent.append(None)
            self._edges.append([])
            for a in set(self.terms.args[t]):
                self._users[self.find(a)].append(t)
            self._sign(t)
        self._flush()

    def add(self, instance: Instance) -> None:
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
        if other != term:
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
        return self._cut(self._shortest(a, b, before) or self._in_forest(a, b), before)

    def _cut(self, edges: list[Edge], before: int) -> list[Edge]:
        out: list[Edge] = []
        i = 0
        while i < len(edges):
            j = len(edges)
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
        if self._weight(edge) >= sum(map(self._weight, edges)):
            return None
        if any(self.find(p) != self.find(q) for p, q in different):
            return None
        dates = [e.date for p, q in different for e in self._in_forest(p, q)]
        date = max(dates, default=0) + 1
        return Edge(a, b, CONGRUENCE, True, date) if date < before else None

    def _shortest(self, a: TermId, b: TermId, before: int) -> list[Edge] | None:
        cost = {a: 0}
        came: dict[TermId, Edge] = {}
        heap = [(0, a)]
        while heap and len(cost) < SEARCHED:
            so_far, x = heapq.heappop(heap)
            if x == b:
                return _collected(came, a, b)
            if so_far > cost[x]:
                continue
            for edge in self._edges[x]:
                if edge.date < before:
                    amount = so_far + self._weight(edge)
                    if amount < cost.get(edge.after, amount + 1):
                        cost[edge.after], came[edge.after] = amount, edge
                        heapq.heappush(heap, (amount, edge.after))
        return None

    def _weight(self, edge: Edge) -> int:
        return 2 if edge.instance != CONGRUENCE else 1 + 2 * len(self.differing(edge))

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
        """Lemmas, each after those it needs; the last is `a = b`. ValueError if the instances do not make them equal."""
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


def _turned(edge: Edge) -> Edge:
    return Edge(edge.after, edge.before, edge.instance, not edge.forward, edge.date)


def _collected(came: dict[TermId, Edge], a: TermId, b: TermId) -> list[Edge]:
    found: list[Edge] = []
    while b != a:
        found.append(came[b])
        b = found[-1].before
    return found[::-1]
