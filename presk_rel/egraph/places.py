"""Where the leaves of parameter trees lie: one after the other in one flat buffer, as the executors keep them.

Tensors at equal distances in one buffer are a stack already: `stack_params` of such leaves is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from presk_rel.core.ir import Attr, Function, Prim, Var
from presk_rel.elab.ty import Axis, ModuleDef, Params, Real, Shape, Stacked, Type, field_names, field_type
from presk_rel.smt.linear import Linear

Entries = Callable[[Type], int]
"""The number of entries of a value."""

Step = tuple[str, Attr]
"""A way into a tree: `field` or `slice_params`, and which."""

WAYS = ("field", "proj", "slice_params")


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a parameter of type `type`, and the way to it."""

    root: object
    type: Type
    way: tuple[Step, ...] = ()

    def inside(self, op: str, attrs: tuple[Attr, ...], ty: Type) -> Place | None:
        """The place of a part of what lies here; None for what is no part. Each part of a tuple is a root of its
        own."""
        if op == "proj":
            return Place((self.root, self.way, str(attrs[0])), ty)
        return Place(self.root, self.type, (*self.way, (op, attrs[0]))) if op in WAYS else None


@dataclass(frozen=True, slots=True)
class _Offset:
    """Entries before the leaf in its tree, those before the part in its leaf, those of the part and of the leaf."""

    tree: int
    leaf: int
    entries: int
    leaf_entries: int


def offset(place: Place, modules: dict[str, ModuleDef], entries: Entries) -> tuple[int, int] | None:
    """Where a tensor of a tree starts in the tree's buffer, and its entries; None for what is no tensor of a tree."""
    if not isinstance(place.type, Params):
        return None
    found = _offset(place.type, place.way, modules, entries)
    return None if found is None else (found.tree + found.leaf, found.entries)


def _offset(ty: Type, way: tuple[Step, ...], modules: dict[str, ModuleDef], entries: Entries) -> _Offset | None:
    if not way:
        return _Offset(0, 0, entries(ty), entries(ty)) if isinstance(ty, Real) else None
    (op, which), rest = way[0], way[1:]
    match ty:
        case Real(Shape(None, axes)) if op == "slice_params" and axes:
            return _sliced(axes[0].length, Real(Shape(None, axes[1:])), which, rest, modules, entries)
        case Params(Stacked(count, inner)) if op == "slice_params":
            return _sliced(count, Params(inner), which, rest, modules, entries)
        case Params(instance) if op == "field":
            before = 0
            for field in field_names(modules, instance):
                part = field_type(modules, instance, field)
                if part is None or field == which:
                    found = None if part is None else _offset(part, rest, modules, entries)
                    return None if found is None else replace(found, tree=before + found.tree)
                before += entries(part)
            return None
        case _:
            return None


def _sliced(
    count: Linear, ty: Type, index: Attr, way: tuple[Step, ...], modules: dict[str, ModuleDef], entries: Entries
) -> _Offset | None:
    """In slice `index` of a stack, each leaf of which is a stack."""
    found = _offset(ty, way, modules, entries)
    if found is None:
        return None
    times = entries(Real(Shape(None, (Axis(None, count),))))
    size = found.leaf_entries
    return _Offset(times * found.tree, found.leaf + _number(index) * size, found.entries, times * size)


def _number(index: Attr) -> int:
    return int(index.const) if isinstance(index, Linear) else int(str(index))


def distance(places: Sequence[tuple[object, int, int]]) -> int | None:
    """How far apart tensors (buffer, start, entries) lie that lie at equal distances in one buffer, in this order."""
    if len({(root, n) for root, _, n in places}) != 1:
        return None
    gaps = {b[1] - a[1] for a, b in pairwise(places)}
    found = gaps.pop() if gaps else None
    return found if found is not None and not gaps and found >= places[0][2] else None


def lying_stacks(function: Function, modules: dict[str, ModuleDef], entries: Entries) -> frozenset[Var]:
    """The bindings that stack tensors which lie so already."""
    if not any(isinstance(b.op, Prim) and b.op.op == "stack_params" for b in function.bindings):
        return frozenset()
    places: dict[Var, Place] = {p.name: Place(p.name, p.type) for p in function.params}
    found: set[Var] = set()
    for b in function.bindings:
        if not isinstance(b.op, Prim):
            continue
        if b.op.op in WAYS and b.op.args[0] in places:
            inner = places[b.op.args[0]].inside(b.op.op, b.op.attrs, b.type)
            places |= {b.name: inner} if inner is not None else {}
        elif b.op.op == "stack_params" and lies([places.get(v) for v in b.op.args], modules, entries):
            found.add(b.name)
    return frozenset(found)


def lies(places: Iterable[Place | None], modules: dict[str, ModuleDef], entries: Entries) -> bool:
    """Whether tensors lie at equal distances, in this order."""
    known: list[tuple[object, int, int]] = []
    for place in places:
        at = None if place is None else offset(place, modules, entries)
        if place is None or at is None:
            return False
        known.append((place.root, *at))
    return distance(known) is not None
