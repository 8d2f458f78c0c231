"""The typed program as equations: each function is those of its lets, then its value ⟦f⟧(x₁, …). Nothing is rounded
and no order of summation is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from presk_rel.core.trampoline import Walk, run
from presk_rel.elab.ty import field_names
from presk_rel.notation.entries import Entries, eins
from presk_rel.notation.formula import (
    LIST,
    OPEN,
    Cat,
    Den,
    Dim,
    Equation,
    Formula,
    Num,
    Section,
    Sign,
    Sym,
    applied,
    at,
    each,
    listed,
    member,
    tuple_of,
)
from presk_rel.notation.of_core import operator
from presk_rel.notation.operations import operation
from presk_rel.notation.recurrence import Iteration, Letters, recurrence
from presk_rel.notation.scope import Scope
from presk_rel.notation.source_names import SourceNames
from presk_rel.notation.types import path, type_formula
from presk_rel.notation.walk import bound_names, nodes
from presk_rel.types.tree import (
    Binder,
    PTuple,
    PVar,
    TApply,
    TCall,
    TDim,
    TExpr,
    TField,
    TFn,
    TFunction,
    TGrad,
    TJvp,
    TLambda,
    TLet,
    TLiteral,
    TPattern,
    TPrim,
    TStackCall,
    TTheta,
    TTuple,
    TVar,
    TVjp,
    TypedProgram,
)


def typed_sections(program: TypedProgram, functions: Iterable[TFn], names: SourceNames) -> list[Section]:
    """Each function of the program that is asked for, in the order given."""
    methods = frozenset(f.name for f in program.functions if f.theta is not None)
    return [_Function(program, methods, names, f).section() for f in functions]


@dataclass(slots=True)
class _Block:
    """Equations in the making and the scope they stand in: a function's body, or that of a λ."""

    scope: Scope
    equations: list[Equation] = field(default_factory=list[Equation])


class _Function:
    def __init__(self, program: TypedProgram, methods: frozenset[str], names: SourceNames, fn: TFn) -> None:
        self.fn = fn
        self.methods = methods
        self.names = names
        scope = Scope()
        self.params = tuple(scope.bind(p) for p in fn.params)
        self.fields: frozenset[str] = frozenset()
        self.theta = Sym("θ")
        if fn.theta is not None:
            own = {p.name for p in fn.params}
            self.fields = frozenset(field_names(program.modules, fn.theta.instance)) - own
            scope.reserve(self.fields)
            self.theta = Sym("θ", int("θ" in own))
            scope.latest["θ"] = self.theta.primes
        every = nodes(fn.body)
        bound = {name for node in every for name in bound_names(node)}
        constants = {names.constant(node.span) or "" for node in every if isinstance(node, TLiteral)}
        self.letters = Letters({p.name for p in fn.params} | {*fn.dims} | bound | constants | self.fields)
        self.eins = eins(fn.body)
        self.block = _Block(scope)

    def section(self) -> Section:
        fn, block = self.fn, self.block
        value = applied(Den(fn.name), self.params)
        run(self.lets(fn.body, value, block))
        params = tuple((s, self.annotation(p)) for s, p in zip(self.params, fn.params, strict=True))
        return Section(fn.name, params, tuple(block.equations))

    def annotation(self, p: Binder) -> Formula:
        alias = self.names.aliases.get(p.span)
        return type_formula(p.type) if alias is None else path(alias)

    # ---------------------------------------------------------------------------------------------- equations

    def lets(self, body: TExpr, value: Formula, block: _Block) -> Walk[None]:
        """Adds the equations of a body's lets, and `value` = what they lead to."""
        while isinstance(body, TLet):
            yield self.equation(body.pattern, body.value, block)
            body = body.body
        yield self.equate(value, body, block)

    def equation(self, pattern: TPattern, value: TExpr, block: _Block) -> Walk[None]:
        if not isinstance(pattern, PVar):
            right = yield self.value(value, block)
            block.equations.append(Equation(_pattern(pattern, block.scope), right))
            return
        axes, right = yield self.by_entries(value, block)
        left = block.scope.bind(pattern.binder)
        block.equations.append(Equation(at(left, axes), right))

    def equate(self, left: Formula, value: TExpr, block: _Block) -> Walk[None]:
        axes, right = yield self.by_entries(value, block)
        block.equations.append(Equation(at(left, axes), right))

    def by_entries(self, e: TExpr, block: _Block) -> Walk[tuple[tuple[Sym, ...], Formula]]:
        """The entry of `e` at an index, where there is an ein to index; else no index and the whole of `e`."""
        entries = self.entries(block)
        axes = entries.axes(e)
        if axes is None:
            return (), (yield self.value(e, block))
        return axes, (yield entries.entry(e, axes))

    def entries(self, block: _Block) -> Entries:
        return Entries(lambda x: self.value(x, block), self.eins)

    # ------------------------------------------------------------------------------------------------- values

    def value(self, e: TExpr, block: _Block) -> Walk[Formula]:
        """The formula of an expression; recurrences it needs become equations of the block."""
        match e:
            case TVar(binder):
                return block.scope.shown.get(binder.id, Sym(binder.name))
            case TTheta():
                return self.theta
            case TLiteral(number, _, span):
                name = self.names.constant(span)
                return Num(number) if name is None else path(name)
            case TDim(dim):
                return Dim(dim)
            case TFunction(fn):
                return Den(fn)
            case TField(TTheta(), name) if name in self.fields:
                return Sym(name)
            case TField(base, name):
                return member((yield self.value(base, block)), Sym(name))
            case TPrim("proj", (0,), (TTuple((only,)),)):  # a renaming of axes (`types.check.ascription`)
                return (yield self.value(only, block))
            case TPrim():
                return (yield self.prim(e, block))
            case TTuple(items):
                return tuple_of((yield self.values(items, block)))
            case _:
                return (yield self.function_value(e, block))

    def function_value(
        self, e: TCall | TStackCall | TApply | TGrad | TVjp | TJvp | TLambda | TLet, block: _Block
    ) -> Walk[Formula]:
        match e:
            case TCall():
                return (yield self.call(e, block))
            case TStackCall():
                return (yield self.stack(e, block))
            case TApply(fn, args):
                return applied((yield self.value(fn, block)), (yield self.values(args, block)))
            case TGrad(fn):
                return operator("grad", (yield self.value(fn, block)))
            case TVjp(fn):
                return operator("vjp", (yield self.value(fn, block)))
            case TJvp(fn):
                return operator("jvp", (yield self.value(fn, block)))
            case TLambda():
                return (yield self.function(e, block))
            case TLet():
                return (yield self.where(e, block.scope.inner()))
            case _:
                assert_never(e)

    def values(self, items: tuple[TExpr, ...], block: _Block) -> Walk[tuple[Formula, ...]]:
        out: list[Formula] = []
        for item in items:
            out.append((yield self.value(item, block)))
        return tuple(out)

    def prim(self, e: TPrim, block: _Block) -> Walk[Formula]:
        entries = self.entries(block)
        axes = entries.axes(e)
        if axes is not None:
            entry = yield entries.entry(e, axes)
            return each(axes, entry) if axes else entry
        args = yield self.values(e.args, block)
        return operation(e.op, e.attrs, args, tuple(a.type for a in e.args), e.type)

    def call(self, e: TCall, block: _Block) -> Walk[Formula]:
        """Of a sub-module's function by the path of the sub-module, of the module's own without its parameters."""
        given, fn = e.args, Den(e.fn)
        if e.fn in self.methods and given:
            through = _path(given[0])
            if through is not None:
                given = given[1:]
                fn = Den(".".join((*through, e.fn.rpartition(".")[2]))) if through else fn
        return applied(fn, (yield self.values(given, block)))

    def stack(self, e: TStackCall, block: _Block) -> Walk[Formula]:
        through = _path(e.stacked)
        tree: Formula = self.theta
        if through is None:
            tree = yield self.value(e.stacked, block)
        for name in through or ():
            tree = member(tree, Sym(name))
        start = yield self.value(e.acc, block)
        extras = yield self.values(e.extras, block)
        it = Iteration(e.fn, e.count, start, lambda index, old: (at(tree, (index,)), old, *extras))
        defined, last, _ = recurrence(it, self.letters)
        block.equations.append(defined)
        return last

    def function(self, e: TLambda, block: _Block) -> Walk[Formula]:
        scope = block.scope.inner()
        if isinstance(e.pattern, PTuple):
            shown = _pattern(e.pattern, scope, by_lambda=True)
        else:
            shown = scope.shadow(e.pattern.binder if e.pattern is not None else e.param)
            scope.shown[e.param.id] = shown
        if e.more:
            shown = tuple_of((shown, *(scope.shadow(b) for b in e.more)))
        body = yield self.where(e.body, scope)
        return Cat(((Sign("λ"), LIST), (shown, LIST), (Sign("."), LIST), (Sign("space"), LIST), (body, LIST)), LIST)

    def where(self, body: TExpr, scope: Scope) -> Walk[Formula]:
        """A body inside an expression: its value, where its lets say what."""
        block = _Block(scope)
        while isinstance(body, TLet):
            yield self.equation(body.pattern, body.value, block)
            body = body.body
        value = yield self.value(body, block)
        if not block.equations:
            return value
        said = tuple(Cat(((e.left, LIST), (Sign("="), LIST), (e.right, OPEN)), OPEN) for e in block.equations)
        return Cat(((value, OPEN), (Sign("where"), LIST), *listed(said)), LIST)


def _path(e: TExpr) -> tuple[str, ...] | None:
    """The fields that lead from the function's own tree to `e`; None where `e` starts elsewhere."""
    fields: list[str] = []
    while isinstance(e, TField):
        fields.append(e.name)
        e = e.base
    return tuple(reversed(fields)) if isinstance(e, TTheta) else None


def _pattern(pattern: TPattern, scope: Scope, *, by_lambda: bool = False) -> Formula:
    match pattern:
        case None:
            return Sym("_")
        case PVar(binder):
            return scope.shadow(binder) if by_lambda else scope.bind(binder)
        case PTuple(items):
            return tuple_of(tuple(_pattern(p, scope, by_lambda=by_lambda) for p in items))
        case _:
            assert_never(pattern)
