"""Types as small numbers, equal types as equal ones: a type is hashed once, not once for every binding that has it, and
a tuple by the numbers of its items."""

from __future__ import annotations

from presk_rel.elab.ty import TupleOf, Type


class TypeNumbers:
    """Types are known by their identity, and stay alive as long as this."""

    __slots__ = ("_by_identity", "_by_value")

    def __init__(self) -> None:
        self._by_identity: dict[int, tuple[int, Type]] = {}
        self._by_value: dict[Type | tuple[int, ...], int] = {}

    def __call__(self, ty: Type) -> int:
        known = self._by_identity.get(id(ty))
        if known is None:
            key = tuple(map(self, ty.items)) if isinstance(ty, TupleOf) else ty
            known = (self._by_value.setdefault(key, len(self._by_value)), ty)
            self._by_identity[id(ty)] = known
        return known[0]
