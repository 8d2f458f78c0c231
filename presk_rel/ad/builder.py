"""Writes the body of one generated function, binding by binding, with the names the spec's excerpts have."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.ir import Attr, Binding, Op, Param, Prim, Var
from presk_rel.diagnostics import NOWHERE, Span
from presk_rel.elab.ty import SCALAR_REAL, ModuleDef, Type


class Builder:
    """A function body under construction. `types` holds every name bound so far, in order; a nameless binding is `%n`
    with n their number. `span` and `note` are the provenance of what is emitted next."""

    def __init__(self, modules: dict[str, ModuleDef]) -> None:
        self.modules = modules
        self.types: dict[Var, Type] = {}
        self.params: list[Param] = []
        self.bindings: list[Binding] = []
        self.span: Span = NOWHERE
        self.note: str | None = None

    def param(self, name: Var, ty: Type) -> Var:
        """Add a parameter; its name is kept unless it is taken."""
        fresh = self._fresh(name)
        self.types[fresh] = ty
        self.params.append(Param(fresh, ty))
        return fresh

    def emit(self, op: Op, ty: Type, name: Var = "") -> Var:
        """Bind `op`, under the user's `name` when it has one."""
        fresh = self._fresh(name)
        self.types[fresh] = ty
        self.bindings.append(Binding(fresh, ty, op, self.span, self.note))
        return fresh

    def prim(self, op: str, ty: Type, *args: Var, attrs: tuple[Attr, ...] = ()) -> Var:
        return self.emit(Prim(op, attrs, args), ty)

    def const(self, value: int) -> Var:
        """The exact number `value` as ℝ[]."""
        return self.prim("const", SCALAR_REAL, attrs=(Fraction(value),))

    def _fresh(self, name: Var) -> Var:
        base = name.partition("%")[0]
        return base if base and base not in self.types else f"{base}%{len(self.types)}"
