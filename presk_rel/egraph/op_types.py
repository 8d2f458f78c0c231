"""Types interned as small integers (the e-graph and the closure compare and store only those), and the typing rules of
Core memoized over them."""

from __future__ import annotations

from dataclasses import dataclass, field

from presk_rel.core.ir import Attr
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_types
from presk_rel.core.typing_rules import infer
from presk_rel.elab.ty import SCALAR_REAL, ModuleDef, Type

TypeId = int
_Use = tuple[str, tuple[Attr, ...], tuple[TypeId, ...], TypeId]


@dataclass(slots=True)
class TypeTable:
    """Interned types of one optimization."""

    modules: dict[str, ModuleDef]
    types: list[Type] = field(default_factory=list[Type])
    _ids: dict[Type, TypeId] = field(default_factory=dict[Type, TypeId])
    _seen: dict[int, tuple[Type, TypeId]] = field(default_factory=dict[int, tuple[Type, TypeId]])
    _fits: dict[_Use, bool] = field(default_factory=dict[_Use, bool])

    def __post_init__(self) -> None:
        self.intern(SCALAR_REAL)  # conditions bind it

    def intern(self, ty: Type) -> TypeId:
        seen = self._seen.get(id(ty))
        if seen is not None and seen[0] is ty:
            return seen[1]
        number = self._number(ty)
        self._seen[id(ty)] = (ty, number)
        return number

    def _number(self, ty: Type) -> TypeId:
        known = self._ids.get(ty)
        if known is None:
            known = self._ids[ty] = len(self.types)
            self.types.append(ty)
        return known

    def infer(self, op: str, attrs: tuple[Attr, ...], operands: tuple[TypeId, ...]) -> TypeId | None:
        """The type the rules give to an operation whose operands determine it; None where they refuse it."""
        found = infer(PRIMS[op], attrs, tuple(self.types[t] for t in operands), SCALAR_REAL, self.modules)
        return None if isinstance(found, str) else self.intern(found)

    def fits(self, op: str, attrs: tuple[Attr, ...], operands: tuple[TypeId, ...], declared: TypeId) -> bool:
        """Whether a binding of this operation may declare this type: it is the inferred one up to missing axis names.
        True for what is no primitive (folds, calls): nothing rewrites those."""
        if op not in PRIMS:
            return True
        use = (op, attrs, operands, declared)
        if use not in self._fits:
            self._fits[use] = self._check(use)
        return self._fits[use]

    def _check(self, use: _Use) -> bool:
        op, attrs, operands, declared = use
        ty = self.types[declared]
        found = infer(PRIMS[op], attrs, tuple(self.types[t] for t in operands), ty, self.modules)
        return not isinstance(found, str) and compatible_types(found, ty)
