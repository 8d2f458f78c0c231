"""PSK-Core as equations, one per binding, with the notes that say what each was made for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from presk_rel.core.ein import ein_spec
from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Grad, Jvp, Op, Prim, Program, Vjp
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Type
from presk_rel.notation.formula import (
    ATOM,
    LIST,
    OPEN,
    Cat,
    Den,
    Equation,
    Formula,
    Section,
    Sign,
    Sym,
    Word,
    applied,
    at,
    tuple_of,
)
from presk_rel.notation.operations import contraction, operation
from presk_rel.notation.recurrence import Iteration, Letters, recurrence
from presk_rel.notation.types import type_formula


def core_sections(program: Program, functions: Iterable[Function]) -> list[Section]:
    """Each function: an equation per binding, an iteration as its recurrence first, then the function's value."""
    return [_Function(program, f).section() for f in functions]


class _Function:
    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function
        self.types: dict[str, Type] = {p.name: p.type for p in function.params}
        self.types.update((b.name, b.type) for b in function.bindings)
        self.letters = Letters({*self.types, *function.dims})

    def section(self) -> Section:
        f = self.function
        params = tuple((Sym(p.name), type_formula(p.type)) for p in f.params)
        equations = [e for b in f.bindings for e in self.equations(b)]
        value = applied(Den(f.name), tuple(Sym(p.name) for p in f.params))
        return Section(f.name, params, (*equations, Equation(value, Sym(f.ret))))

    def equations(self, b: Binding) -> list[Equation]:
        match b.op:
            case Fold():
                return self.fold(b, b.op)
            case Prim("ein", (str(text),), args):
                spec = ein_spec(text)
                if spec is None:
                    raise PreskBug("notation", f"{b.name} is no contraction: {text[:200]}")
                bound = {a: Sym(a) for axes in spec.operands for a in axes}
                factors = tuple(at(Sym(a), tuple(map(Sym, axes))) for a, axes in zip(args, spec.operands, strict=True))
                entry = contraction(spec, factors, bound)
                return [Equation(at(Sym(b.name), tuple(map(Sym, spec.result))), entry, b.note)]
            case _:
                return [Equation(Sym(b.name), self.formula(b.op, b.type), b.note)]

    def formula(self, op: Op, ty: Type) -> Formula:
        match op:
            case Prim(name, attrs, args):
                return operation(name, attrs, tuple(map(Sym, args)), tuple(self.types[a] for a in args), ty)
            case Call(fn, _, args):
                return applied(Den(fn), tuple(map(Sym, args)))
            case Closure(fn, _, captured):
                missing = len(self.program.functions[fn].params) - len(captured)
                holes: tuple[Formula, ...] = (Sign("·"),) * missing
                return applied(Den(fn), (*map(Sym, captured), *holes)) if captured else Den(fn)
            case Grad(fn):
                return operator("grad", Sym(fn))
            case Vjp(fn):
                return operator("vjp", Sym(fn))
            case Jvp(fn):
                return operator("jvp", Sym(fn))
            case Apply(fn, args):
                return applied(Sym(fn), tuple(map(Sym, args)))
            case Fold():
                raise PreskBug("notation", "a fold is written as its recurrence")
            case _:
                assert_never(op)

    def fold(self, b: Binding, op: Fold) -> list[Equation]:
        def arguments(index: Formula, old: Formula) -> tuple[Formula, ...]:
            return (*(at(Sym(s), (index,)) for s in op.stacked), old, *map(Sym, op.extras))

        it = Iteration(op.body, op.count, Sym(op.acc), arguments, op.reverse)
        defined, last, stack = recurrence(it, self.letters)
        return [defined, Equation(Sym(b.name), tuple_of((last, stack)) if op.scan else last, b.note)]


def operator(name: str, fn: Formula) -> Formula:
    """`grad f`"""
    return Cat(((Word(name), LIST), (Sign("space"), LIST), (fn, ATOM)), OPEN)
