"""Folds as canonical terms (`egraph.denote`).

Strictly, a fold is one term per leaf of its result, whose attribute is the denotation of the body on bound variables,
so that bodies are compared up to their names. Read up to the laws of `folds.laws`, it says less:

operands     the body is read with the extras themselves and with slices named after what they are slices of: operands
             that it does not read, operands given twice, and code computed inside or outside leave no trace
unread-part  a leaf is read with those leaves of the accumulator only that it depends on, in the order in which it does
same-part    leaves that start equal and are computed equal from equals are one variable
invariant    leaves that start as they stay are no variables, but what they start as

recompute    the slice of a stack that holds what each iteration of another fold computed is the body of that fold, on
             the slices that it had

Equal and unchanging leaves are greatest fixpoints: what is assumed equal is what every iteration keeps equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from presk_rel.core.ir import Fold
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.denote import Frame, Reading
from presk_rel.egraph.denote_terms import Branch, Tensor, Value, leaves, map_leaves
from presk_rel.smt.linear import Linear

DEEPEST_FOLDS = 1000
"""Folds inside folds; beyond this the checker gives up. Bodies are read without recursion."""
OPERANDS = frozenset(
    f"fold.{law}" for law in ("unread-operand", "same-operand", "invariant-code", "invariant-part", "recompute")
)
"""Laws that make something an extra or make an extra something else."""
UNREAD, SAME, INVARIANT, RECOMPUTE = "fold.unread-part", "fold.same-part", "fold.invariant-part", "fold.recompute"


def read_fold(reading: Reading, frame: Frame, fold: Fold) -> Value:
    """The value of a fold, leaf by leaf."""
    level = frame.level + 1
    if level > DEEPEST_FOLDS:
        raise PreskBug("denote", "folds nest too deeply to be checked")
    if frame.fold is None:
        frame.fold = _opened(reading, frame, fold, level)
    read = cast("_Fold", frame.fold)
    count = read.count
    form = (count, fold.reverse, level) if by_value(reading) else (count, fold.reverse, level, read.first(read.place))
    found = read.leaves(form)
    last = _filled(read.given[read.place], [x.last for x in found])
    if not fold.scan:
        return last
    stacks = [x.stack(reading, count) for x in found]
    return Branch((("0", last), ("1", _filled(read.given[read.place], stacks))))


def _opened(reading: Reading, frame: Frame, fold: Fold, level: int) -> _Fold:
    """A fold of which nothing is read yet."""
    dims = {d: form.substitute(frame.dims) for d, form in fold.dim_args}
    given = [frame.env[s].value for s in (*fold.stacked, fold.acc, *fold.extras)]
    count = fold.count.substitute(frame.dims)
    return _Fold(reading, fold.body, dims, level, given, len(fold.stacked), count)


def _computed(reading: Reading, stack: Tensor) -> tuple[_Fold, int] | None:
    """The fold, and the leaf of its accumulator, of which a stack holds at slot i what iteration i computed: the stack
    is what a fold the other way scans that hands on the slices of the accumulators before, starting from the last."""
    terms = reading.terms
    op, form, children = terms.keys[stack.id]
    if op != "scan" or len(children) != 1 or children[0] not in reading.folds:
        return None
    found, k = reading.folds[children[0]]
    _, source, below = terms.keys[children[0]]
    history = terms.ids.get(("scan", source, below))
    count, reverse, level, body, _ = cast("tuple[Linear, bool, int, tuple[int, ...], int]", form)
    if (count, reverse, len(body)) != (found.count, not source[1], 1):
        return None
    handed_on = terms.keys[body[0]]
    return (found, k) if (handed_on[0], handed_on[1][:1], handed_on[2]) == ("of slices", (level,), (history,)) else None


def by_value(reading: Reading) -> bool:
    """Whether operands are read as what they are, not as the body's parameters."""
    return bool(reading.laws & OPERANDS)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One leaf of the accumulator: its last value, and the form and children of its term; no form: it never changes."""

    last: Tensor
    form: tuple[object, ...] | None
    children: tuple[Tensor, ...]

    def stack(self, reading: Reading, count: Linear) -> Tensor:
        lengths = (count, *self.last.lengths)
        if self.form is None:
            return reading.terms.bcast(self.last, tuple(range(1, len(lengths))), lengths)
        return reading.terms.make("scan", self.form, self.children, lengths)


@dataclass(slots=True)
class _Fold:
    """A fold being read. It may be asked again for what it could not say before a body was read (`denote.Unread`);
    `groups` is how far its greatest fixpoints (`leaders`) are found."""

    reading: Reading
    body: str
    dims: dict[str, Linear]
    level: int
    given: list[Value]
    place: int
    count: Linear
    found: list[_Leaf] = field(default_factory=list[_Leaf])
    bodies: dict[tuple[int, ...], list[Tensor]] = field(default_factory=dict[tuple[int, ...], list[Tensor]])
    groups: tuple[set[int], list[int]] | None = None
    again: dict[int, list[Tensor]] = field(default_factory=dict[int, list[Tensor]])

    def leaves(self, form: tuple[object, ...]) -> list[_Leaf]:
        start = leaves(self.given[self.place])
        leader = self.leaders(start)
        fixed = [k for k in range(len(start)) if leader[k] is None]
        carried = [k for k in range(len(start)) if leader[k] == k]
        known: dict[tuple[int, ...], tuple[int, ...]] = {}
        found: list[_Leaf] = []
        for x, own in zip(start, leader, strict=True):
            if own is None:
                found.append(_Leaf(x, None, ()))
                continue
            order = self.order(start, leader, own, fixed) if UNREAD in self.reading.laws else carried
            if tuple(order) not in known:
                known[tuple(order)] = self.results(start, leader, order)
            whole = (*form, known[tuple(order)], order.index(own))
            children = (*self.operands(), *(start[i] for i in order))
            last = self.reading.terms.make("fold", whole, children, x.lengths)
            found.append(_Leaf(last, whole, children))
        self.found = found
        for k, leaf in enumerate(found):
            if leaf.form is not None:
                self.reading.folds.setdefault(leaf.last.id, (self, k))
        return found

    def operands(self) -> list[Tensor]:
        """What the term of the fold has to name because its body does not."""
        if by_value(self.reading):
            return []
        return [x for i, v in enumerate(self.given) if i != self.place for x in leaves(v)]

    # ------------------------------------------------------------------------------------------------ the body

    def bound(self, index: int, value: Value) -> Value:
        """A bound variable of the body, of the form of the argument (of a slice of it, if it is stacked)."""
        terms, level, stacked = self.reading.terms, self.level, index < self.place
        if by_value(self.reading) and not stacked:
            return value
        numbers = iter(range(self.first(index), self.first(index + 1)))

        def leaf(x: Tensor) -> Tensor:
            lengths = x.lengths[1:] if stacked else x.lengths
            if by_value(self.reading):
                return self.slice(x, level)
            return terms.make("bound", (level, next(numbers), lengths), (), lengths)

        return map_leaves(leaf, value)

    def first(self, index: int) -> int:
        """The number of an operand's first leaf: leaves are counted through all operands, for a fold of tuples is the
        fold of their parts."""
        return sum(len(leaves(v)) for i, v in enumerate(self.given[:index]) if i != self.place)

    def slice(self, x: Tensor, level: int) -> Tensor:
        """The slice that an iteration of a fold at `level` has of a stack."""
        kept = _computed(self.reading, x) if RECOMPUTE in self.reading.laws else None
        if kept is not None:
            return kept[0].iteration(level)[kept[1]]
        return self.reading.terms.make("of slices", (level, x.lengths[1:]), (x,), x.lengths[1:])

    def iteration(self, level: int) -> list[Tensor]:
        """What the body computes in the iteration of a fold at `level` that has the same number."""
        if level not in self.again:
            self.again[level] = self._iteration(level)
        return self.again[level]

    def _iteration(self, level: int) -> list[Tensor]:
        args = [
            map_leaves(lambda x: self.slice(x, level), v) if i < self.place else v for i, v in enumerate(self.given)
        ]
        before = [
            x.last if x.form is None else self.slice(x.stack(self.reading, self.count), level) for x in self.found
        ]
        args[self.place] = _filled(self.given[self.place], before)
        return leaves(self.reading.body(self.body, self.dims, args, level))

    def body_on(self, acc: list[Tensor]) -> list[Tensor]:
        """The leaves of the body's result on these leaves of the accumulator."""
        key = tuple(x.id for x in acc)
        if key not in self.bodies:
            self.bodies[key] = self._body_on(acc)
        return self.bodies[key]

    def _body_on(self, acc: list[Tensor]) -> list[Tensor]:
        args = [_filled(v, acc) if i == self.place else self.bound(i, v) for i, v in enumerate(self.given)]
        return leaves(self.reading.body(self.body, self.dims, args, self.level))

    def variable(self, number: object, like: Tensor) -> Tensor:
        return self.reading.terms.make("part", (self.level, number, like.lengths), (), like.lengths)

    def results(self, start: list[Tensor], leader: list[int | None], order: list[int]) -> tuple[int, ...]:
        """What the body computes for some leaves, called by their places in `order`; all others are strangers. The body
        is read once, and its variables renamed."""
        place = {k: i for i, k in enumerate(order)}
        acc = [x if own is None else self.variable(("leader", own), x) for own, x in zip(leader, start, strict=True)]
        names = {
            x.id: self.variable(place.get(own, ("unread", own)), x).id
            for own, x in zip(leader, acc, strict=True)
            if own is not None
        }
        found = self.body_on(acc)
        return self.reading.terms.renamed(tuple(found[k].id for k in order), names)

    # ------------------------------------------------------------------------------------------------ parts

    def leaders(self, start: list[Tensor]) -> list[int | None]:
        """For every leaf the first one that it always equals, itself included; None if it never changes."""
        laws = self.reading.laws
        same = SAME in laws
        if self.groups is None:
            group = [k if not same else [x.id for x in start].index(start[k].id) for k in range(len(start))]
            self.groups = ({k for k in range(len(start)) if INVARIANT in laws}, group)
        while True:
            fixed, group = self.groups
            leader = [None if k in fixed else g for k, g in enumerate(group)]
            if not same and not fixed:
                return leader
            acc = [
                x if own is None else self.variable(("leader", own), x) for own, x in zip(leader, start, strict=True)
            ]
            after = [x.id for x in self.body_on(acc)]
            still = {k for k in fixed if after[k] == start[k].id}
            split = _refined(group, after, still) if same else group
            if (still, split) == (fixed, group):
                return leader
            self.groups = still, split

    def order(self, start: list[Tensor], leader: list[int | None], own: int, fixed: list[int]) -> list[int]:
        """The leaves that one depends on, itself first, in the order in which their terms come upon them."""
        acc = [x if own is None else self.variable(("leader", own), x) for own, x in zip(leader, start, strict=True)]
        results = self.body_on(acc)
        number = {x.id: leader[k] for k, x in enumerate(acc) if k not in fixed}
        order = [own]
        for k in order:
            met = (number[t] for t in self.reading.terms.under(results[k]) if t in number)
            order += [m for m in dict.fromkeys(met) if m is not None and m not in order]
        return order


def _refined(group: list[int], after: list[int], fixed: set[int]) -> list[int]:
    """The groups, apart where the body computes different terms or what never changes is left."""
    keys = [(g, after[k], k in fixed) for k, g in enumerate(group)]
    return [keys.index(key) for key in keys]


def _filled(like: Value, tensors: list[Tensor]) -> Value:
    """A value of the same form with these leaves."""
    rest = iter(tensors)
    return map_leaves(lambda _: next(rest), like)
