"""What a row of the torch executor sees: its operands as names of generated code with static types and actual lengths.

How operands line up is decided on the static types (`elab.broadcast`), as everywhere; lengths are numbers by now, so
axis positions, sizes and counts are baked into the generated text. All names in an expression are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Literal, TypeAlias

from presk_rel.core.ir import Attr
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Idx, Key, Mask, Real, Shape, Type
from presk_rel.exec.shapes import Env, alignment, axes, axis_index, int_of
from presk_rel.exec.torch.precision import Types
from presk_rel.exec.torch.products import Products
from presk_rel.exec.values import RunAxes, shape_of
from presk_rel.smt.linear import Linear

INTERLEAVED = "interleaved"
"""The kind of a tensor of heads that lies in memory as the model's axis does: merging the heads is a view."""


@dataclass(frozen=True, slots=True)
class Made:
    """How an operand was made, which is what `fuse` looks through; `alone` where it has one reader."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Operand, ...]
    alone: bool


@dataclass(frozen=True, slots=True)
class Operand:
    """A generated name with its static type and its axes. `scalar` is the value of all its entries, where the
    generator knows it: an operation then takes a Python number. `scale` says that it is a multiple of another tensor
    of its shape. `kind` names a tensor that is known entirely."""

    name: str
    type: Type
    axes: RunAxes = ()
    scalar: Fraction | None = None
    scale: tuple[str, Fraction] | None = None
    kind: str = ""
    slices: tuple[tuple[int, str], ...] = ()
    """Of a stack that is 0 but for these slices, their numbers and names."""
    made: Made | None = field(default=None, compare=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        return shape_of(self.axes)

    @property
    def shape(self) -> Shape:
        return shape_in(self.type)

    @property
    def lead(self) -> int:
        """How many axes the prefix stands for."""
        return len(self.axes) - len(self.shape.axes)


def shape_in(ty: Type) -> Shape:
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape) | Key(shape):
            return shape
        case _:
            return Shape(None, ())


def run_axes(ty: Type, env: Env) -> RunAxes:
    """The axes of a leaf's type; none for a hyperparameter."""
    return axes(shape_in(ty), env, "the torch executor")


Reader = Literal["torch", "compiler", "machine"]
"""Who gets the code: torch as it stands, a compiler too, or a compiler (`machine`) for which it is written."""


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive about to be generated. `line` adds a line that computes an expression and gives its name; what
    reads no input is computed once, when the code is loaded."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Operand, ...]
    type: Type
    env: Env
    line: Callable[[str], str]
    types: Types
    known: dict[str, str] = field(default_factory=dict[str, str])
    """The name of each expression computed so far in this function, and of what calls computed along with others."""
    reader: Reader = "torch"

    @property
    def machine(self) -> bool:
        """Whether it is written for a compiler, which joins what stands apart: no call is then worth a copy of an
        operand."""
        return self.reader == "machine"

    @property
    def compiled(self) -> bool:
        """Whether a compiler reads it."""
        return self.reader != "torch"

    @property
    def products(self) -> Products:
        """What writes products of matrices."""
        return Products(self.line, self.types)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the result."""
        return shape_of(run_axes(self.type, self.env))

    @property
    def result_shape(self) -> Shape:
        return shape_in(self.type)

    def axis(self, i: int, place: Attr) -> int:
        """The position in operand i of an axis, given by name or by its number after the prefix."""
        shape = self.args[i].shape
        found = axis_index(shape, place, self.op) if isinstance(place, str) else place
        if not isinstance(found, int):
            raise PreskBug("torch", f"{self.op}: no axis {place}")
        return self.args[i].lead + found

    def axis_or_none(self, i: int) -> int | None:
        """The axis of an optional attribute `axis a`."""
        return self.axis(i, self.attrs[0]) if self.attrs else None

    def int(self, k: int) -> int:
        """Attribute k, a number or a dimension."""
        attr = self.attrs[k]
        if isinstance(attr, Linear):
            return int_of(attr, self.env, self.op)
        if not isinstance(attr, int):
            raise PreskBug("torch", f"{self.op}: {attr!r} is no integer")
        return attr

    def rational(self, k: int) -> Fraction:
        attr = self.attrs[k]
        if not isinstance(attr, Fraction | int):
            raise PreskBug("torch", f"{self.op}: {attr!r} is no number")
        return Fraction(attr)


Row: TypeAlias = Callable[[Step], "str | Operand"]
"""The expression that computes a primitive, or an operand that is its result already."""


def number(value: Fraction) -> str:
    """A Python literal of the nearest double; a magnitude beyond the doubles is an infinity."""
    try:
        return repr(float(value))
    except OverflowError:
        return 'float("inf")' if value > 0 else 'float("-inf")'


def entries(sizes: tuple[int, ...]) -> int:
    return prod(sizes)


def aligned(x: Operand, shape: Shape, sizes: tuple[int, ...]) -> str:
    """x viewed so that torch's trailing broadcasting against `sizes`, of static `shape`, is Presk's alignment."""
    if x.sizes == sizes and x.shape == shape:
        return x.name
    where = positions(x, shape, sizes)
    rank = len(sizes)
    if where == tuple(range(rank - len(where), rank)):
        return x.name
    order = sorted(range(len(where)), key=lambda k: where[k])
    text = x.name if order == list(range(len(where))) else f"{x.name}.permute({tuple(order)})"
    full = [1] * rank
    for k, i in enumerate(where):
        full[i] = x.sizes[k]
    return f"{text}.reshape({tuple(full)})"


def positions(x: Operand, shape: Shape, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """For each axis of x, its prefix's included, the axis of the larger tensor it lines up with."""
    lead = len(sizes) - len(shape.axes)
    where = alignment(x.shape, shape, "the torch executor")
    front = tuple(range(lead)) if x.shape.prefix is not None else ()
    return (*front, *(lead + i for i in where))
