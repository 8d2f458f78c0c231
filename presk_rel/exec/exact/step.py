"""One primitive about to be executed, as its row sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from presk_rel.core.ir import Attr
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Idx, Mask, ModuleDef, Real, Shape, Type
from presk_rel.exec.exact.kernel import Kernel, Site
from presk_rel.exec.shapes import Env, axes, axis_index, length
from presk_rel.exec.values import (
    Array,
    HostReals,
    IndexTensor,
    KeyValue,
    MaskTensor,
    RunAxes,
    Tensor,
    Value,
    shape_of,
)

Draws: TypeAlias = Callable[[str, bytes, tuple[int, ...], Fraction | None], HostReals]


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive about to be executed: its operands' values and static types, the binding's type, and where."""

    kernel: Kernel
    modules: dict[str, ModuleDef]
    env: Env
    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Value, ...]
    types: tuple[Type, ...]
    type: Type
    site: Site
    draws: Draws

    @property
    def where(self) -> str:
        return self.site.full

    def data(self, i: int) -> Array:
        """The entries of operand i: reals, integers or booleans."""
        value = self.args[i]
        if not isinstance(value, Tensor | IndexTensor | MaskTensor):
            raise PreskBug("exec", f"operand {i} of {self.op} is a {type(value).__name__} in {self.where}")
        return value.data

    def run_shape(self, i: int) -> tuple[int, ...]:
        """The lengths of operand i, which may be without numbers."""
        value = self.args[i]
        if not isinstance(value, Tensor | IndexTensor | MaskTensor):
            raise PreskBug("exec", f"operand {i} of {self.op} is a {type(value).__name__} in {self.where}")
        return shape_of(value.axes)

    def key(self, i: int = 0) -> bytes:
        value = self.args[i]
        if not isinstance(value, KeyValue):
            raise PreskBug("exec", f"operand {i} of {self.op} is no key in {self.where}")
        return value.key

    def shape(self, i: int) -> Shape:
        return shape_in(self.types[i], self.where)

    def axis(self, i: int, place: Attr) -> int:
        """Where an axis of operand i is at run time: named, or by number among those after the prefix."""
        shape = self.shape(i)
        found = axis_index(shape, place, self.where) if isinstance(place, str) else int(rational_of(place))
        return self.env.rank(shape) + found

    def target(self) -> RunAxes:
        """The axes of the result."""
        return axes(shape_in(self.type, self.where), self.env, self.where, self.site.span)

    def result(self, data: Array) -> Tensor | IndexTensor | MaskTensor:
        """A tensor of the binding's type."""
        run = self.target()
        if data.shape != shape_of(run):
            raise PreskBug("exec", f"{self.op} made shape {data.shape} for {self.type} in {self.where}")
        match self.type:
            case Idx(bound):
                return IndexTensor(length(bound, self.env, self.where, self.site.span), run, data)
            case Mask():
                return MaskTensor(run, data)
            case _:
                return Tensor(run, data)


Row: TypeAlias = Callable[[Step], Value]


def shape_in(ty: Type, where: str) -> Shape:
    if not isinstance(ty, Real | Idx | Mask):
        raise PreskBug("exec", f"a tensor was expected, not {ty}, in {where}")
    return ty.shape


def rational_of(attr: Attr) -> Fraction | int:
    if isinstance(attr, Fraction | int):
        return attr
    raise PreskBug("exec", f"a number was expected, not {attr!r}")


def index_of(step: Step) -> int:
    return int(rational_of(step.attrs[0]))
