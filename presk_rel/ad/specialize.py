"""Functions that take a known function value get a version of their own, which takes what the value captured instead.

    %4 = closure f.lambda0[y];  %5 = closure f.lambda1[%4, x]
      becomes   %5 = closure f.lambda1.of0[y, x]   with   f.lambda1.of0(y, x, θ) = { g = closure f.lambda0[y]; … }

A function that returns a known function value gets one that returns what the value captured:

    %1 = call make(x)   becomes   %1%e = call make.env(x);  %1%0 = %1%e.0;  %1 = closure make.lambda0[%1%0]

So a function value that is known where it is made is known wherever it goes: `grad`, and the differentiation of an
application, see through captured values, arguments, results and `let`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from presk_rel.ad.apart import apart, holds_function
from presk_rel.ad.graph import callees_first
from presk_rel.ad.instantiate import at
from presk_rel.ad.known import Known, KnownFunctions, Made, read_of
from presk_rel.core.ir import (
    Apply,
    Binding,
    Call,
    Closure,
    DimArgs,
    Fold,
    Function,
    Op,
    Param,
    Prim,
    Program,
    Var,
    callees,
    operands,
)
from presk_rel.core.shapes import absorb, slice_type, substitute
from presk_rel.core.trampoline import Walk, run
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import ModuleDef, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, symbol

Leads = tuple[tuple[str, Shape], ...]
Key = tuple[str, DimArgs, Leads, tuple[str, ...], tuple[tuple[int, Known, tuple[Type, ...]], ...]]
"""The callee, its dim arguments and what its `...` stands for, the caller's dims, and for each function value its
parameter, the value without what it captured, and the types of that."""


def specialize(program: Program) -> Program:
    """The program in which no known function value is captured, passed on or returned to a call; what that leaves
    unread is gone."""
    program = apart(program)
    takers = {name for name, f in program.functions.items() if _takes(f)}
    makers = {name for name, f in program.functions.items() if holds_function(f.result)}
    if not takers and not makers:
        return program
    work = _Work(takers, makers, dict(program.functions), program.modules)
    for name in callees_first(program.functions):
        run(work.finished(name))
    return replace(program, functions=_reached(work.functions, takers | makers))


def _takes(f: Function) -> bool:
    return any(_is_function(p.type) for p in f.params)


def _is_function(ty: Type) -> bool:
    return isinstance(ty, FunctionType)


def _reached(functions: dict[str, Function], inner: set[str]) -> dict[str, Function]:
    """Without the functions that take or return function values and that no other function names any more."""
    reached: set[str] = set()
    stack = [name for name in functions if name not in inner]
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack.extend(c for b in functions[name].bindings for c in callees(b.op))
    return {name: f for name, f in functions.items() if name in reached}


@dataclass(slots=True)
class _Work:
    """`takers` take function values, `makers` return one. A function is finished before what its callers read of it."""

    takers: set[str]
    makers: set[str]
    functions: dict[str, Function]
    modules: dict[str, ModuleDef]
    done: set[str] = field(default_factory=set[str])
    versions: dict[Key, str] = field(default_factory=dict[Key, str])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    returned: dict[str, Made | None] = field(default_factory=dict[str, "Made | None"])

    def finished(self, name: str) -> Walk[None]:
        """Rewrite a function, once: each use of a taker on known function values is one of its version, each call of a
        maker is the closure it returns."""
        if name in self.done:
            return
        self.done.add(name)
        function = self.functions[name]
        known = KnownFunctions()
        types = {p.name: p.type for p in function.params}
        bindings: list[Binding] = []
        for b in function.bindings:
            op = self._direct(b.op, known.values)
            if isinstance(op, (Call, Closure, Fold)) and callees(op)[0] in self.takers:
                op = yield self._version(function, op, known.values, types)
            made = [replace(b, op=op)]
            if isinstance(op, Call) and op.fn in self.makers:
                yield self.finished(op.fn)
                made = self._returned(replace(b, op=op), op, types)
            for m in made:
                bindings.append(m)
                types[m.name] = m.type
                known.see(m)
        self.functions[name] = replace(function, bindings=tuple(bindings))
        self.returned[name] = known.made(function.ret, function.result)

    def _returned(self, b: Binding, op: Call, types: dict[Var, Type]) -> list[Binding]:
        """What a call of a maker returns, its closures made in the caller from what they captured."""
        value = self.returned.get(op.fn)
        if value is None:
            return [b]
        made = self.functions[op.fn]
        inside = {p.name: p.type for p in made.params} | {x.name: x.type for x in made.bindings}
        names = tuple(read_of(value))
        captured = tuple(inside[v] for v in names)
        env = f"{op.fn}.env"
        if env not in self.functions:
            whole = Binding("env%", TupleOf(captured), Prim("tuple", (), names), made.span)
            body = (*made.bindings, whole)
            self.functions[env] = replace(made, name=env, result=TupleOf(captured), bindings=body, ret="env%")
            self.done.add(env)
        given = dict(op.dim_args)
        prefixes: dict[str, Shape] = {}
        absorb([substitute(p.type, given, {}) for p in made.params], [types[v] for v in op.args], prefixes)
        here = tuple(substitute(substitute(t, given, {}), {}, prefixes) for t in captured)
        whole = replace(b, name=f"{b.name}%e", type=TupleOf(here), op=Call(env, op.dim_args, op.args))
        parts = [
            replace(b, name=f"{b.name}%{i}", type=t, op=Prim("proj", (i,), (whole.name,))) for i, t in enumerate(here)
        ]
        read = iter([p.name for p in parts])
        return [whole, *parts, *_rebuilt(b, value, given, read)]

    def _direct(self, op: Op, known: dict[Var, Known]) -> Op:
        """An application that passes function values, as the call it is."""
        if isinstance(op, Apply) and op.fn in known and known[op.fn].fn in self.takers:
            return known[op.fn].applied(op.args)
        return op

    def _version(
        self, caller: Function, op: Call | Closure | Fold, known: dict[Var, Known], types: dict[Var, Type]
    ) -> Walk[Op]:
        given, fn = operands(op), callees(op)[0]
        callee = self.functions[fn]
        taken = {i: known[v] for i, v in enumerate(given) if _is_function(callee.params[i].type) and v in known}
        if isinstance(op, Fold):  # its accumulator changes
            taken.pop(len(op.stacked), None)
        if not taken:
            return op
        values = tuple((i, replace(k, captured=()), tuple(types[c] for c in k.captured)) for i, k in taken.items())
        key = (fn, op.dim_args, leads_of(callee, op, [types[v] for v in given]), caller.dims, values)
        if key not in self.versions:
            self.versions[key] = self._write(key)
            yield self.finished(self.versions[key])
        args = tuple(v for i, a in enumerate(given) for v in (taken[i].captured if i in taken else (a,)))
        dims = tuple((d, symbol(d)) for d in caller.dims)
        name = self.versions[key]
        match op:
            case Call():
                return Call(name, dims, args)
            case Closure():
                return Closure(name, dims, args)
            case Fold(stacked=stacked):
                n = len(stacked)
                return replace(op, body=name, dim_args=dims, stacked=args[:n], acc=args[n], extras=args[n + 1 :])

    def _write(self, key: Key) -> str:
        """The callee in the caller's dims and leading axes, its function parameters made inside from what they
        captured."""
        fn, dim_args, leads, caller_dims, values = key
        f = at(self.functions[fn], dict(dim_args), dict(leads), self.modules)
        n = self.counts[fn] = self.counts.get(fn, -1) + 1
        name = f"{fn}.of{n}"
        where = {i: (k, types) for i, k, types in values}
        params: list[Param] = []
        bindings: list[Binding] = []
        for i, p in enumerate(f.params):
            if i not in where:
                params.append(p)
                continue
            k, types = where[i]
            captured = tuple(Param(f"{p.name}%c{j}", t) for j, t in enumerate(types))
            params.extend(captured)
            bindings.append(Binding(p.name, p.type, Closure(k.fn, k.dim_args, tuple(c.name for c in captured)), f.span))
        bindings.extend(f.bindings)
        self.functions[name] = replace(f, name=name, dims=caller_dims, params=tuple(params), bindings=tuple(bindings))
        if _takes(self.functions[name]):
            self.takers.add(name)
        if holds_function(f.result):
            self.makers.add(name)
        return name


def _rebuilt(
    b: Binding, value: Known | tuple[Made | Var, ...], given: Mapping[str, Linear], read: Iterator[Var]
) -> list[Binding]:
    """The bindings that make `value`, what a maker returned, of what it read; the last is `b`."""
    match value:
        case Known(fn, dim_args, captured):
            dims = tuple((d, form.substitute(given)) for d, form in dim_args)
            return [replace(b, op=Closure(fn, dims, tuple(next(read) for _ in captured)))]
        case tuple():
            assert isinstance(b.type, TupleOf)
            made: list[Binding] = []
            names: list[Var] = []
            for i, (part, ty) in enumerate(zip(value, b.type.items, strict=True)):
                if isinstance(part, str):
                    names.append(next(read))
                    continue
                made += _rebuilt(replace(b, name=f"{b.name}%m{i}", type=ty), part, given, read)
                names.append(made[-1].name)
            return [*made, replace(b, op=Prim("tuple", (), tuple(names)))]


def leads_of(f: Function, op: Call | Closure | Fold, types: list[Type]) -> Leads:
    """What each prefix of the callee stands for in the caller; none that is the caller's own, which means the same."""
    given = dict(op.dim_args)
    prefixes: dict[str, Shape] = {}
    if isinstance(op, Fold):
        types = [slice_type(op.count, t) or t if i < len(op.stacked) else t for i, t in enumerate(types)]
    absorb([substitute(p.type, given, {}) for p in f.params[: len(types)]], types, prefixes)
    return tuple((name, shape) for name, shape in prefixes.items() if shape != Shape(name, ()))
