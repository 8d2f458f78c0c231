"""How large types and instances are. Both share parts, so a short program can denote one that no pass could walk
(`type A = (B, B)`, sixty times): elaboration refuses it (E9002), so that every later pass may recurse over types."""

from __future__ import annotations

from dataclasses import field

from presk_rel.diagnostics.record import mutable, record
from presk_rel.elab.ty import Applied, Composed, Function, Instance, ModuleValue, Params, Stacked, TupleOf, Type

LARGEST = 1_000
"""Parts of a type or instance."""

DEEPEST = 100
"""Levels of a type or instance."""


@record
class Measure:
    parts: int
    levels: int

    @property
    def fits(self) -> bool:
        return self.parts <= LARGEST and self.levels <= DEEPEST


@mutable
class Measures:
    """Measures by identity. What is measured is kept alive, so that its identity stays its own. Built bottom-up: parts
    that do not fit are never parts of anything, so the recursion is bounded."""

    known: dict[int, tuple[object, Measure]] = field(default_factory=dict[int, tuple[object, Measure]])

    def of(self, it: Type | Instance) -> Measure:
        found = self.known.get(id(it))
        if found is None:
            found = self.known[id(it)] = (it, self._measure(it))
        return found[1]

    def _measure(self, it: Type | Instance) -> Measure:
        parts = [self.of(p) for p in parts_of(it)]
        return Measure(1 + sum(p.parts for p in parts), 1 + max((p.levels for p in parts), default=0))


def parts_of(it: Type | Instance) -> tuple[Type | Instance, ...]:
    """The types and instances directly inside."""
    match it:
        case TupleOf(items):
            return items
        case Function(params, result):
            return (*params, result)
        case Params(instance) | ModuleValue(instance):
            return (instance,)
        case Stacked(_, inner):
            return (inner,)
        case Composed(outer, inner):
            return (outer, inner)
        case Applied():
            return ()
        case _:
            return ()
