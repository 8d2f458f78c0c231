"""Local identities of generated bodies, before dead code is looked for.

    sum_to x, t  →  x,   broadcast_like x, t  →  x         between equal types
    call f(sum_to x, t)  →  call f(x)                      where they differ only in axis names that t lacks, and f too
    zeros_like p, set_elem i …, add …  →  (a, b)            once every component of a tuple's cotangent is known

The last keeps a tuple from being computed for its shape alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from presk_rel.ad.names import rename
from presk_rel.ad.tangent import has_tangent
from presk_rel.core.ir import Binding, Call, Function, Op, Prim, Var
from presk_rel.core.shapes import absorb, compatible_shapes, substitute
from presk_rel.elab.ty import Real, TupleOf, Type

_WIDEST = 16  # components of a tuple that is followed part by part: keeps the pass linear


def simplify(function: Function, functions: Mapping[str, Function]) -> Function:
    """The function with the identities above applied; bindings keep their names, some are gone or dead."""
    types: dict[Var, Type] = {p.name: p.type for p in function.params}
    same: dict[Var, Var] = {}
    unnamed: dict[Var, Var] = {}
    parts: dict[Var, dict[int, Var]] = {}
    kept: list[Binding] = []
    for b in function.bindings:
        op = _named(rename(b.op, same), unnamed, types, functions)
        if op is not b.op:
            b = replace(b, op=op)
        original = _identity(b, types)
        if original is not None and types[original] == b.type:
            same[b.name] = original
            continue
        if original is not None:
            unnamed[b.name] = original
        types[b.name] = b.type
        kept.append(_whole_tuple(b, parts))
    return replace(function, bindings=tuple(kept), ret=same.get(function.ret, function.ret))


def _identity(b: Binding, types: Mapping[Var, Type]) -> Var | None:
    """What `b` equals, up to axis names that its type lacks."""
    match b.op:
        case Prim("sum_to" | "broadcast_like", (), (x, _)) if _loses_names(types[x], b.type):
            return x
        case _:
            return None


def _loses_names(a: Type, b: Type) -> bool:
    """Whether `b` is `a` with some axes unnamed (or none)."""
    if not isinstance(a, Real) or not isinstance(b, Real) or not compatible_shapes(a.shape, b.shape):
        return False
    return all(x.name == y.name or y.name is None for x, y in zip(a.shape.axes, b.shape.axes, strict=True))


def _named(op: Op, unnamed: Mapping[Var, Var], types: Mapping[Var, Type], functions: Mapping[str, Function]) -> Op:
    """A call reads the named original of an operand where the callee does not name the axis otherwise."""
    if not isinstance(op, Call) or not any(v in unnamed for v in op.args):
        return op
    given = dict(op.dim_args)
    params = [substitute(p.type, given, {}) for p in functions[op.fn].params]
    named = tuple(unnamed.get(v, v) for v in op.args)
    return op if absorb(params, [types[v] for v in named], {}) else replace(op, args=named)


def _whole_tuple(b: Binding, parts: dict[Var, dict[int, Var]]) -> Binding:
    if not isinstance(b.type, TupleOf) or not 0 < len(b.type.items) <= _WIDEST:
        return b
    found = _parts(b, parts)
    if found is None:
        return b
    parts[b.name] = found
    if len(found) < len(b.type.items) or not all(has_tangent(t) for t in b.type.items):
        return b
    return replace(b, op=Prim("tuple", (), tuple(found[i] for i in range(len(found)))))


def _parts(b: Binding, parts: Mapping[Var, dict[int, Var]]) -> dict[int, Var] | None:
    """The components of a sparse tuple that are known; the others are zero. None when `b` is no sparse tuple."""
    match b.op:
        case Prim("zeros_like", _, _):
            return {}
        case Prim("set_elem", (int(i),), (whole, v)) if whole in parts:
            return parts[whole] | {i: v}
        case Prim("add", _, (x, y)) if x in parts and y in parts and not parts[x].keys() & parts[y].keys():
            return parts[x] | parts[y]
        case _:
            return None
