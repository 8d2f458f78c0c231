"""Samples and batches: the type of a sample, and matching it with that of a data file (spec: "The training run block
against its objective")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from presk_rel.diagnostics.record import mutable
from presk_rel.elab.ty import Axis, Idx, Mask, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, constant

BATCH = "batch"
"""The name of the axis that counts the samples of a batch."""

Tensor = Real | Idx | Mask


def leaves(ty: Type, path: str = "") -> Iterator[tuple[str, Type]]:
    """What is no tuple in `ty`, with its path: `0`, `1.0`; the empty one of what is no tuple itself."""
    if not isinstance(ty, TupleOf):
        yield path, ty
        return
    for i, item in enumerate(ty.items):
        yield from leaves(item, f"{path}.{i}" if path else str(i))


def not_a_batch(ty: Type) -> str | None:
    """Why `ty` is no batch: what is wrong with one of its leaves."""
    for path, leaf in leaves(ty):
        where = f"component {path} of the batch, {leaf}," if path else f"the batch, {leaf},"
        if not isinstance(leaf, Real | Idx | Mask):
            return f"{where} is no tensor"
        if leaf.shape.prefix is not None:
            return f"{where} has leading axes that are not known"
        if all(axis.name != BATCH for axis in leaf.shape.axes):
            return f"{where} has no axis named batch"
    return None


def sample_of(ty: Type) -> Type:
    """A batch without its axis `batch`."""
    match ty:
        case TupleOf(items):
            return TupleOf(tuple(sample_of(item) for item in items))
        case Real(shape):
            return Real(_without(shape))
        case Mask(shape):
            return Mask(_without(shape))
        case Idx(bound, shape):
            return Idx(bound, _without(shape))
        case _:
            return ty


def _without(shape: Shape) -> Shape:
    return Shape(shape.prefix, tuple(axis for axis in shape.axes if axis.name != BATCH))


def batch_lengths(ty: Type) -> Iterator[Linear]:
    """The length of the axis `batch` of each leaf."""
    for _, leaf in leaves(ty):
        if isinstance(leaf, Real | Idx | Mask):
            yield from (axis.length for axis in leaf.shape.axes if axis.name == BATCH)


@mutable
class Matching:
    """Dimensions bound to numbers one after the other. `waiting`: equations of several dimensions not yet known."""

    values: dict[str, int] = field(default_factory=dict[str, int])
    waiting: list[tuple[Linear, int]] = field(default_factory=list[tuple[Linear, int]])

    def now(self, form: Linear) -> Linear:
        return form.substitute({name: constant(value) for name, value in self.values.items()})

    def equal(self, form: Linear, number: int) -> bool:
        """Whether `form` can be `number`, which binds its dimension if that is the only one left."""
        known = self.now(form)
        if len(known.terms) > 1:
            self.waiting.append((form, number))
            return True
        if known.is_constant:
            return known.const == number
        (name,) = known.symbols
        value = (number - known.const) / known.coefficient(name)
        if value.denominator != 1 or value < 0:
            return False
        self.values[name] = int(value)
        again, self.waiting = self.waiting, []
        return all(self.equal(f, n) for f, n in again)

    def match(self, ours: Type, theirs: Type, path: str = "") -> str | None:
        """What keeps samples of the type `theirs`, which has numbers only, from being of the type `ours`: the axis or
        the component."""
        if isinstance(ours, TupleOf) and isinstance(theirs, TupleOf) and len(ours.items) == len(theirs.items):
            pairs = enumerate(zip(ours.items, theirs.items, strict=True))
            found = (self.match(a, b, f"{path}.{i}" if path else str(i)) for i, (a, b) in pairs)
            return next((problem for problem in found if problem is not None), None)
        of = f" of component {path}" if path else ""
        if isinstance(ours, Idx) and isinstance(theirs, Idx):
            return self._axes(ours.shape, theirs.shape, of) or self._bound(ours.bound, theirs.bound, of)
        if isinstance(ours, Real | Mask) and isinstance(theirs, Real | Mask) and type(ours) is type(theirs):
            return self._axes(ours.shape, theirs.shape, of)
        return f"component {path} is {theirs}, not {ours}" if path else "they are different kinds of values"

    def _axes(self, ours: Shape, theirs: Shape, of: str) -> str | None:
        if len(ours.axes) != len(theirs.axes):
            return f"the number of axes{of} is {len(theirs.axes)}, not {len(ours.axes)}"
        for i, (a, b) in enumerate(zip(ours.axes, theirs.axes, strict=True)):
            problem = self._axis(i, a, b)
            if problem is not None:
                return problem.format(of)
        return None

    def _axis(self, index: int, ours: Axis, theirs: Axis) -> str | None:
        name = f"`{ours.name}`" if ours.name else f"{index}"
        if ours.name is not None and theirs.name is not None and ours.name != theirs.name:
            return f"the axis {name}{{}} is called `{theirs.name}` in the file"
        number = int(theirs.length.const)
        if not self.equal(ours.length, number):
            return f"the axis {name}{{}} has length {number} in the file, not {self._said(ours.length)}"
        return None

    def _bound(self, ours: Linear, theirs: Linear, of: str) -> str | None:
        """Samples of a smaller vocabulary are valid samples of a larger one."""
        known, number = self.now(ours), int(theirs.const)
        fits = known.const >= number if known.is_constant else self.equal(ours, number)
        return None if fits else f"the index bound{of} is {number} in the file, beyond {self._said(ours)}"

    def _said(self, form: Linear) -> str:
        now = self.now(form)
        return str(form) if now == form else f"{form} = {now}"
