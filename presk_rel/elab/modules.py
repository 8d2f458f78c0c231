"""Type aliases, model declarations and the parameter trees of modules, in order of dependency (spec: "Modules")."""

from __future__ import annotations

from collections.abc import Iterator

from presk_rel.diagnostics import Span
from presk_rel.elab.context import Elab, id_of
from presk_rel.elab.cycles import report_missed
from presk_rel.elab.declared import Declared
from presk_rel.elab.initializers import init_of
from presk_rel.elab.instances import instance_of
from presk_rel.elab.order import order
from presk_rel.elab.paths import type_paths
from presk_rel.elab.symbols import instance_forms
from presk_rel.elab.ty import Applied, Composed, Field, Instance, ModuleDef, ParamField, Real, Stacked, UseField
from presk_rel.elab.typeexpr import IN_ALIAS, IN_PARAM, type_of
from presk_rel.smt.linear import Linear
from presk_rel.syntax import ast

DEEPEST_TREE = 100
LARGEST_TREE = 100_000
"""Parameter trees deeper or with more tensors are refused (E9002): passes walk them by recursion and leaf by leaf."""


def elaborate_modules(elab: Elab) -> None:
    """Fills `elab.aliases`, `elab.models` and `elab.modules`. What includes itself gets no entry: E2016 says so."""
    nodes = [d.id for d in elab.declared.values() if isinstance(d.node, ast.TypeAlias | ast.Model | ast.Module)]
    done, cyclic = order(nodes, lambda n: _needs(elab, elab.declared[n]))
    sizes = _Sizes({}, {})
    for node in done:
        declared = elab.declared[node]
        if node in cyclic:
            report_missed(elab, node)
            _give_up(elab, declared)
        elif isinstance(declared.node, ast.TypeAlias):
            elab.aliases[node] = type_of(elab, declared.node.type, IN_ALIAS)
        elif isinstance(declared.node, ast.Model):
            elab.models[node] = instance_of(elab, declared.node.module)
        elif isinstance(declared.node, ast.Module):
            _define(elab, declared, declared.node, sizes)


def _give_up(elab: Elab, declared: Declared) -> None:
    if isinstance(declared.node, ast.Module):
        elab.broken_modules.add(elab.core[declared.id])


def _needs(elab: Elab, declared: Declared) -> Iterator[str]:
    roots: list[ast.TypeExpr | ast.ModuleExpr] = []
    if isinstance(declared.node, ast.TypeAlias):
        roots.append(declared.node.type)
    elif isinstance(declared.node, ast.Model):
        roots.append(declared.node.module)
    elif isinstance(declared.node, ast.Module):
        roots.extend(m.type for m in declared.node.members if isinstance(m, ast.Param))
        roots.extend(m.module for m in declared.node.members if isinstance(m, ast.Use))
    for path in type_paths(tuple(roots)):
        target = elab.target(path)
        if isinstance(target, Declared):
            yield target.id


def _define(elab: Elab, declared: Declared, module: ast.Module, sizes: _Sizes) -> None:
    core = elab.core[declared.id]
    explicit = [elab.symbol_of(elab.declared[id_of(p.name)]) for p in module.type_params if p.kind == "dim"]
    fields: list[Field] = []
    for member in module.members:
        fields.extend(_fields(elab, member))
    if len(fields) < sum(len(m.names) for m in module.members if not isinstance(m, ast.Fn)):
        elab.incomplete.add(core)
    mentioned = (s for f in fields for form in _forms(f) for s, _ in form.terms)
    dims = tuple(dict.fromkeys([*explicit, *mentioned]))
    definition = ModuleDef(core, dims, len(explicit), tuple(fields))
    distinct = len(set(explicit)) == len(explicit)  # else E1002 is said of the type parameters
    if distinct and sizes.admit(elab, definition, module.name.span):
        elab.modules[core] = definition
    else:
        elab.broken_modules.add(core)


def _fields(elab: Elab, member: ast.Member) -> Iterator[Field]:
    match member:
        case ast.Fn():
            return
        case ast.Param(names, annotation):
            ty, init = type_of(elab, annotation, IN_PARAM), init_of(elab, member.init)
            if ty is not None and not isinstance(ty, Real):
                elab.error("E1036", f"a parameter must be a real tensor, not {ty}", annotation.span)
            for name in names:
                if isinstance(ty, Real) and init is not None:
                    yield ParamField(name.text, ty, init)
        case ast.Use(names, module):
            instance = instance_of(elab, module)
            for name in names:
                if instance is not None:
                    yield UseField(name.text, instance)


def _forms(field: Field) -> Iterator[Linear]:
    match field:
        case ParamField(_, Real(shape)):
            yield from (axis.length for axis in shape.axes)
        case UseField(_, instance):
            yield from instance_forms(instance)


class _Sizes:
    """Tensors and depth of each parameter tree so far."""

    __slots__ = ("depths", "tensors")

    def __init__(self, tensors: dict[str, int], depths: dict[str, int]) -> None:
        self.tensors = tensors
        self.depths = depths

    def admit(self, elab: Elab, definition: ModuleDef, span: Span) -> bool:
        tensors, depth = 0, 0
        for field in definition.fields:
            t, d = (1, 0) if isinstance(field, ParamField) else self._of(field.instance)
            tensors, depth = tensors + t, max(depth, d)
        self.tensors[definition.name], self.depths[definition.name] = tensors, depth + 1
        if tensors <= LARGEST_TREE and depth < DEEPEST_TREE:
            return True
        elab.error(
            "E9002",
            f"the parameter tree of `{definition.name}` has more than {LARGEST_TREE} tensors or more than "
            f"{DEEPEST_TREE} levels, which this version does not support",
            span,
        )
        return False

    def _of(self, instance: Instance) -> tuple[int, int]:
        match instance:
            case Applied(module, _):
                return self.tensors.get(module, 0), self.depths.get(module, 0)
            case Stacked(_, inner):
                return self._of(inner)
            case Composed(outer, inner):
                (a, m), (b, n) = self._of(outer), self._of(inner)
                return a + b, max(m, n) + 1
