"""A function's value together with its pullback, as a function of Core: what a training loop outside presk calls.

    fn f.pullback{dims}(params of f…, ct : cotangent of the result) -> (result, (cotangents of the parameters))

It is `f(…)` and `vjp(λ p. f(…))(p, ct)`, p the tuple of the parameters that have a derivative; after differentiation
and inlining the two share the forward computation.
"""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.core.ir import Apply, Binding, Call, Closure, Function, Param, Prim, Program, Vjp
from presk_rel.core.names import Fresh
from presk_rel.core.shapes import tangent
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import Params, Real, TupleOf, Type
from presk_rel.smt.linear import symbol


@dataclass(frozen=True, slots=True)
class Pullback:
    """The program with the new function, its name, and which parameters it gives cotangents of, in order."""

    program: Program
    name: str
    parameters: tuple[str, ...]


def with_pullback(program: Program, entry: str) -> Pullback | None:
    """None where the entry has no derivative: no real in its result, or none in its parameters."""
    f = program.functions[entry]
    inner = [p for p in f.params if has_reals(p.type)]
    if not inner or not has_reals(f.result):
        return None
    names = Fresh(program.functions)
    point = TupleOf(tuple(p.type for p in inner))
    applied = _applied(f, names.like(f"{entry}.lambda"), inner, point)
    pulled = _pulled(f, names.like(f"{entry}.pullback"), applied, inner, point)
    functions = {**program.functions, applied.name: applied, pulled.name: pulled}
    made = Program(program.modules, functions, program.bounds, program.declared)
    return Pullback(made, pulled.name, tuple(p.name for p in inner))


def has_reals(ty: Type) -> bool:
    match ty:
        case Real() | Params():
            return True
        case TupleOf(items):
            return any(has_reals(t) for t in items)
        case _:
            return False


def _applied(f: Function, name: str, inner: list[Param], point: TupleOf) -> Function:
    """λ p. f(…), after what it captures."""
    params = (*(p for p in f.params if p not in inner), Param("p", point))
    bindings: list[Binding] = []
    given: dict[str, str] = {}
    count = len(params)
    for i, p in enumerate(inner):
        given[p.name] = f"%{count + i}"
        bindings.append(Binding(given[p.name], p.type, Prim("proj", (i,), ("p",))))
    out = f"%{count + len(inner)}"
    args = tuple(given.get(p.name, p.name) for p in f.params)
    bindings.append(Binding(out, f.result, Call(f.name, tuple((d, symbol(d)) for d in f.dims), args)))
    return Function(name, f.dims, params, f.result, tuple(bindings), out, f.uses)


def _pulled(f: Function, name: str, applied: Function, inner: list[Param], point: TupleOf) -> Function:
    cotangent, slopes = tangent(f.result), tangent(point)
    params = (*f.params, Param(_free(f, "ct"), cotangent))
    ct, n = params[-1].name, len(params)
    dims = tuple((d, symbol(d)) for d in f.dims)
    captured = tuple(p.name for p in f.params if p not in inner)
    pair = TupleOf((f.result, slopes))
    bindings = (
        Binding(f"%{n}", f.result, Call(f.name, dims, tuple(p.name for p in f.params))),
        Binding(f"%{n + 1}", point, Prim("tuple", (), tuple(p.name for p in inner))),
        Binding(f"%{n + 2}", FunctionType((point,), f.result), Closure(applied.name, dims, captured)),
        Binding(f"%{n + 3}", FunctionType((point, cotangent), slopes), Vjp(f"%{n + 2}")),
        Binding(f"%{n + 4}", slopes, Apply(f"%{n + 3}", (f"%{n + 1}", ct))),
        Binding(f"%{n + 5}", pair, Prim("tuple", (), (f"%{n}", f"%{n + 4}"))),
    )
    return Function(name, f.dims, params, pair, bindings, f"%{n + 5}", f.uses)


def _free(f: Function, name: str) -> str:
    while any(p.name == name for p in f.params):
        name += "_"
    return name
