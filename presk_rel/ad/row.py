"""What a row of the derivative table is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from presk_rel.ad.builder import Builder
from presk_rel.core.ir import Attr, Var


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
class Row:
    """The derivative of one primitive: a rule per operand, the last one repeated for the operands after it."""

    name: str
    operands: tuple[Rule | Flat | Opaque, ...] = ()

    def operand(self, i: int) -> Rule | Flat | Opaque:
        return self.operands[min(i, len(self.operands) - 1)]
