"""Signatures of functions (spec: "Functions", "Types"): parameters, `params net`, implicit dimensions, the parameter
tree of a member function."""

from __future__ import annotations

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import mutable, record
from presk_rel.elab.context import Elab, id_of
from presk_rel.elab.declared import Declared
from presk_rel.elab.symbols import type_forms
from presk_rel.elab.ty import Applied, Instance, ModuleValue, Params, Type
from presk_rel.elab.typeexpr import IN_FUNCTION, type_of
from presk_rel.rules.analysis import ImplicitDim
from presk_rel.smt.linear import symbol
from presk_rel.syntax import ast


@record
class ParamSig:
    """A parameter. `type` is None when it is omitted (to be inferred) or `broken` (an error was reported). A
    module-typed one has a `ModuleValue`; an axis parameter has no type."""

    id: str
    name: str
    node: ast.FnParam
    type: Type | None
    broken: bool

    @property
    def instance(self) -> Instance | None:
        return self.type.instance if isinstance(self.type, ModuleValue) else None


@mutable
class Signature:
    """What a caller knows of a function. `module_dims` are the dims of its module's definition, the first `explicit` of
    them type parameters, and `own_dims` its own type parameters. `dims`: the type parameters of both, then the other
    symbols of its types in order of appearance. `result` is None when it is not declared (the checker fills it in) or
    broken. `shapes` are the Shape parameters of both: a module's are not given with its dims, since no parameter tree
    mentions them; each call of a function finds them from its arguments."""

    id: str
    core: str
    node: ast.Fn
    file: str
    owner: str | None
    theta: Params | None
    module_dims: tuple[str, ...]
    explicit: int
    own_dims: tuple[str, ...]
    shapes: tuple[str, ...]
    params: tuple[ParamSig, ...]
    result: Type | None
    broken: bool
    dims: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.collect_dims()

    def collect_dims(self) -> None:
        """Recomputes `dims`, once inferred types are known."""
        types = [self.theta, *(p.type for p in self.params), self.result]
        mentioned = (s for t in types if t is not None for form in type_forms(t) for s, _ in form.terms)
        self.dims = tuple(dict.fromkeys([*self.module_dims[: self.explicit], *self.own_dims, *mentioned]))

    @property
    def open(self) -> bool:
        """Must its body be checked before its callers?"""
        return not self.broken and (
            self.result is None or any(p.type is None and not p.node.is_axis for p in self.params)
        )


def elaborate_signatures(elab: Elab) -> dict[str, Signature]:
    """Every function's signature by declaration id, in order; W0001 for implicit dimensions."""
    for implicit in elab.names.implicit:
        _implicit(elab, implicit)
    out: dict[str, Signature] = {}
    for declared in elab.declared.values():
        if isinstance(declared.node, ast.Fn):
            out[declared.id] = signature_of(elab, declared, declared.node, elab.core[declared.id])
    return out


def _implicit(elab: Elab, implicit: ImplicitDim) -> None:
    """W0001; E1026 where the function has a value of that name, which was probably meant."""
    name, function = implicit.name, elab.declared[implicit.function].node
    assert isinstance(function, ast.Fn)
    if any(p.name.text == name for p in function.params):
        elab.error(
            "E1026",
            f"the length `{name}` cannot be the argument `{name}`: lengths are known before any value is",
            implicit.span,
            help=f"make it a dimension, {{{name} : dim}}, which its uses as a number may read too",
        )
        return
    elab.diagnostics.warning(
        "W0001",
        f"`{name}` is not declared: it is taken as a dimension of this function",
        implicit.span,
        help=f"declare it: dim {name}, or {{{name} : dim}}",
    )


def signature_of(elab: Elab, declared: Declared, fn: ast.Fn, core: str) -> Signature:
    """The signature of `fn`, which is what `declared` declares or a variant of it, under the name `core`."""
    owner = None if declared.module is None else elab.core[id_of(declared.module.name)]
    definition = None if owner is None else elab.modules.get(owner)
    theta = None if definition is None else Params(Applied(definition.name, tuple(symbol(d) for d in definition.dims)))
    params = tuple(_param(elab, p) for p in fn.params)
    result = None if fn.result is None else type_of(elab, fn.result, IN_FUNCTION)
    if isinstance(result, ModuleValue):
        elab.error(
            "E1037",
            "a function cannot give a module",
            fn.result.span if fn.result else fn.span,
            help="give its parameter tree: params M",
        )
        result = None
    own = [elab.declared[id_of(p.name)] for p in fn.type_params]
    around = () if declared.module is None else declared.module.type_params
    return Signature(
        id=declared.id,
        core=core,
        node=fn,
        file=declared.file,
        owner=owner,
        theta=theta,
        module_dims=() if definition is None else definition.dims,
        explicit=0 if definition is None else definition.explicit,
        own_dims=tuple(elab.symbol_of(d) for d in own if _kind(d) == "dim"),
        shapes=tuple(p.name.text for p in (*around, *fn.type_params) if p.kind == "Shape"),
        params=params,
        result=result,
        broken=(result is None and fn.result is not None) or (owner is not None and theta is None),
    )


def _kind(declared: Declared) -> str:
    return declared.node.kind if isinstance(declared.node, ast.TypeParam) else ""


def _param(elab: Elab, param: ast.FnParam) -> ParamSig:
    key = id_of(param.name)
    ty = None if param.type is None else type_of(elab, param.type, IN_FUNCTION)
    if isinstance(ty, ModuleValue):
        elab.module_params[key] = ty.instance
    broken = param.type is not None and ty is None
    if broken and _looks_like_a_module(elab, param):
        elab.module_params[key] = None
    if param.is_axis and param.type is not None:
        elab.error("E1037", f"the axis parameter `{param.name.text}` has no type", _span(param))
    return ParamSig(key, param.name.text, param, ty, broken)


def _looks_like_a_module(elab: Elab, param: ast.FnParam) -> bool:
    """A module-typed parameter with an error in its type: `params net` after it stays silent."""
    if not isinstance(param.type, ast.NamedType):
        return False
    target = elab.target(param.type.path)
    return not isinstance(target, Declared) or isinstance(target.node, ast.Module | ast.Model)


def _span(param: ast.FnParam) -> Span:
    return param.name.span
