"""Types as small numbers, equal types as equal ones: a type is hashed once, not once for every binding that has it."""

from __future__ import annotations

from presk_rel.elab.ty import Type


class TypeNumbers:
    """The types asked for must stay alive while this is used: they are known by their identity."""

    __slots__ = ("_by_identity", "_by_value")

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Type, int] = {}

    def __call__(self, ty: Type) -> int:
        known = self._by_identity.get(id(ty))
        if known is None:
            known = self._by_value.setdefault(ty, len(self._by_value))
            self._by_identity[id(ty)] = known
        return known
