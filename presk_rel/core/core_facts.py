"""PSK-Core → facts of the relations that `facts.schema` lists with origin "core".

A variable `v` of the function `f` is `f/v` everywhere in the program, its leaf `0` (`core.leaves`) is `f/v.0`, and the
binding that makes it, a *site*, has its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import assert_never

from presk_rel.core.ir import (
    Apply,
    Binding,
    Call,
    Closure,
    Fold,
    Function,
    Grad,
    Jvp,
    Param,
    Prim,
    Program,
    Var,
    Vjp,
    operands,
)
from presk_rel.core.leaves import at, flows, is_one, leaves
from presk_rel.core.prims import PRIMS, PrimRow
from presk_rel.diagnostics import NOWHERE, Span
from presk_rel.diagnostics.record import mutable
from presk_rel.elab.ty import Idx, Key, TupleOf, Type

Row = tuple[str | int, ...]
Rows = dict[str, list[Row]]

INDEX_TO_REAL = "real of an index"
"""`real` is smooth on hyperparameters; an index tensor has no neighbours to be smooth in (spec: "Regularity")."""


def variable(function: str, name: Var, leaf: str = "") -> str:
    """The name of a variable, or of one of its leaves, in the relations."""
    return f"{function}/{name}.{leaf}" if leaf else f"{function}/{name}"


def core_facts(program: Program) -> Rows:
    """All Core facts of a program, which has been verified."""
    collector = _Collector()
    for function in program.functions.values():
        collector.function(function)
    for name, span in core_spans(program).items():
        collector.add("place", name, span.file, span.start.line, span.start.column)
    return collector.rows


def core_spans(program: Program) -> dict[str, Span]:
    """Where functions and variables come from; a parameter comes from its function."""
    spans: dict[str, Span] = {}
    for function in program.functions.values():
        named = [(function.name, function.span)]
        named += [(variable(function.name, param.name), function.span) for param in function.params]
        named += [(variable(function.name, binding.name), binding.span) for binding in function.bindings]
        spans.update((name, span) for name, span in named if span != NOWHERE)
    return spans


def liveness_facts(functions: Iterable[Function]) -> Rows:
    """Only the facts that liveness needs, for executors."""
    collector = _Collector()
    for function in functions:
        collector.reads(function)
    return collector.rows


@mutable
class _Collector:
    rows: Rows = field(default_factory=Rows)
    _leaves: dict[Type, tuple[str, ...]] = field(default_factory=dict[Type, tuple[str, ...]])
    _classes: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def add(self, relation: str, *row: str | int) -> None:
        self.rows.setdefault(relation, []).append(row)

    def leaves(self, ty: Type) -> tuple[str, ...]:
        if ty not in self._leaves:
            self._leaves[ty] = leaves(ty)
        return self._leaves[ty]

    def prim_class(self, name: str, row: PrimRow, operand: int) -> None:
        """The class of an operand; operands past the last class of the row have that class."""
        if (name, operand) not in self._classes:
            self._classes.add((name, operand))
            kind = "Disc" if name == INDEX_TO_REAL else row.regularity[min(operand, len(row.regularity) - 1)]
            self.add("prim_class", name, operand, kind)

    def function(self, function: Function) -> None:
        self.add("core_function", function.name)
        types = {param.name: param.type for param in function.params}
        for index, param in enumerate(function.params):
            self.parameter(function, index, param)
        for effect in function.uses:
            self.add("declared_effect", function.name, effect)
        for binding in function.bindings:
            self.binding(function.name, binding, types)
            types[binding.name] = binding.type
        for name, ty in types.items():
            self.keys(function.name, name, ty)
        for leaf in self.leaves(types[function.ret]):
            self.add("result", function.name, leaf, variable(function.name, function.ret, leaf))
        self.reads(function)

    def parameter(self, function: Function, index: int, param: Param) -> None:
        self.add("parameter", function.name, index, param.name)
        for leaf in self.leaves(param.type):
            self.add("formal", function.name, index, leaf, variable(function.name, param.name, leaf))

    def keys(self, fn: str, name: Var, ty: Type) -> None:
        if not isinstance(ty, Key | TupleOf):
            return
        for leaf in self.leaves(ty):
            if isinstance(at(ty, leaf), Key):
                self.add("is_key", variable(fn, name, leaf))

    def reads(self, function: Function) -> None:
        for index, binding in enumerate(function.bindings):
            self.add("bound", function.name, index, binding.name)
            for name in dict.fromkeys(operands(binding.op)):
                self.add("reads", function.name, index, binding.name, name)
        self.add("returned", function.name, function.ret)

    # ---------------------------------------------------------------------------------------------------- bindings

    def binding(self, fn: str, binding: Binding, types: dict[Var, Type]) -> None:
        site = variable(fn, binding.name)
        match binding.op:
            case Prim():
                self.prim(fn, binding, binding.op, types)
            case Call(callee, _, args):
                self.add("call", site, fn, callee)
                self.given(fn, site, enumerate(args), types)
                self.site_result(fn, binding)
            case Closure(callee, _, captured):
                self.add("closure", site, fn, callee)
                self.add("captures", site, len(captured))
                self.given(fn, site, enumerate(captured), types)
            case Grad(of) | Vjp(of) | Jvp(of):
                self.add("gradient", site, fn, variable(fn, of))
            case Apply(function, args):
                self.add("apply", site, fn, variable(fn, function))
                self.given(fn, site, enumerate(args), types)
                self.site_result(fn, binding)
            case Fold():
                self.fold(fn, binding, binding.op, types)
            case _:
                assert_never(binding.op)

    def prim(self, fn: str, binding: Binding, prim: Prim, types: dict[Var, Type]) -> None:
        row = PRIMS[prim.op]
        site = variable(fn, binding.name)
        if row.effect is not None:
            self.add("performs", site, fn, prim.op, row.effect)
            for arg in prim.args:
                if isinstance(types[arg], Key):
                    self.add("draws_from", site, variable(fn, arg), prim.op)
        given = tuple(types[arg] for arg in prim.args)
        name = INDEX_TO_REAL if prim.op == "real" and isinstance(given[0], Idx) else prim.op
        for operand, source, target in flows(prim, given, binding.type, ignored=row.shape_only):
            start = variable(fn, prim.args[operand], source)
            self.prim_class(name, row, operand)
            self.add("flows", start, variable(fn, binding.name, target), site, name, operand)

    def given(self, fn: str, site: str, args: Iterable[tuple[int, Var]], types: dict[Var, Type]) -> None:
        for index, arg in args:
            for leaf in self.leaves(types[arg]):
                self.add("given", site, index, leaf, variable(fn, arg, leaf))

    def site_result(self, fn: str, binding: Binding) -> None:
        for leaf in self.leaves(binding.type):
            self.add("outcome", variable(fn, binding.name), leaf, variable(fn, binding.name, leaf))

    def fold(self, fn: str, binding: Binding, fold: Fold, types: dict[Var, Type]) -> None:
        """The value of a fold is its initial accumulator (it may run no times), what the body makes of it, and what the
        body makes of that again. A scan's second component stacks accumulators."""
        site = variable(fn, binding.name)
        self.add("call", site, fn, fold.body)
        self.given(fn, site, enumerate((*fold.stacked, fold.acc, *fold.extras)), types)
        self.add("shared_from", site, len(fold.stacked) + 1)
        split = fold.scan and not is_one(binding.type)
        for leaf in self.leaves(types[fold.acc]):
            acc = variable(fn, binding.name, _component(0, leaf) if split else "" if fold.scan else leaf)
            self.add("outcome", site, leaf, acc)
            self.add("carries", variable(fn, fold.acc, leaf), acc, site)
            self.add("given", site, len(fold.stacked), leaf, acc)
            if split:
                self.add("carries", acc, variable(fn, binding.name, _component(1, leaf)), site)


def _component(index: int, leaf: str) -> str:
    return f"{index}.{leaf}" if leaf else str(index)
