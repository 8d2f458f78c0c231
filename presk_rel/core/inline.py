"""The flat form of an entry, which the optimizer and the torch executor read.

`inline_entry` replaces every call, closure and application by its callee's bindings, dims and prefixes replaced, and
takes trees and tuples apart (`core.values`), so that what is left are operations on tensors, the reads of the entry's
parameters, folds over flat bodies, and one `record` or `tuple` that builds the result. What nothing reads is gone. No
operation changes its meaning: `core.align` writes out alignments that the concrete types would not give.

    fn f{D}(θ : params Linear{D, D}, x : ℝ[batch: 2, D]) -> ℝ[batch: 2, D] {
      w : ℝ[D, D] = θ.w
      %3 : ℝ[batch: 2, D] = dot x, w
      b : ℝ[D] = θ.b
      %5 : ℝ[batch: 2, D] = add %3, b
      return %5
    }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from presk_rel.core.align import finish
from presk_rel.core.draft import NOTHING, meaning, with_names
from presk_rel.core.ir import (
    Apply,
    Binding,
    Call,
    Closure,
    DimArgs,
    Fold,
    Function,
    Grad,
    Jvp,
    Param,
    Prim,
    Program,
    Vjp,
    operands,
)
from presk_rel.core.names import Fresh
from presk_rel.core.shapes import absorb, slice_type, substitute, symbols_in, tangent
from presk_rel.core.structural import is_structural, structural
from presk_rel.core.trampoline import Walk, run
from presk_rel.core.values import Fun, Leaf, Node, Store, Value, Zero
from presk_rel.core.verify import forms_of
from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import Params, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, constant, symbol

_STRUCTURE = frozenset({"field", "proj", "set_field", "set_elem", "record", "tuple"})


def inline_entry(program: Program, entry: str, dims: Mapping[str, int] | None = None) -> Program:
    """The flat form of the function `entry`: a program of the same modules and bounds whose functions are the entry and
    the bodies of its folds. `dims` fixes some of the entry's dims; the others, and a `...` of the entry, stay symbolic.

    The program has no `grad` (AD comes first): PreskBug otherwise. PreskError, exit status 3 (E7019), for an entry that
    takes or gives a function value."""
    _runnable(program.functions[entry])
    work = _Inline(program)
    fixed = {name: constant(n) for name, n in (dims or {}).items()}
    function = program.functions[entry]
    flat = run(work.flatten(function, entry, fixed, {}, tuple(substitute(p.type, fixed, {}) for p in function.params)))
    bodies = {f.name: f for f in work.bodies.values()}
    bounds = tuple((s, bound.substitute(fixed)) for s, bound in program.bounds if s not in fixed)
    return Program(program.modules, {flat.name: flat, **bodies}, bounds, program.declared)


def _runnable(function: Function) -> None:
    parts = [*((f"its parameter `{p.name}`", p.type) for p in function.params), ("its result", function.result)]
    for what, ty in parts:
        if _holds_function(ty):
            text = f"{function.name} cannot be run: {what} has the type {ty}"
            help_ = "run a function that applies it"
            raise PreskError([Diagnostic("E7019", text, function.span, help=help_)], exit_status=3)


def _holds_function(ty: Type) -> bool:
    match ty:
        case FunctionType():
            return True
        case TupleOf(items):
            return any(_holds_function(t) for t in items)
        case _:
            return False


@dataclass(slots=True)
class _Frame:
    """One activation: the callee's dims and prefixes in terms of the flat function, and its names in scope, with their
    values and their types both generic (as declared) and instantiated."""

    store: Store
    dims: Mapping[str, Linear]
    prefixes: Mapping[str, Shape]
    values: dict[str, Value]
    generic: dict[str, Type]
    types: dict[str, Type]

    def define(self, name: str, ty: Type, value: Value) -> None:
        self.generic[name] = ty
        self.types[name] = self.at(ty)
        self.values[name] = value

    def at(self, ty: Type) -> Type:
        """A type of the callee in the flat function."""
        return substitute(ty, self.dims, self.prefixes)

    def seen(self, names: tuple[str, ...]) -> tuple[Type, ...]:
        return tuple(self.types[v] for v in names)


class _Inline:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = Fresh(program.functions)
        self.bodies: dict[object, Function] = {}

    def flatten(
        self,
        function: Function,
        name: str,
        dims: Mapping[str, Linear],
        prefixes: Mapping[str, Shape],
        types: tuple[Type, ...],
    ) -> Walk[Function]:
        """One flat function: `function` at `dims` and `prefixes`, its parameters of the given types."""
        store = Store(self.program.modules)
        params = tuple(Param(p.name, t) for p, t in zip(function.params, types, strict=True))
        arguments = tuple(store.opaque(p.name, p.type) for p in params)
        value = yield self._body(store, function, dims, prefixes, arguments)
        ret = yield store.name_of(value)
        result = substitute(function.result, dims, prefixes)
        bindings, ret = finish(store.drafts, params, ret, result, self.program.modules)
        return replace(
            function,
            name=name,
            dims=_dims_of(function, dims, params, result, bindings),
            params=params,
            result=result,
            bindings=bindings,
            ret=ret,
        )

    def _body(
        self,
        store: Store,
        function: Function,
        dims: Mapping[str, Linear],
        prefixes: Mapping[str, Shape],
        arguments: tuple[Value, ...],
    ) -> Walk[Value]:
        frame = _Frame(store, dims, prefixes, {}, {}, {})
        for p, value in zip(function.params, arguments, strict=True):
            frame.define(p.name, p.type, value)
            _name_axes(store, value, frame.types[p.name])
        for b in function.bindings:
            value = yield self._binding(frame, b)
            frame.define(b.name, b.type, value)
            _name_axes(store, value, frame.types[b.name])
        return frame.values[function.ret]

    def _binding(self, f: _Frame, b: Binding) -> Walk[Value]:
        match b.op:
            case Prim(op):
                return (yield self._prim(f, b, b.op)) if op not in _STRUCTURE else self._structure(f, b, b.op)
            case Call(fn, dim_args, args):
                given = tuple(f.values[v] for v in args)
                return (yield self._call(f.store, fn, _dims(dim_args, f), given, f.seen(args)))
            case Closure(fn, dim_args, captured):
                return Fun(fn, _dims(dim_args, f), tuple(f.values[v] for v in captured), f.seen(captured))
            case Apply(fn, args):
                value = f.values[fn]
                if not isinstance(value, Fun):
                    raise PreskBug("inline", f"{fn} is no known function value")
                given = (*value.captured, *(f.values[v] for v in args))
                return (yield self._call(f.store, value.fn, value.dims, given, (*value.types, *f.seen(args))))
            case Fold():
                return (yield self._fold(f, b, b.op))
            case Grad() | Vjp() | Jvp():
                raise PreskBug("inline", f"{b.name} is a derivative: differentiate first")
            case _:
                assert_never(b.op)

    # -------------------------------------------------------------------------------------------------------- calls

    def _call(
        self, store: Store, fn: str, dims: dict[str, Linear], arguments: tuple[Value, ...], types: tuple[Type, ...]
    ) -> Walk[Value]:
        callee = self.program.functions[fn]
        prefixes = _absorbed(callee, dims, types)
        return (yield self._body(store, callee, dims, prefixes, arguments))

    def _fold(self, f: _Frame, b: Binding, op: Fold) -> Walk[Value]:
        count = op.count.substitute(f.dims)
        names: list[str] = []
        for v in operands(op):
            names.append((yield f.store.name_of(f.values[v])))
        seen = f.seen(operands(op))
        n = len(op.stacked)
        slices = tuple(_slice(count, t) for t in seen[:n])
        body = yield self._flat_body(op.body, _dims(op.dim_args, f), (*slices, *seen[n:]))
        flat = Fold(
            count,
            body.name,
            tuple((d, symbol(d)) for d in body.dims),
            tuple(names[:n]),
            names[n],
            tuple(names[n + 1 :]),
            op.reverse,
            op.scan,
        )
        ty = f.at(b.type)
        return f.store.opaque(f.store.emit(ty, flat, seen, NOTHING, _hint(b.name), b.span, b.note), ty)

    def _flat_body(self, fn: str, dims: dict[str, Linear], types: tuple[Type, ...]) -> Walk[Function]:
        key = (fn, tuple(sorted((d, str(form)) for d, form in dims.items())), types)
        if key not in self.bodies:
            function = self.program.functions[fn]
            prefixes = _absorbed(function, dims, types)
            flat = yield self.flatten(function, self.names.like(f"{fn}.body"), dims, prefixes, types)
            self.bodies[key] = flat
        return self.bodies[key]

    # --------------------------------------------------------------------------------------------------- primitives

    def _structure(self, f: _Frame, b: Binding, op: Prim) -> Value:
        """Reading, setting and building trees and tuples: nothing is emitted but reads."""
        ty = f.at(b.type)
        values = tuple(f.values[v] for v in op.args)
        match op.op, op.attrs:
            case "field" | "proj", (str() | int() as part,):
                return f.store.get(values[0], part)
            case "set_field" | "set_elem", (str() | int() as part,):
                return f.store.put(values[0], part, values[1])
            case _ if isinstance(ty, Params | TupleOf):
                return Node(ty, dict(zip(f.store.parts(ty), values, strict=True)))
            case _:
                raise PreskBug("inline", f"{b.name} : {ty} = {op.op}")

    def _prim(self, f: _Frame, b: Binding, op: Prim) -> Walk[Value]:
        ty = f.at(b.type)
        values = tuple(f.values[v] for v in op.args)
        if op.op in ("zeros_like", "ones_like") and not isinstance(ty, Real):
            target = tangent(f.types[op.args[0]])
            return Zero(target) if op.op == "zeros_like" else (yield f.store.filled("ones", target))
        if is_structural(op.op, ty, f.seen(op.args)):
            return (yield structural(f.store, replace(b, type=ty), self._at(f, op), values))
        names: list[str] = []
        for value in values:
            names.append((yield f.store.name_of(value)))
        generic = tuple(f.generic[v] for v in op.args)
        meant = meaning(op.op, op.attrs, generic, f.prefixes)
        flat = replace(self._at(f, op), args=tuple(names))
        name = f.store.emit(ty, flat, f.seen(op.args), meant, _hint(b.name), b.span, b.note)
        return f.store.opaque(name, ty)

    def _at(self, f: _Frame, op: Prim) -> Prim:
        return replace(op, attrs=tuple(a.substitute(f.dims) if isinstance(a, Linear) else a for a in op.attrs))


# -------------------------------------------------------------------------------------------------- small questions


def _dims(dim_args: DimArgs, f: _Frame) -> dict[str, Linear]:
    return {name: form.substitute(f.dims) for name, form in dim_args}


def _absorbed(callee: Function, dims: Mapping[str, Linear], types: tuple[Type, ...]) -> dict[str, Shape]:
    prefixes: dict[str, Shape] = {}
    problem = absorb([substitute(p.type, dims, {}) for p in callee.params], types, prefixes)
    if problem is not None:
        raise PreskBug("inline", f"{callee.name}: {problem}")
    return prefixes


def _slice(count: Linear, ty: Type) -> Type:
    piece = slice_type(count, ty)
    if piece is None:
        raise PreskBug("inline", f"{ty} is no stack of {count}")
    return piece


def _hint(name: str) -> str | None:
    """The user's part of a Core name: `x` of `x%7`, nothing of `%3`."""
    return name.split("%")[0] or None


def _name_axes(store: Store, value: Value, ty: Type) -> None:
    """An axis that no one has named yet takes the name its value has elsewhere (a parameter's, a result's)."""
    if isinstance(value, Leaf) and value.name in store.at:
        draft = store.at[value.name]
        draft.type = with_names(draft.type, ty)


def _dims_of(
    function: Function,
    dims: Mapping[str, Linear],
    params: tuple[Param, ...],
    result: Type,
    bindings: tuple[Binding, ...],
) -> tuple[str, ...]:
    """The dims of a flat function: those its types and operations mention, the function's own ones first."""
    mentioned: set[str] = set()
    for ty in (*(p.type for p in params), result, *(b.type for b in bindings)):
        mentioned |= symbols_in(ty)
    for b in bindings:
        mentioned |= {s for form in forms_of(b.op) for s in form.symbols}
    own = [d for d in function.dims if d not in dims]
    return (*own, *sorted(mentioned - set(own)))
