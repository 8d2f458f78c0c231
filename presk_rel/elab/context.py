"""What elaboration knows so far: the state that its passes share, filled in the order of `elab.elaborate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeVar

from presk_rel.diagnostics import Diagnostics, Span
from presk_rel.diagnostics.record import mutable
from presk_rel.elab.declared import Declared, core_names, declarations
from presk_rel.elab.measure import DEEPEST, LARGEST, Measures
from presk_rel.elab.names_protocol import Resolver
from presk_rel.elab.ty import Instance, ModuleDef, Type
from presk_rel.facts.ast_facts import decl_id
from presk_rel.smt.linear import Linear
from presk_rel.smt.solver import Solver
from presk_rel.syntax import ast

BUILTIN = "builtin:"

T = TypeVar("T", bound="Type | Instance")


@mutable
class Elab:
    """`files` in order of dependency, imports first. Tables map declaration ids to what was made of them; None stands
    for a declaration with an error that has been reported, so that its uses stay silent."""

    files: Sequence[ast.File]
    main: str
    names: Resolver
    diagnostics: Diagnostics
    declared: dict[str, Declared] = field(default_factory=dict[str, Declared])
    core: dict[str, str] = field(default_factory=dict[str, str])
    solver: Solver = field(default_factory=Solver)
    constants: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    bounds: list[tuple[str, Linear]] = field(default_factory=list[tuple[str, Linear]])
    aliases: dict[str, Type | None] = field(default_factory=dict[str, "Type | None"])
    models: dict[str, Instance | None] = field(default_factory=dict[str, "Instance | None"])
    modules: dict[str, ModuleDef] = field(default_factory=dict[str, ModuleDef])
    nodes: dict[str, ast.Module] = field(default_factory=dict[str, ast.Module])
    """The syntax of each module, by Core name."""
    broken_modules: set[str] = field(default_factory=set[str])
    """Core names of modules that have no parameter tree, because they include themselves."""
    incomplete: set[str] = field(default_factory=set[str])
    """Core names of modules with a field that has an error: what they seem to lack may only be broken."""
    module_params: dict[str, Instance | None] = field(default_factory=dict[str, "Instance | None"])
    """Module-typed parameters of functions, by declaration id."""
    _constants_of: dict[str, list[Declared]] | None = None
    measures: Measures = field(default_factory=Measures)
    hidden: frozenset[str] = frozenset()
    """Names of file dims that a type parameter of the same name must not capture; see `symbol_of`."""
    suffixed: dict[str, str] = field(default_factory=dict[str, str])
    """The names of type parameters by their symbols, where these differ."""
    implicit: frozenset[str] = frozenset()
    """Ids of implicit dimensions (W0001)."""

    def __post_init__(self) -> None:
        self.declared = declarations(self.files)
        self.core = core_names(self.files, self.main)
        self.implicit = frozenset(d.decl for d in self.names.implicit)
        for d in self.declared.values():
            if isinstance(d.node, ast.Module):
                self.nodes[self.core[d.id]] = d.node

    def target(self, path: ast.Expr) -> Declared | str | None:
        """What a path (`Name`, or `Field`s over one) means: a declaration, `builtin:x`, or None when that is no
        declaration of a file (unresolved, a local binder, an implicit dimension, or no path at all)."""
        span = path.span if isinstance(path, ast.Name) else path.name.span if isinstance(path, ast.Field) else None
        found = None if span is None else self.names.resolve(span)
        if found is None or found.startswith(BUILTIN):
            return found
        return self.declared.get(found)

    def fitting(self, it: T, span: Span) -> T | None:
        """A type or instance, or None after E9002 if it is too large for any pass to walk."""
        if self.measures.of(it).fits:
            return it
        message = f"types of more than {LARGEST} parts or {DEEPEST} levels are not supported by this version"
        return self.error("E9002", message, span)

    def constants_of(self, file: str) -> list[Declared]:
        """The constants that a file declares, in order."""
        if self._constants_of is None:
            self._constants_of = {}
            for d in self.declared.values():
                if isinstance(d.node, ast.Const):
                    self._constants_of.setdefault(d.file, []).append(d)
        return self._constants_of.get(file, [])

    def unresolved(self, path: ast.Expr) -> bool:
        """Is `path` a use of a name that means nothing (which the pass over names reports)?"""
        base = path
        while isinstance(base, ast.Field):
            base = base.base
        if not isinstance(base, ast.Name):
            return False
        base_id = self.names.resolve(base.span)
        if base_id is None:
            return True
        declared = self.declared.get(base_id)
        over_import = isinstance(path, ast.Field) and declared is not None and isinstance(declared.node, ast.Import)
        return over_import and isinstance(path, ast.Field) and self.names.resolve(path.name.span) is None

    def symbol_of(self, declared: Declared) -> str:
        """The symbol of a dim or type parameter: its name. A type parameter gets a suffix where a file dim of its name
        is bounded or hidden inside a type alias, because their symbols would otherwise be one."""
        if not isinstance(declared.node, ast.TypeParam) or declared.name not in self.hidden:
            return declared.name
        symbol = f"{declared.name}_"
        while any(d.name == symbol for d in self.declared.values()):
            symbol += "_"
        self.suffixed[symbol] = declared.name
        return symbol

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        *,
        help: str | None = None,
        counterexample: dict[str, int] | None = None,
    ) -> None:
        self.diagnostics.error(code, message, span, help=help, counterexample=counterexample)


def module_of(elab: Elab, core: str) -> ast.Module:
    return elab.nodes[core]


def id_of(ident: ast.Ident) -> str:
    return decl_id(ident)
