"""Where the leaves of parameter trees lie: one after the other in one flat buffer, as the executors keep them.

Tensors at equal distances in one buffer are a stack already: `stack_params` of such leaves is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from presk_rel.core.ir import Attr, Function, Prim, Var
from presk_rel.elab.ty import Axis, Instance, ModuleDef, Params, Real, Shape, Stacked, Type, field_types
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


@dataclass(slots=True)
class Layout:
    """Where the fields of the trees of a program lie. Each tree's fields are counted once."""

    modules: dict[str, ModuleDef]
    entries: Entries
    _known: dict[Instance, dict[str, tuple[int, Type]]] = field(
        default_factory=dict[Instance, dict[str, tuple[int, Type]]]
    )

    def offset(self, place: Place) -> tuple[int, int] | None:
        """Where a tensor of a tree starts in the tree's buffer, and its entries; None for what is no tensor of a
        tree."""
        if not isinstance(place.type, Params):
            return None
        found = self._offset(place.type, place.way)
        return None if found is None else (found.tree + found.leaf, found.entries)

    def lies(self, places: Iterable[Place | None]) -> bool:
        """Whether tensors lie at equal distances, in this order."""
        known: list[tuple[object, int, int]] = []
        for place in places:
            at = None if place is None else self.offset(place)
            if place is None or at is None:
                return False
            known.append((place.root, *at))
        return distance(known) is not None

    def _fields(self, instance: Instance) -> dict[str, tuple[int, Type]]:
        """The entries before each field, and its type."""
        if instance not in self._known:
            before = 0
            found: dict[str, tuple[int, Type]] = {}
            for name, ty in field_types(self.modules, instance).items():
                found[name] = (before, ty)
                before += self.entries(ty)
            self._known[instance] = found
        return self._known[instance]

    def _offset(self, ty: Type, way: tuple[Step, ...]) -> _Offset | None:
        if not way:
            return _Offset(0, 0, self.entries(ty), self.entries(ty)) if isinstance(ty, Real) else None
        (op, which), rest = way[0], way[1:]
        match ty:
            case Real(Shape(None, axes)) if op == "slice_params" and axes:
                return self._sliced(axes[0].length, Real(Shape(None, axes[1:])), which, rest)
            case Params(Stacked(count, inner)) if op == "slice_params":
                return self._sliced(count, Params(inner), which, rest)
            case Params(instance) if op == "field" and str(which) in self._fields(instance):
                before, part = self._fields(instance)[str(which)]
                found = self._offset(part, rest)
                return None if found is None else replace(found, tree=before + found.tree)
            case _:
                return None

    def _sliced(self, count: Linear, ty: Type, index: Attr, way: tuple[Step, ...]) -> _Offset | None:
        """In slice `index` of a stack, each leaf of which is a stack."""
        found = self._offset(ty, way)
        if found is None:
            return None
        times = self.entries(Real(Shape(None, (Axis(None, count),))))
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
    layout = Layout(modules, entries)
    places: dict[Var, Place] = {p.name: Place(p.name, p.type) for p in function.params}
    found: set[Var] = set()
    for b in function.bindings:
        if not isinstance(b.op, Prim):
            continue
        if b.op.op in WAYS and b.op.args[0] in places:
            inner = places[b.op.args[0]].inside(b.op.op, b.op.attrs, b.type)
            places |= {b.name: inner} if inner is not None else {}
        elif b.op.op == "stack_params" and layout.lies([places.get(v) for v in b.op.args]):
            found.add(b.name)
    return frozenset(found)
