"""A function body under random construction, and the types of its values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random

from presk_rel.core.ir import Attr, Binding, Op, Param, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.typing_rules import infer
from presk_rel.elab.ty import SCALAR_REAL, Applied, Idx, Key, Mask, Params, Real, TupleOf, Type
from presk_rel.smt.linear import constant, symbol
from tests.ad.programs import B, D, real

DIMS = {"B": 2, "D": 3}
SAME = tuple((d, symbol(d)) for d in DIMS)
X, V, W, R, S = real(("batch", B), ("model", D)), real(("model", D)), real(D, D), real(("batch", B)), SCALAR_REAL
LEAD, FRONT = real(("model", D), prefix="..."), real(prefix="...")
TWO = constant(2)
STACK = real(TWO, ("model", D))
LAYER, NET = Params(Applied("Linear", (D, D))), Params(Applied("MLP", (D, D)))
KEY, CHOICE, ALLOWED = Key(), Idx(D, R.shape), Mask(V.shape)
HEADS = real(("batch", B), ("seq", D), constant(4))
OTHER = [KEY, CHOICE, ALLOWED]
"""Types without a cotangent."""
PLAIN = [X, V, W, R, S, STACK, LAYER, NET, TupleOf((X, S)), TupleOf((LAYER, V))]
PLAIN += [HEADS, TupleOf((X, KEY)), TupleOf((V, CHOICE, ALLOWED))]
GENERIC = [LEAD, FRONT, V, W, S, LAYER, NET, TupleOf((LEAD, V))]


def _names_twice(ty: Type) -> bool:
    names = [a.name for a in ty.shape.axes if a.name is not None] if isinstance(ty, Real) else []
    return len(set(names)) < len(names)


class Body:
    """A function body under construction; every value made so far may be read again."""

    def __init__(self, rng: Random, program: Program, params: list[Param]) -> None:
        self.rng = rng
        self.program = program
        self.values: list[tuple[str, Type]] = [(p.name, p.type) for p in params]
        self.bindings: list[Binding] = []

    def emit(self, op: Op, ty: Type) -> str:
        name = f"%{len(self.values)}"
        self.bindings.append(Binding(name, ty, op))
        self.values.append((name, ty))
        return name

    def prim(self, op: str, *args: str, attrs: tuple[Attr, ...] = (), declared: Type = S) -> str | None:
        """The primitive on these values, where it has a type."""
        types = dict(self.values)
        ty = infer(PRIMS[op], attrs, tuple(types[a] for a in args), declared, self.program.modules)
        return None if isinstance(ty, str) or _names_twice(ty) else self.emit(Prim(op, attrs, args), ty)

    def const(self, c: int) -> str:
        return self.emit(Prim("const", (Fraction(c, 2),), ()), S)

    def some(self, wanted: Callable[[Type], bool]) -> str | None:
        found = [n for n, ty in self.values if wanted(ty)]
        return self.rng.choice(found) if found else None

    def real(self) -> str:
        return self.some(lambda t: isinstance(t, Real)) or self.const(3)

    def type(self, name: str) -> Type:
        return dict(self.values)[name]

    def positive(self) -> str:
        """1/2 + x²."""
        square = self.prim("pow", self.real(), attrs=(2,))
        assert square is not None
        return self.prim("add", self.const(1), square) or square
