"""Terms of a sum that have a factor in common, however far apart they stand: `a · x + y + b · x` is also the sum in
which they come first, where the rules of the e-graph make one product of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from presk_rel.egraph.closure import Closure
from presk_rel.egraph.language import Terms
from presk_rel.egraph.proof import TermId
from presk_rel.egraph.sums import Reader, Sums, Writer

WIDEST = 12
"""Terms of a sum that is looked at."""

_CONTRACTIONS = ("dot", "dot_vjp_l", "dot_vjp_r", "ein")


def grouped(terms: Terms, closure: Closure, sums: Sums, leaves: list[TermId]) -> None:
    """Add to `sums`, with its proof, what each sum of a program is with the largest group of its terms that have a
    common factor in front."""
    reader = Reader(terms)
    for t in reader.roots(terms.reachable(*leaves, *sums.instead.values())):
        if not reader.ordered(t) or t in sums.instead or not 3 <= len(reader.parts(t)) <= WIDEST:
            continue
        group = _group(terms, list(reader.parts(t)))
        if len(group) < 2 or _together(terms, reader, t, group):
            continue
        writer = Writer(terms, closure, reader, partial(_rank, group))
        normal = writer.normal(t)
        if normal is None:
            break
        sums.equal.append((t, normal))


def _rank(first: frozenset[TermId], term: TermId) -> tuple[int, int]:
    return (int(term not in first), term)


def _group(terms: Terms, parts: list[TermId]) -> frozenset[TermId]:
    """The most parts that have a factor in common; of equally many, the first."""
    having: dict[tuple[object, ...], list[TermId]] = {}
    for p in parts:
        for key in _factors(terms, p):
            having.setdefault(key, []).append(p)
    return frozenset(max(having.values(), key=len, default=list[TermId]()))


def _factors(terms: Terms, term: TermId) -> Iterator[tuple[object, ...]]:
    """What may be taken out of a term: a factor of a product, the other operand of a contraction, a denominator."""
    head, args = terms.op(term), terms.args[term]
    if head.op == "mul":
        yield from (("mul", a) for a in dict.fromkeys(args))
    elif head.op == "div":
        yield "div", args[1]
    elif head.op in _CONTRACTIONS and len(args) == 2:
        yield from ((head.op, head.attrs, place, a) for place, a in enumerate(args))


def _together(terms: Terms, reader: Reader, root: TermId, group: frozenset[TermId]) -> bool:
    """Whether all of a group are the terms of a sum inside the sum already."""
    stack = [root]
    while stack:
        t = stack.pop()
        if group == reader.parts(t).keys():
            return True
        stack += [a for a in terms.args[t] if reader.is_sum(a)]
    return False
