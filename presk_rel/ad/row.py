"""What a row of the derivative table is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from presk_rel.ad.builder import Builder
from presk_rel.core.ir import Attr, Var
from presk_rel.diagnostics import PreskBug


@dataclass(frozen=True, slots=True)
class Site:
    """A binding `result = op attrs args` of the forward copy, and the cotangent `ct` of its result."""

    attrs: tuple[Attr, ...]
    args: tuple[Var, ...]
    result: Var
    ct: Var


Rule = Callable[[Builder, Site, int], Var]
"""Emits the cotangent of operand i, of the tangent type of that operand; called only for operands that have one."""


@dataclass(frozen=True, slots=True)
class Flat:
    """No cotangent flows to this real operand: the derivative is zero (almost everywhere), or only its type is read."""

    reason: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Not differentiable here: the operand is no real number (a key, a hyperparameter, an index)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Point:
    """A binding `result = op attrs args` of the forward copy, and the tangents of its operands: None where it is zero,
    where the operand is `Flat`, and where it has none. Not all are None."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[Var, ...]
    result: Var
    tangents: tuple[Var | None, ...]


Forward = Callable[[Builder, Point], Var]
"""Emits the tangent of the result, of the tangent type of the result."""


def constant(b: Builder, p: Point) -> Var:
    """Never called: no operand of the primitive has a tangent that says anything."""
    raise PreskBug("ad", f"{p.op} has a tangent")


@dataclass(frozen=True, slots=True)
class Row:
    """The derivative of one primitive: a reverse rule per operand, the last one repeated for the operands after it, and
    the forward rule (rules that many share are in `ad.forward`)."""

    name: str
    operands: tuple[Rule | Flat | Opaque, ...] = ()
    forward: Forward = constant

    def operand(self, i: int) -> Rule | Flat | Opaque:
        return self.operands[min(i, len(self.operands) - 1)]
