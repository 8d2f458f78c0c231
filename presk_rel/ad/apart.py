"""Parameters that are tuples with function values in them, taken apart: `ad.specialize` knows functions that are
parameters themselves.

    fn f.lambda0(p : (ℝ[] -> ℝ[], ℝ[]), y : ℝ[])     becomes     fn f.lambda0(p%0 : ℝ[] -> ℝ[], p%1 : ℝ[], y : ℝ[])
    closure f.lambda0[%3]                                        %5 = %3.0;  %6 = %3.1;  closure f.lambda0[%5, %6]
"""

from __future__ import annotations

from dataclasses import replace

from presk_rel.ad.body import Body
from presk_rel.core.ir import Binding, Call, Closure, Fold, Function, Op, Param, Prim, Program, Var
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import TupleOf, Type


def holds_function(ty: Type) -> bool:
    """Whether a value of this type is a function value, or a tuple with one somewhere in it."""
    match ty:
        case FunctionType():
            return True
        case TupleOf(items):
            return any(holds_function(t) for t in items)
        case _:
            return False


def apart(program: Program) -> Program:
    """The program in which no tuple with function values is captured or passed to a call."""
    taken = {name for name, f in program.functions.items() if any(_is_bundle(p.type) for p in f.params)}
    taken -= {name for f in program.functions.values() for b in f.bindings for name in _kept(program, b.op)}
    if not taken:
        return program
    functions = {name: _rewritten(f, taken, program.functions) for name, f in program.functions.items()}
    return replace(program, functions={n: _opened(f) if n in taken else f for n, f in functions.items()})


def _is_bundle(ty: Type) -> bool:
    return isinstance(ty, TupleOf) and holds_function(ty)


def _kept(program: Program, op: Op) -> tuple[str, ...]:
    """Functions whose parameters must stay: the bodies of folds, and those whose tuple is an argument of a closure."""
    match op:
        case Fold(_, body):
            return (body,)
        case Closure(fn, _, captured) if any(_is_bundle(p.type) for p in program.functions[fn].params[len(captured) :]):
            return (fn,)
        case _:
            return ()


def _opened(f: Function) -> Function:
    """The function on the parts of its tuples, which it puts together itself."""
    params: list[Param] = []
    made: list[Binding] = []

    def open_(name: Var, ty: Type) -> None:
        if not isinstance(ty, TupleOf) or not holds_function(ty):
            params.append(Param(name, ty))
            return
        parts = tuple(f"{name}%p{i}" for i in range(len(ty.items)))
        for part, t in zip(parts, ty.items, strict=True):
            open_(part, t)
        made.append(Binding(name, ty, Prim("tuple", (), parts), f.span))

    for p in f.params:
        open_(p.name, p.type)
    return replace(f, params=tuple(params), bindings=(*made, *f.bindings))


def _rewritten(f: Function, taken: set[str], functions: dict[str, Function]) -> Function:
    body = Body(f)

    def parts(v: Var, ty: Type) -> tuple[Var, ...]:
        if not isinstance(ty, TupleOf) or not holds_function(ty):
            return (v,)
        return tuple(x for i, t in enumerate(ty.items) for x in parts(body.proj(v, i, t), t))

    types = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    for b in f.bindings:
        op = b.op
        if isinstance(op, Call) and op.fn in taken:
            op = replace(op, args=tuple(x for v in op.args for x in parts(v, types[v])))
        elif isinstance(op, Closure) and op.fn in taken:
            op = replace(op, captured=tuple(x for v in op.captured for x in parts(v, types[v])))
        body.bindings.append(replace(b, op=op))
    return replace(f, bindings=tuple(body.bindings))
