"""Which choices of a class can be left out of the integer program: those that another one of the class is never dearer
than.

Say a selection has choice w of a class, and takes b instead. It no longer pays w, nor what only w needs. It pays b, and
of what b needs that which w did not give: as a tree, of which everything that w surely needs is there already. If that
is no more, w can go. (Needs that are not there must not lie in the class's own cyclic component, for they might need
the class. Then none of what is new does.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.extract import Choice, Choices, ClassId, Components, components, trees_of

NEAR = 32
"""No more classes behind a choice are looked at than this."""


@dataclass(frozen=True, slots=True)
class _Rival:
    """A choice of a class. `surely` are classes that every selection with it has without the class, but for those that
    it alone needs; `cost` is its own with theirs."""

    choice: Choice
    surely: frozenset[ClassId]
    cost: int


def undominated(choices: Choices, free: frozenset[ClassId], budget: Budget) -> Choices:
    """Without choices that lose. What is `free` is there in any case, but within a cyclic component, where the order
    matters, only if it comes before the class."""
    table = _Table(choices, free, components(choices), trees_of(choices, free).cost, budget)
    budget.compared -= sum(map(len, choices.values()))
    return {c: table.kept(c) if len(ways) > 1 else ways for c, ways in choices.items()}


@dataclass(slots=True)
class _Table:
    choices: Choices
    free: frozenset[ClassId]
    component: Components
    trees: dict[ClassId, int]
    budget: Budget
    readers: dict[ClassId, int] = field(default_factory=dict[ClassId, int])
    least: dict[ClassId, int] = field(default_factory=dict[ClassId, int])
    """What a class costs at least, all that it needs being there."""

    def __post_init__(self) -> None:
        for c, ways in self.choices.items():
            self.least[c] = min(way.cost for way in ways)
            for way in ways:
                for n in way.needs:
                    self.readers[n] = self.readers.get(n, 0) + 1

    def kept(self, c: ClassId) -> list[Choice]:
        rivals = sorted((self.rival(way) for way in self.choices[c]), key=self.rank)
        kept: list[_Rival] = []
        for way in rivals:
            self.budget.compared -= len(kept)
            if self.budget.compared <= 0 or not any(self.loses(c, way, better) for better in kept):
                kept.append(way)
        return [way.choice for way in kept]

    def rank(self, rival: _Rival) -> tuple[int, int, int, int]:
        """The cheapest trees first."""
        way = rival.choice
        needs = [n for n in way.needs if n not in self.free]
        return way.cost + sum(self.trees[n] for n in needs), len(needs), len(way.needs), way.key

    def rival(self, way: Choice) -> _Rival:
        """A choice with what stands behind it, through classes that have one choice only."""
        own = self.own(way)
        surely = set(way.needs)
        stack = sorted(surely)
        while stack and len(surely) < NEAR:
            n = stack.pop()
            fresh = self.choices[n][0].needs - surely if self.single(n) else frozenset[ClassId]()
            surely |= fresh
            stack += sorted(fresh)
        cost = way.cost + sum(self.choices[n][0].cost for n in own)
        return _Rival(way, frozenset(surely - own), cost)

    def own(self, way: Choice) -> set[ClassId]:
        """The classes that only this choice needs."""
        own: set[ClassId] = set()
        readers: dict[ClassId, int] = {}
        stack = [way]
        while stack and len(own) < NEAR:
            for n in stack.pop().needs:
                readers[n] = readers.get(n, 0) + 1
                if readers[n] == self.readers[n] and self.single(n):
                    own.add(n)
                    stack.append(self.choices[n][0])
        return own

    def single(self, n: ClassId) -> bool:
        return n not in self.free and len(self.choices[n]) == 1

    def loses(self, c: ClassId, way: _Rival, better: _Rival) -> bool:
        besides = [n for n in better.choice.needs - way.surely if self.counts(c, n)]
        if any(self.component[n][0] == self.component[c][0] for n in besides):
            return False
        if better.choice.cost + sum(self.least[n] for n in besides) > way.cost:
            return False
        return better.choice.cost + sum(self.tree(n, way.surely) for n in besides) <= way.cost

    def counts(self, c: ClassId, n: ClassId) -> bool:
        return n not in self.free or self.component[n][0] == self.component[c][0]

    def tree(self, n: ClassId, there: frozenset[ClassId]) -> int:
        """What a class costs at most where others are there already."""
        return min(self.trees[n], *(self.beside(way, there) for way in self.choices[n]))

    def beside(self, way: Choice, there: frozenset[ClassId]) -> int:
        return way.cost + sum(self.trees[n] for n in way.needs if n not in there and n not in self.free)
