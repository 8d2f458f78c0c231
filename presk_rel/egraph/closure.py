"""Congruence closure with a proof forest (Nieuwenhuis and Oliveras, "Fast congruence closure and extensions", 2007).

Nodes are terms; edges of the forest are rule instances or congruences. The path between two terms is the proof that
they are equal; a congruence on it needs proofs for its operands, which become lemmas of their own, each proven once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from presk_rel.egraph.instances import Instance
from presk_rel.egraph.language import Terms
from presk_rel.egraph.proof import TermId

CONGRUENCE = -1
NONE = -1


@dataclass(frozen=True, slots=True)
class Edge:
    """`before = after` by instance number `instance` (left to right if `forward`), or by congruence."""

    before: TermId
    after: TermId
    instance: int
    forward: bool


@dataclass(slots=True)
class Closure:
    """All consequences of rule instances, over the terms of a table. Terms made later are taken in by `extend`."""

    terms: Terms
    instances: list[Instance] = field(default_factory=list[Instance])
    _leader: list[int] = field(default_factory=list[int])
    _size: list[int] = field(default_factory=list[int])
    _users: list[list[TermId]] = field(default_factory=list[list[TermId]])
    _parent: list[int] = field(default_factory=list[int])
    _reason: list[int] = field(default_factory=list[int])
    _forward: list[bool] = field(default_factory=list[bool])
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
            self._parent.append(NONE)
            self._reason.append(CONGRUENCE)
            self._forward.append(True)
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
        if other != term and self.find(other) != self.find(term):
            self._pending.append((term, other, CONGRUENCE))

    def _flush(self) -> None:
        while self._pending:
            self._union(*self._pending.popleft())

    def _union(self, a: TermId, b: TermId, reason: int) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            return
        forward = True
        if self._size[ra] > self._size[rb]:
            a, b, ra, rb, forward = b, a, rb, ra, False
        self._hang(a, b, reason, forward)
        self._leader[ra] = rb
        self._size[rb] += self._size[ra]
        moved, self._users[ra] = self._users[ra], []
        for t in moved:
            self._sign(t)
        self._users[rb] += moved

    def _hang(self, a: TermId, b: TermId, reason: int, forward: bool) -> None:
        """Make `a` the root of its tree, then hang it under `b`."""
        x, up, new_reason, new_forward = a, b, reason, forward
        while x != NONE:
            next_up, next_reason, next_forward = self._parent[x], self._reason[x], self._forward[x]
            self._parent[x], self._reason[x], self._forward[x] = up, new_reason, new_forward
            x, up, new_reason, new_forward = next_up, x, next_reason, not next_forward

    # ------------------------------------------------------------------------------------------------ explaining

    def path(self, a: TermId, b: TermId) -> list[Edge]:
        """The steps from a to b in the forest; both ends walk up by turns, so the cost is that of the path."""
        meet = self._meeting(a, b)
        up: list[Edge] = []
        while a != meet:
            up.append(Edge(a, self._parent[a], self._reason[a], self._forward[a]))
            a = self._parent[a]
        down: list[Edge] = []
        while b != meet:
            down.append(Edge(self._parent[b], b, self._reason[b], not self._forward[b]))
            b = self._parent[b]
        return up + down[::-1]

    def _meeting(self, a: TermId, b: TermId) -> TermId:
        seen: set[TermId] = {a, b} if a != b else {a}
        if a == b:
            return a
        walkers = [a, b]
        while walkers:
            walking: list[TermId] = []
            for w in walkers:
                up = self._parent[w]
                if up in seen:
                    return up
                if up != NONE:
                    seen.add(up)
                    walking.append(up)
            walkers = walking
        raise ValueError(f"terms {a} and {b} are not equal")

    def explain(self, a: TermId, b: TermId) -> list[tuple[TermId, TermId, list[Edge]]]:
        """Lemmas `left = right` with their steps, each after those it needs; the last is `a = b`. ValueError if the
        instances do not make them equal."""
        done: set[tuple[TermId, TermId]] = set()
        order: list[tuple[TermId, TermId, list[Edge]]] = []
        stack: list[tuple[TermId, TermId, list[Edge] | None]] = [(a, b, None)]
        while stack:
            left, right, edges = stack.pop()
            if (left, right) in done:
                continue
            if edges is not None:
                done.add((left, right))
                order.append((left, right, edges))
                continue
            edges = self.path(left, right)
            stack.append((left, right, edges))
            stack += [(p, q, None) for p, q in self._needs(edges) if (p, q) not in done]
        return order

    def _needs(self, edges: list[Edge]) -> list[tuple[TermId, TermId]]:
        return [goal(p, q) for e in edges if e.instance == CONGRUENCE for p, q in self.differing(e)]

    def differing(self, edge: Edge) -> list[tuple[TermId, TermId]]:
        """The operands in which the two sides of a congruence differ."""
        before, after = self.terms.args[edge.before], self.terms.args[edge.after]
        return [(p, q) for p, q in zip(before, after, strict=True) if p != q]


def goal(p: TermId, q: TermId) -> tuple[TermId, TermId]:
    """One lemma serves both directions."""
    return (p, q) if p < q else (q, p)
