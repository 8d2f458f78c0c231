"""The state of one reverse sweep, and what it may ask of the differentiation it is part of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from presk_rel.ad.builder import Builder
from presk_rel.ad.known import Known
from presk_rel.ad.tangent import has_tangent
from presk_rel.core.ir import Function, Var
from presk_rel.core.shapes import tangent
from presk_rel.diagnostics import Diagnostic


class Writer(Protocol):
    """A differentiation under way."""

    def function(self, name: str) -> Function:
        """A function of the program."""
        ...

    def vjp(self, primal: str) -> str:
        """The name of the `.vjp` of a function, which is written if it is not yet."""
        ...

    def jvp(self, primal: str, active: tuple[int, ...]) -> str:
        """The name of the `.jvp` of a function for tangents of these parameters, which is written if it is not yet."""
        ...

    def helper(self, name: str, primal: str, write: Callable[[str], Function]) -> str:
        """The function that `write` makes, written once for each `name` asked for; what it is called."""
        ...


@dataclass(slots=True)
class Sweep:
    """The state of one reverse sweep: `cts` are the cotangents so far, `at` the binding of the primal whose adjoint is
    being written, `origin` the binding that a copy is of or that the call of a `.vjp` is the adjoint of."""

    primal: str
    b: Builder
    writer: Writer
    refusals: list[Diagnostic]
    known: dict[Var, Known]
    cts: dict[Var, Var]
    origin: dict[Var, Var]
    at: Var = ""

    def add(self, v: Var, ct: Var) -> None:
        """Accumulate a cotangent of `v`."""
        old = self.cts.get(v)
        ty = tangent(self.b.types[v])
        self.cts[v] = ct if old is None else self.b.prim("add", ty, old, ct)

    def refuse(self, why: str, hint: str | None = None) -> None:
        """E6002 at the binding at hand."""
        self.refusals.append(Diagnostic("E6002", why, self.b.span, help=hint))


def wrt(function: Function) -> tuple[int, ...]:
    """The parameters whose cotangents `.vjp` returns, before pruning."""
    return tuple(i for i, p in enumerate(function.params) if has_tangent(p.type))
