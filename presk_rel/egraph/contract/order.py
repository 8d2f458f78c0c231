"""The cheapest order of a sum of products: dynamic programming over sets of factors.

A product over shared axes, at every entry of others that both have (the rows of x with those of y), is no product of
matrices. Libraries are slow at it, up to eighty times as slow as at a product that is written and then summed: so that
is what it is here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from presk_rel.egraph.contract.price import Price, paired, summed
from presk_rel.egraph.contract.products import Label, Labels


@dataclass(frozen=True, slots=True)
class Leaf:
    """A factor, without the axes that nothing else has."""

    factor: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Pair:
    """The product of two parts, with the labels that are read further on."""

    left: Order
    right: Order
    labels: Labels


@dataclass(frozen=True, slots=True)
class Sum:
    """A part summed down to some of its labels."""

    part: Order
    labels: Labels


Order = Leaf | Pair | Sum


@dataclass(frozen=True, slots=True)
class Plan:
    price: Price
    units: int
    order: Order


def cheapest(
    factors: tuple[Labels, ...], result: Labels, length: Callable[[Label], int], units: Callable[[Price], int]
) -> Plan:
    """The order that costs least; of equals, that of the factors."""
    every = range(len(factors))
    best: dict[int, Plan] = {}
    whole = (1 << len(factors)) - 1
    for part in range(1, whole + 1):
        inside = [i for i in every if part >> i & 1]
        read = set(result).union(*(factors[i] for i in every if not part >> i & 1))
        if len(inside) == 1:
            price, labels = summed(factors[inside[0]], read, length)
            best[part] = Plan(price, units(price), Leaf(inside[0], labels))
            continue
        splits = (s for s in range(1, part) if s & part == s and s >> inside[0] & 1)
        best[part] = min((_joined(best[s], best[part ^ s], read, length, units) for s in splits), key=_cost)
    return best[whole]


def _cost(plan: Plan) -> int:
    return plan.units


def _joined(x: Plan, y: Plan, read: set[Label], length: Callable[[Label], int], units: Callable[[Price], int]) -> Plan:
    """Two parts as one. An axis that both have and nothing else reads is summed here."""
    left, right = x.order.labels, y.order.labels
    own = read.union(left) if _of_rows(left, right, read) else read
    price, labels = paired(left, right, own, length)
    order: Order = Pair(x.order, y.order, labels)
    if own is not read:
        more, labels = summed(labels, read, length)
        price, order = price + more, Sum(order, labels)
    whole = x.price + y.price + price
    return Plan(whole, units(whole), order)


def _of_rows(left: Labels, right: Labels, read: set[Label]) -> bool:
    """Whether both have the same axes, and some of them, but not all, are summed."""
    return set(left) == set(right) and not read.isdisjoint(left) and not read.issuperset(left)
