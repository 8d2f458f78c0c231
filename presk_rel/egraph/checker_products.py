"""The checker's own reading of a side of a rule as one sum of products, and whether two such are the same.

A side becomes its factors, each with an axis number for each of its axes, and the numbers of the result's axes; what is
not of the result is summed. A sum inside a product is the product inside the sum, its axes being others than all else,
and a repetition along axes that some factor has is no factor at all. Shares no code with `egraph.contract`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from presk_rel.core.shapes import same
from presk_rel.egraph.checker_rules import Sexp, parts
from presk_rel.egraph.proof import Term
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Real

Axes = list[int]


@dataclass(slots=True)
class _Side:
    """What has been read: factors by the number of their term, and axes that something is repeated along."""

    terms: tuple[Term, ...]
    factors: list[tuple[int, Axes]] = field(default_factory=list[tuple[int, Axes]])
    repeated: set[int] = field(default_factory=set[int])
    fresh: count[int] = field(default_factory=count)

    def rank(self, index: int) -> int:
        ty = self.terms[index].type
        if not isinstance(ty, Real) or ty.shape.prefix is not None:
            raise ValueError(f"no tensor of known axes: {ty}")
        return len(ty.shape.axes)

    def axes(self, number: int) -> Axes:
        return [next(self.fresh) for _ in range(number)]

    def read(self, pattern: Sexp, index: int, result: Axes) -> None:
        """A part with these axes: a variable is a factor, an operation is read."""
        if self.rank(index) != len(result):
            raise ValueError("a part of another rank")
        if isinstance(pattern, str):
            self.factors.append((index, result))
            return
        term = self.terms[index]
        below = parts(pattern)[2]
        for (at, axes), sub in zip(self.operands(term, result), below, strict=False):
            self.read(sub, term.children[at], axes)

    def operands(self, term: Term, result: Axes) -> list[tuple[int, Axes]]:
        """The operands whose values are read, and their axes."""
        ranks = [self.rank(c) for c in term.children]
        match term.op, ranks:
            case "ein", _:
                return self.named(str(term.attrs[0]), result)
            case "mul", [m, n]:
                whole, small = (0, 1) if m >= n else (1, 0)
                there = self.aligned(term.children[small], term.children[whole])
                narrow = [result[k] for k in there]
                return [(0, result), (1, narrow)] if whole == 0 else [(0, narrow), (1, result)]
            case "sum", [n]:
                return [(0, self.widened(result, term, n))]
            case "sum_to", [n, _]:
                whole = self.axes(n)
                for axis, k in zip(result, self.aligned(term.children[1], term.children[0]), strict=True):
                    whole[k] = axis
                return [(0, whole)]
            case "broadcast_like", [_, _]:
                self.repeated.update(result)
                return [(0, self.narrowed(result, term))]
            case (("dot" | "dot_vjp_l" | "dot_vjp_r"), [m, n]):
                return list(enumerate(self.contracted(term.op, m, n, result)))
            case op, _:
                raise ValueError(f"{op} is no sum of products")

    def contracted(self, op: str, m: int, n: int, result: Axes) -> tuple[Axes, Axes]:
        if op == "dot":
            (k,) = self.axes(1)
            return [*result[: m - 1], k], [k, *result[m - 1 :]]
        if op == "dot_vjp_l":
            summed = self.axes(n - 1)
            return [*result[:-1], *summed], [result[-1], *summed]
        summed = self.axes(m - 1)
        return [*summed, result[0]], [*summed, *result[1:]]

    def named(self, text: str, result: Axes) -> list[tuple[int, Axes]]:
        left, _, right = text.partition("->")
        number = dict(zip(right.split(), result, strict=True))
        found: list[tuple[int, Axes]] = []
        for k, operand in enumerate(left.split(",")):
            for name in operand.split():
                if name not in number:
                    number[name] = next(self.fresh)
            found.append((k, [number[name] for name in operand.split()]))
        return found

    def aligned(self, small: int, large: int) -> tuple[int, ...]:
        inner, outer = self.terms[small].type, self.terms[large].type
        found = align(inner.shape, outer.shape, same) if isinstance(inner, Real) and isinstance(outer, Real) else None
        if found is None:
            raise ValueError("operands that do not line up")
        return found

    def place(self, name: object, index: int) -> int:
        ty = self.terms[index].type
        found = [k for k, a in enumerate(ty.shape.axes) if a.name == name] if isinstance(ty, Real) else []
        (only,) = found
        return only

    def widened(self, result: Axes, term: Term, rank: int) -> Axes:
        """The operand's axes of a sum of all entries, or along one axis."""
        if not term.attrs:
            return self.axes(rank)
        at = self.place(term.attrs[0], term.children[0])
        return [*result[:at], *self.axes(1), *result[at:]]

    def narrowed(self, result: Axes, term: Term) -> Axes:
        """The axes of what is repeated."""
        if not term.attrs:
            return [result[k] for k in self.aligned(term.children[0], term.children[1])]
        at = self.place(term.attrs[0], term.children[1])
        return [*result[:at], *result[at + 1 :]]


def same_products(terms: tuple[Term, ...], left: tuple[Sexp, int], right: tuple[Sexp, int]) -> bool:
    """Whether two sides, each a pattern and the number of its term, are one sum of products."""
    sides: list[_Side] = []
    ranks: list[int] = []
    for pattern, index in (left, right):
        side = _Side(terms)
        ranks.append(side.rank(index))
        result = side.axes(ranks[-1])
        side.read(pattern, index, result)
        if not {*result, *side.repeated} <= {a for _, axes in side.factors for a in axes}:
            return False
        sides.append(side)
    one, other = sides
    if ranks[0] != ranks[1] or len(one.factors) != len(other.factors):
        return False
    start = {k: k for k in range(ranks[0])}  # the result's axes are numbered first
    return _matched(one.factors, other.factors, start)


def _matched(left: list[tuple[int, Axes]], right: list[tuple[int, Axes]], known: Mapping[int, int]) -> bool:
    """Whether the factors pair off, with one axis for each axis. (There are few, and few of one term.)"""
    if not left:
        return True
    (term, axes), *rest = left
    for k, (other, there) in enumerate(right):
        if other != term:
            continue
        found = dict(known)
        agree = all(found.setdefault(a, b) == b for a, b in zip(axes, there, strict=True))
        if agree and len(set(found.values())) == len(found) and _matched(rest, [*right[:k], *right[k + 1 :]], found):
            return True
    return False
