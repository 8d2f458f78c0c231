"""Which operation of Core is a given sum of products of one or two factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from presk_rel.core.ir import Attr
from presk_rel.egraph.contract.products import Label, Labels, product_of
from presk_rel.egraph.language import Head
from presk_rel.egraph.op_types import TypeId, TypeTable
from presk_rel.elab.ty import Axis, Real

PAIRS: tuple[tuple[str, bool], ...] = (
    ("mul", False),
    ("dot", False),
    ("dot", True),
    ("dot_vjp_l", False),
    ("dot_vjp_l", True),
    ("dot_vjp_r", False),
    ("dot_vjp_r", True),
)
"""What a product of two factors may be, and whether they change places."""


@dataclass(frozen=True, slots=True)
class Factor:
    type: TypeId
    labels: Labels


@dataclass(frozen=True, slots=True)
class Wanted:
    """The labels of a result, in the order of `labels`; in any order where `type` is None: then it is inferred."""

    labels: Labels
    type: TypeId | None


def axes_of(table: TypeTable, ty: TypeId) -> tuple[Axis, ...]:
    """The axes of a tensor of reals."""
    found = table.types[ty]
    assert isinstance(found, Real)
    return found.shape.axes


def operation(table: TypeTable, factors: Sequence[Factor], wanted: Wanted) -> tuple[Head, bool] | None:
    """The operation that is no `ein`, and whether two factors change places; None where there is none."""
    for op, attrs, turned in _candidates(table, factors, wanted):
        given = factors[::-1] if turned else factors
        found = _type(table, op, attrs, given, wanted)
        if found is not None:
            return Head(op, attrs, found), turned
    return None


def _candidates(
    table: TypeTable, factors: Sequence[Factor], wanted: Wanted
) -> Iterator[tuple[str, tuple[Attr, ...], bool]]:
    if len(factors) == 2:
        yield from ((op, (), turned) for op, turned in PAIRS)
    if len(factors) != 1:
        return
    names = [x.name for x in axes_of(table, factors[0].type)]
    gone = [names[i] for i, a in enumerate(factors[0].labels) if a not in wanted.labels]
    if len(gone) == 1 and gone[0] is not None and names.count(gone[0]) == 1:
        yield "sum", (gone[0],), False
    if not wanted.labels:
        yield "sum", (), False


def _type(
    table: TypeTable, op: str, attrs: tuple[Attr, ...], factors: Sequence[Factor], wanted: Wanted
) -> TypeId | None:
    """The type of an operation on the factors, if it is the product, and may have the type that is wanted."""
    types = tuple(f.type for f in factors)
    product = product_of(op, attrs, tuple(table.types[t] for t in types))
    there = placed(product.factors, factors) if product is not None else None
    if product is None or there is None:
        return None
    result = tuple(there[a] for a in product.result)
    if wanted.type is None:
        found = table.infer(op, attrs, types) if set(result) == set(wanted.labels) else None
    else:
        found = wanted.type if result == wanted.labels else None
    if found is None or not table.fits(op, attrs, types, found):
        return None
    names = [x.name for x in axes_of(table, found) if x.name is not None]
    return found if len(set(names)) == len(names) else None


def placed(own: Sequence[Labels], factors: Sequence[Factor]) -> dict[Label, Label] | None:
    """The labels of the factors for those of an operation's operands; None where these are not alike."""
    there: dict[Label, Label] = {}
    for labels, factor in zip(own, factors, strict=True):
        if any(there.setdefault(a, b) != b for a, b in zip(labels, factor.labels, strict=True)):
            return None
    return there if len(set(there.values())) == len(there) else None
