"""Folds over tensors of any number of leading axes, before they are differentiated.

The accumulators of such a fold have no stack: `...` stands first in a shape, and so would the axis of the stack. Where
a caller on the differentiated path says which axes `...` is, it calls a version of the callee for just these (the
callee's flat form, in which every alignment is written out).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from presk_rel.ad.graph import callees_first
from presk_rel.ad.known import Known, known_functions
from presk_rel.ad.tangent import has_tangent
from presk_rel.core.inline import inline_at
from presk_rel.core.ir import Apply, Binding, Call, DimArgs, Fold, Function, Op, Program, Var
from presk_rel.core.shapes import prefixes_in
from presk_rel.elab.ty import Type
from presk_rel.smt.linear import symbol

Key = tuple[str, DimArgs, tuple[Type, ...]]


def with_known_axes(program: Program, roots: Iterable[str]) -> Program:
    """The program in which what `roots` reach folds over tensors of known axes, wherever a caller says them. What they
    reach has no `grad`."""
    order = callees_first(program.functions, roots)
    work = _Work(program)
    for name in order:
        if work.is_generic(program.functions[name]):
            work.generic.add(name)
    if not work.generic:
        return program
    for name in order:
        if name not in work.generic:
            work.functions[name] = work.rewritten(work.functions[name])
    return replace(program, functions=work.functions)


def _types(function: Function) -> dict[Var, Type]:
    return {p.name: p.type for p in function.params} | {b.name: b.type for b in function.bindings}


@dataclass(slots=True)
class _Work:
    """`generic` are the functions that fold, at any depth, over tensors whose leading axes their own callers choose."""

    program: Program
    generic: set[str] = field(default_factory=set[str])
    functions: dict[str, Function] = field(init=False)
    versions: dict[Key, str] = field(default_factory=dict[Key, str])

    def __post_init__(self) -> None:
        self.functions = dict(self.program.functions)

    def is_generic(self, function: Function) -> bool:
        types = _types(function)
        known = known_functions(function.bindings)
        for b in function.bindings:
            op = known[b.op.fn].applied(b.op.args) if isinstance(b.op, Apply) and b.op.fn in known else b.op
            if isinstance(op, Fold) and prefixes_in(types[op.acc]) and has_tangent(types[op.acc]):
                return True
            if isinstance(op, Call) and op.fn in self.generic and any(prefixes_in(types[v]) for v in op.args):
                return True
        return False

    def rewritten(self, function: Function) -> Function:
        types = _types(function)
        known = known_functions(function.bindings)
        bindings = tuple(self._binding(b, types, known) for b in function.bindings)
        return replace(function, bindings=bindings)

    def _binding(self, b: Binding, types: dict[Var, Type], known: dict[Var, Known]) -> Binding:
        op: Op = known[b.op.fn].applied(b.op.args) if isinstance(b.op, Apply) and b.op.fn in known else b.op
        if not isinstance(op, Call) or op.fn not in self.generic:
            return b
        key = (op.fn, op.dim_args, tuple(types[v] for v in op.args))
        if key not in self.versions:
            self.versions[key] = self._write(key)
        name = self.versions[key]
        dims = tuple((d, symbol(d)) for d in self.functions[name].dims)
        return replace(b, op=Call(name, dims, op.args))

    def _write(self, key: Key) -> str:
        fn, dim_args, types = key
        n = 0
        while f"{fn}.at{n}" in self.functions:
            n += 1
        program = replace(self.program, functions=self.functions)
        flat, bodies = inline_at(program, fn, f"{fn}.at{n}", dict(dim_args), types)
        self.functions |= {f.name: f for f in (flat, *bodies)}
        return flat.name
