"""A function at the dims and leading axes that a caller gives it, its calls and closures kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from presk_rel.ad.names import with_dims
from presk_rel.core.align import finish
from presk_rel.core.draft import NOTHING, Draft, meaning
from presk_rel.core.ir import Binding, Function, Param, Prim, operands
from presk_rel.core.shapes import substitute
from presk_rel.elab.ty import ModuleDef, Shape, Type
from presk_rel.smt.linear import Linear


def at(
    f: Function, dims: Mapping[str, Linear], prefixes: Mapping[str, Shape], modules: dict[str, ModuleDef]
) -> Function:
    """`f` with forms for its dims and axes for its prefixes. No operation changes its meaning: where the axes would
    line up otherwise than the prefix did, that is written out (`core.align`)."""

    def here(ty: Type) -> Type:
        return substitute(ty, dims, prefixes)

    params = tuple(Param(p.name, here(p.type)) for p in f.params)
    if not prefixes:
        made = tuple(replace(b, type=here(b.type), op=with_dims(b.op, dims)) for b in f.bindings)
        return replace(f, params=params, result=here(f.result), bindings=made)
    generic = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    drafts = [_draft(b, generic, dims, prefixes) for b in f.bindings]
    bindings, ret = finish(drafts, params, f.ret, here(f.result), modules)
    return replace(f, params=params, result=here(f.result), bindings=bindings, ret=ret)


def _draft(b: Binding, generic: Mapping[str, Type], dims: Mapping[str, Linear], prefixes: Mapping[str, Shape]) -> Draft:
    read = tuple(generic[v] for v in operands(b.op))
    seen = tuple(substitute(t, dims, prefixes) for t in read)
    meant = meaning(b.op.op, b.op.attrs, read, prefixes) if isinstance(b.op, Prim) else NOTHING
    hint = b.name.partition("%")[0] or None
    return Draft(b.name, hint, substitute(b.type, dims, prefixes), with_dims(b.op, dims), seen, meant, b.span, b.note)
