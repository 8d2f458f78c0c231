"""Module expressions → instances (spec: "Modules and instances"): `Linear{D, 4*D}`, `stack{L}(M)`, `A ∘ B`."""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.elab.context import Elab
from presk_rel.elab.declared import Declared
from presk_rel.elab.dims import length, path_text
from presk_rel.elab.ty import Applied, Composed, Instance, Stacked
from presk_rel.smt.linear import symbol
from presk_rel.syntax import ast

STACK = "builtin:stack"


def instance_of(elab: Elab, expr: ast.ModuleExpr) -> Instance | None:
    """The instance that a module expression denotes, None after an error. `∘` chains are walked by a loop."""
    spine: list[ast.Compose] = []
    while isinstance(expr, ast.Compose):
        spine.append(expr)
        expr = expr.outer
    outer = _of_ref(elab, expr)
    for node in reversed(spine):
        inner = instance_of(elab, node.inner)
        if outer is None or inner is None:
            return None
        outer = elab.fitting(Composed(outer, inner), node.span)
    return outer


def _of_ref(elab: Elab, ref: ast.ModuleRef) -> Instance | None:
    target = elab.target(ref.path)
    if target == STACK:
        return _stacked(elab, ref)
    if ref.modules:
        elab.error(
            "E1031", f"`{path_text(ref.path)}` takes no module arguments", ref.span, help="only stack{L}(M) does"
        )
        return None
    if isinstance(target, Declared):
        return _of_declared(elab, target, ref.dims, ref.span)
    if target is not None or not elab.unresolved(ref.path):
        _not_a_module(elab, path_text(ref.path), ref.span)
    return None


def _stacked(elab: Elab, ref: ast.ModuleRef) -> Instance | None:
    if len(ref.dims) != 1 or len(ref.modules) != 1:
        elab.error("E1031", "`stack` takes one count and one module", ref.span, help="write stack{L}(M)")
        return None
    count, inner = length(elab, ref.dims[0]), instance_of(elab, ref.modules[0])
    if count is None or inner is None:
        return None
    return elab.fitting(Stacked(count, inner), ref.span)


def instance_at(elab: Elab, path: ast.Expr, span: Span) -> Instance | None:
    """The instance that the path of `params PATH` names: a module without dimension arguments, a model, or a
    module-typed parameter that stands earlier in the signature."""
    target = elab.target(path)
    if isinstance(target, Declared):
        return _of_declared(elab, target, (), span)
    if target is not None or not elab.unresolved(path):
        _not_a_module(elab, path_text(path), span)
    return None


def _of_declared(elab: Elab, target: Declared, dims: tuple[ast.Expr, ...], span: Span) -> Instance | None:
    match target.node:
        case ast.Module():
            return applied(elab, target, dims, span)
        case ast.Model():
            return elab.models.get(target.id) if _no_dims(elab, target, dims, span) else None
        case ast.FnParam():
            if target.id in elab.module_params:
                return elab.module_params[target.id] if _no_dims(elab, target, dims, span) else None
            elab.error(
                "E1035",
                f"`{target.name}` is no module-typed parameter that stands before it",
                span,
                help=f"declare it first: {target.name} : M{{…}}",
            )
            return None
        case _:
            _not_a_module(elab, target.name, span)
            return None


def applied(elab: Elab, target: Declared, dims: tuple[ast.Expr, ...], span: Span) -> Applied | None:
    """A module applied to as many dimensions as it declares (E1031), then to the file's dims that its tree mentions."""
    core = elab.core[target.id]
    definition = elab.modules.get(core)
    args = [length(elab, d) for d in dims]
    if definition is None:
        return None
    if len(dims) != definition.explicit:
        takes = definition.explicit or "no"
        elab.error(
            "E1031",
            f"`{target.name}` takes {takes} dimension argument{'' if takes == 1 else 's'}, {len(dims)} given",
            span,
            help=f"declared as {_heading(elab, core)}",
        )
        return None
    known = tuple(a for a in args if a is not None)
    if len(known) != len(args):
        return None
    return Applied(core, known + tuple(symbol(d) for d in definition.dims[definition.explicit :]))


def _heading(elab: Elab, core: str) -> str:
    module = elab.nodes[core]
    names = ", ".join(f"{p.name.text} : {p.kind}" for p in module.type_params)
    return f"module {module.name.text}" + (f"{{{names}}}" if names else "")


def _no_dims(elab: Elab, target: Declared, dims: tuple[ast.Expr, ...], span: Span) -> bool:
    if not dims:
        return True
    elab.error("E1031", f"`{target.name}` takes no dimension arguments", span)
    return False


def _not_a_module(elab: Elab, text: str, span: Span) -> None:
    elab.error("E1035", f"`{text}` is no module", span)
