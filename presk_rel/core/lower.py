"""Typed program → PSK-Core (spec: "What lowering does").

Functions stay generic in their dims, the parameter tree becomes explicit, lambdas are lifted (`core.lambdas`), a call
through `stack` is a fold, and every module gets its initializer (`core.initializers`), every optimizer block its three
functions (`core.optimizer`).

    fn apply(x : ℝ[..., In]) -> ℝ[..., Out] = x · w + b

    fn Linear.apply{In Out}(θ : params Linear{In, Out}, x : ℝ[..., In]) -> ℝ[..., Out] {
      w : ℝ[In, Out] = θ.w
      %3 : ℝ[..., Out] = dot x, w
      b : ℝ[Out] = θ.b
      %5 : ℝ[..., Out] = add %3, b
      return %5
    }

Operands are evaluated left to right (`_arguments` says the exception); equal subexpressions are not merged. Depth of
the source is no limit: walks are generators on a trampoline.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, assert_never

from presk_rel.core.initializers import MAX_LAYERS, initializers
from presk_rel.core.ir import (
    Apply,
    Attr,
    Binding,
    Call,
    Closure,
    Fold,
    Function,
    Grad,
    Jvp,
    Op,
    Param,
    Prim,
    Program,
    Vjp,
)
from presk_rel.core.lambdas import Captured, captured_by
from presk_rel.core.names import Fresh, Numbered, is_name
from presk_rel.core.optimizer import optimizer_functions
from presk_rel.core.shapes import slice_type
from presk_rel.core.trampoline import Walk, run
from presk_rel.diagnostics import PreskBug, Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import TupleOf, Type
from presk_rel.smt.linear import constant, symbol
from presk_rel.types.tree import (
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

Mode = Literal["inference", "training"]
"""How `dropout(rate, key, x)` is read: as x, or as x times a mask drawn from the key (spec: "Dropout takes a key")."""


@record
class Reading:
    """What lowering may choose. `unroll_stack`: a call through `stack{L}` of constant L (at most `MAX_LAYERS`) becomes
    L calls on slices of the tree, not a fold."""

    mode: Mode = "inference"
    unroll_stack: bool = False


def lower(program: TypedProgram, mode: Mode = "inference", *, unroll_stack: bool = False) -> Program:
    """The Core of a checked program: its functions in order, each followed by its lambdas, then the initializers and
    the optimizers. Cannot fail on what the type checker accepts."""
    reading = Reading(mode, unroll_stack)
    functions: dict[str, Function] = {}
    for fn in program.functions:
        for lowered in _with_lambdas(fn, reading):
            functions[lowered.name] = lowered
    functions.update(initializers(program.modules))
    names = Fresh(functions)
    for spec in program.optimizers:
        functions.update((f.name, f) for f in optimizer_functions(spec, names))
    declared = tuple((f.name, f.span) for f in program.functions)
    return Program(dict(program.modules), functions, program.bounds, declared)


@record
class _Lifted:
    """A lambda that waits to be lowered: its Core name, what it captures, and itself."""

    name: str
    captured: tuple[Captured, ...]
    node: TLambda


def _with_lambdas(fn: TFn, reading: Reading) -> list[Function]:
    waiting: deque[_Lifted] = deque()
    body = _Body(fn, fn.name, waiting, reading)
    if fn.theta is not None:
        body.theta = body.param("θ", fn.theta)
    for binder in fn.params:
        body.env[binder.id] = body.param(binder.name, binder.type)
    out = [body.finish(run(body.expr(fn.body)), fn.result, fn.span)]
    while waiting:
        out.append(_lambda(fn, waiting.popleft(), waiting, reading))
    return out


def _lambda(fn: TFn, lifted: _Lifted, waiting: deque[_Lifted], reading: Reading) -> Function:
    """`f.lambda0(captured…, param)`, and what other parameters it has."""
    node = lifted.node
    body = _Body(fn, lifted.name, waiting, reading)
    for c in lifted.captured:
        name = body.param(c.name, c.type)
        if c.binder is None:
            body.theta = name
        else:
            body.env[c.binder] = name
    argument = body.param(node.param.name, node.param.type)
    body.env[node.param.id] = argument
    for binder in node.more:
        body.env[binder.id] = body.param(binder.name, binder.type)
    body.bind(node.pattern, argument, node.param.type, node.span)
    if not isinstance(node.type, FunctionType):
        raise PreskBug("lower", f"a lambda of type {node.type}")
    return body.finish(run(body.expr(node.body)), node.type.result, node.span)


class _Body:
    """One function in the making. `env` maps binders to names of Core."""

    def __init__(self, fn: TFn, name: str, waiting: deque[_Lifted], reading: Reading) -> None:
        self.fn = fn
        self.reading = reading
        self.name = name
        self.waiting = waiting
        self.env: dict[int, str] = {}
        self.theta: str | None = None
        self.names = Numbered()
        self.params: list[Param] = []
        self.bindings: list[Binding] = []
        self.lambdas = 0

    def param(self, name: str, ty: Type) -> str:
        new = self.names.new(name if is_name(name) else None)
        self.params.append(Param(new, ty))
        return new

    def emit(self, ty: Type, op: Op, span: Span, want: str | None = None) -> str:
        name = self.names.new(want)
        self.bindings.append(Binding(name, ty, op, span))
        return name

    def finish(self, ret: str, result: Type, span: Span) -> Function:
        fn = self.fn
        return Function(self.name, fn.dims, tuple(self.params), result, tuple(self.bindings), ret, fn.uses, span)

    # ------------------------------------------------------------------------------------------------- expressions

    def expr(self, e: TExpr, want: str | None = None) -> Walk[str]:
        """Binds what `e` needs and gives the name of its value, `want` where that is a new binding."""
        while isinstance(e, TLet):
            name = e.pattern.binder.name if isinstance(e.pattern, PVar) else None
            value = yield self.expr(e.value, name)
            self.bind(e.pattern, value, e.value.type, e.span)
            e = e.body
        match e:
            case TVar(binder):
                return self.env[binder.id]
            case TTheta():
                return self._theta()
            case TLambda():
                return self._closure(e, want)
            case TPrim("dropout", (rate,), (key, x)):
                return (yield self._dropout(e, rate, key, x, want))
            case TStackCall() if self._unrolls(e):
                return (yield self._unrolled(e, want))
            case _:
                op = yield self._op(e)
                if want is None and isinstance(e, TField):
                    want = e.name
                return self.emit(e.type, op, e.span, want)

    def _dropout(self, e: TPrim, rate: Attr, key: TExpr, x: TExpr, want: str | None) -> Walk[str]:
        if self.reading.mode == "inference":
            return (yield self.expr(x, want))
        k, value = yield self._all((key, x))
        mask = self.emit(e.type, Prim("dropout_mask", (rate,), (k, value)), e.span)
        return self.emit(e.type, Prim("mul", (), (value, mask)), e.span, want)

    def _unrolls(self, e: TStackCall) -> bool:
        return self.reading.unroll_stack and e.count.is_constant and 0 <= e.count.const <= MAX_LAYERS

    def _unrolled(self, e: TStackCall, want: str | None) -> Walk[str]:
        """One call per layer, on its slice of the stacked tree."""
        tree, value, *extras = yield self._arguments((e.stacked, e.acc, *e.extras))
        layer = slice_type(e.count, e.stacked.type)
        if layer is None:
            raise PreskBug("lower", f"{e.stacked.type} is no stack of {e.count}")
        last = int(e.count.const) - 1
        for i in range(last + 1):
            part = self.emit(layer, Prim("slice_params", (constant(i),), (tree,)), e.span)
            call = Call(e.fn, e.dim_args, (part, value, *extras))
            value = self.emit(e.type, call, e.span, want if i == last else None)
        return value

    def _theta(self) -> str:
        if self.theta is None:
            raise PreskBug("lower", f"{self.name} has no parameter tree")
        return self.theta

    def _op(
        self,
        e: TLiteral | TDim | TPrim | TField | TCall | TStackCall | TFunction | TApply | TGrad | TVjp | TJvp | TTuple,
    ) -> Walk[Op]:
        match e:
            case TLiteral(value):
                return Prim("const", (value,), ())
            case TDim(dim):
                return Prim("dim", (dim,), ())
            case TPrim(op, attrs, args):
                return Prim(op, attrs, (yield self._all(args)))
            case TField(base, name):
                return Prim("field", (name,), ((yield self.expr(base)),))
            case TCall(fn, dim_args, args):
                return Call(fn, dim_args, (yield self._arguments(args)))
            case TStackCall(count, fn, dim_args, stacked, acc, extras):
                tree, start, *rest = yield self._arguments((stacked, acc, *extras))
                return Fold(count, fn, dim_args, (tree,), start, tuple(rest))
            case TFunction(fn, dim_args):
                return Closure(fn, dim_args, ())
            case TApply(fn, args):
                applied, *values = yield self._all((fn, *args))
                return Apply(applied, tuple(values))
            case TGrad(fn):
                return Grad((yield self.expr(fn)))
            case TVjp(fn):
                return Vjp((yield self.expr(fn)))
            case TJvp(fn):
                return Jvp((yield self.expr(fn)))
            case TTuple(items):
                return Prim("tuple", (), (yield self._all(items)))
            case _:
                assert_never(e)

    def _all(self, es: tuple[TExpr, ...]) -> Walk[tuple[str, ...]]:
        names: list[str] = []
        for e in es:
            names.append((yield self.expr(e)))
        return tuple(names)

    def _arguments(self, es: tuple[TExpr, ...]) -> Walk[tuple[str, ...]]:
        """Left to right, but the parameter tree of a module's function is read last, just before the call: so that
        `l1.apply(x) |> gelu |> l2.apply` reads `l2` after `gelu`, as the spec's excerpt of MLP.apply does."""
        if not es or not isinstance(es[0], TField):
            return (yield self._all(es))
        rest = yield self._all(es[1:])
        return ((yield self.expr(es[0])), *rest)

    def _closure(self, e: TLambda, want: str | None) -> str:
        captured = captured_by(e)
        name = f"{self.name}.lambda{self.lambdas}"
        self.lambdas += 1
        self.waiting.append(_Lifted(name, captured, e))
        given = tuple(self._theta() if c.binder is None else self.env[c.binder] for c in captured)
        return self.emit(e.type, Closure(name, tuple((d, symbol(d)) for d in self.fn.dims), given), e.span, want)

    # ---------------------------------------------------------------------------------------------------- patterns

    def bind(self, pattern: TPattern, value: str, ty: Type, span: Span) -> None:
        """Bind the variables of a pattern to (projections of) a value."""
        match pattern:
            case None:
                return
            case PVar(binder):
                self.env[binder.id] = value
            case PTuple(items):
                if not isinstance(ty, TupleOf):
                    raise PreskBug("lower", f"a tuple pattern against {ty}")
                for i, item in enumerate(items):
                    if item is None:
                        continue
                    want = item.binder.name if isinstance(item, PVar) else None
                    part = self.emit(ty.items[i], Prim("proj", (i,), (value,)), span, want)
                    self.bind(item, part, ty.items[i], span)
            case _:
                assert_never(pattern)
