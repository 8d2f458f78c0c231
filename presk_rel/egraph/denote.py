"""What a Core function computes, as hash-consed canonical terms: the checker's own reading of PSK-Core.

Two functions with the same denotation here compute the same real numbers. It serves to check that inlining, the
encoding of the proof's terms and the extraction back to Core lost nothing, and shares no code with them (nor with the
executors). Calls, closures, trees and tuples are resolved; a fold is a term whose attribute is the denotation of its
body on bound variables, so that bodies are compared up to their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Grad, Jvp, Prim, Program, Vjp
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.denote_terms import (
    Branch,
    FunctionValue,
    Lengths,
    Tensor,
    Terms,
    Value,
    leaves,
    map_leaves,
    shape_of,
)
from presk_rel.elab.ty import Idx, Mask, Real, Shape, Type, map_dims
from presk_rel.smt.linear import Linear, constant

DEEPEST_FOLDS = 50
"""Folds inside folds; beyond this the checker gives up rather than recurse."""


@dataclass(frozen=True, slots=True)
class Local:
    """A value with its declared type, generic in the function's dims and prefix: alignments are read off this type."""

    value: Value
    type: Type


@dataclass(slots=True)
class Frame:
    function: Function
    dims: dict[str, Linear]
    prefix: Lengths
    env: dict[str, Local]
    level: int = 0
    pc: int = 0

    def lengths(self, shape: Shape) -> Lengths:
        lead = self.prefix if shape.prefix is not None else ()
        return (*lead, *(a.length.substitute(self.dims) for a in shape.axes))

    def positions(self, where: tuple[int, ...], small: Shape, large: Shape) -> tuple[int, ...]:
        """An alignment of axes after the prefixes as positions of the whole shapes."""
        lead = len(self.prefix)
        offset = lead if large.prefix is not None else 0
        head = tuple(range(lead)) if small.prefix is not None else ()
        return (*head, *(i + offset for i in where))

    def position(self, place: object, ty: Type) -> int:
        """The position of an axis given by name, or by number from the front after any prefix."""
        shape = shape_of(ty)
        found = [i for i, a in enumerate(shape.axes) if place in (a.name, i)]
        if not found:
            raise PreskBug("denote", f"no axis `{place}` in {ty}")
        return found[0] + (len(self.prefix) if shape.prefix is not None else 0)


def denote(program: Program, entry: str, terms: Terms, dims: Mapping[str, int] | None = None) -> Value:
    """The value of `entry` on its own parameters, as canonical terms, at `dims` where they are bound. Call depth is
    bounded by memory, not by the stack."""
    function = program.functions[entry]
    at = {name: constant(n) for name, n in (dims or {}).items()}

    def parameter(path: str, ty: Type) -> Value:
        if isinstance(ty, Real | Mask | Idx):
            if ty.shape.prefix is not None:
                raise PreskBug("denote", f"`{path}` has an open prefix: {ty}")
            return terms.make("input", (path,), (), tuple(a.length for a in ty.shape.axes))
        return terms.make("input", (path,), (), ())

    env: dict[str, Local] = {}
    for p in function.params:
        ty = map_dims(p.type, lambda d: d.substitute(at))
        env[p.name] = Local(terms.leaves_of(program.modules, ty, parameter, p.name), p.type)
    return _run(program, Frame(function, at, (), env), terms)


def _run(program: Program, frame: Frame, terms: Terms) -> Value:
    stack = [frame]
    while True:
        top = stack[-1]
        if top.pc == len(top.function.bindings):
            returned = top.env[top.function.ret].value
            stack.pop()
            if not stack:
                return returned
            caller = stack[-1]
            bound = caller.function.bindings[caller.pc]
            caller.env[bound.name] = Local(returned, bound.type)
            caller.pc += 1
            continue
        binding = top.function.bindings[top.pc]
        inner = _enter(program, top, binding)
        if inner is not None:
            stack.append(inner)
            continue
        top.env[binding.name] = Local(_simple(program, top, binding, terms), binding.type)
        top.pc += 1


def _enter(program: Program, frame: Frame, binding: Binding) -> Frame | None:
    """The callee's frame of a call or an application; None for every other operation."""
    match binding.op:
        case Call(fn, dim_args, args):
            values = [frame.env[a].value for a in args]
            dims = tuple((d, form.substitute(frame.dims)) for d, form in dim_args)
        case Apply(fn, args):
            closure = frame.env[fn].value
            if not isinstance(closure, FunctionValue):
                raise PreskBug("denote", f"`{fn}` is applied but is no function")
            fn, dims = closure.fn, closure.dims
            values = [*closure.captured, *(frame.env[a].value for a in args)]
        case _:
            return None
    return _frame(program.functions[fn], dict(dims), values, frame.level)


def _frame(function: Function, dims: dict[str, Linear], values: list[Value], level: int) -> Frame:
    env = {p.name: Local(v, p.type) for p, v in zip(function.params, values, strict=True)}
    return Frame(function, dims, _prefix(function, values), env, level)


def _prefix(function: Function, values: list[Value]) -> Lengths:
    """The leading axes that the callee's `...` stands for: read off the first argument whose type has it."""
    for param, value in zip(function.params, values, strict=True):
        match param.type, value:
            case ((Real(shape) | Mask(shape) | Idx(_, shape)), Tensor(_, lengths)) if shape.prefix is not None:
                return lengths[: len(lengths) - len(shape.axes)]
            case _:
                continue
    return ()


def _simple(program: Program, frame: Frame, binding: Binding, terms: Terms) -> Value:
    from presk_rel.egraph.denote_prims import Primitive

    match binding.op:
        case Prim() as prim:
            return Primitive(program.modules, frame, binding, prim, terms).value()
        case Closure(fn, dim_args, captured):
            dims = tuple((d, form.substitute(frame.dims)) for d, form in dim_args)
            return FunctionValue(fn, dims, tuple(frame.env[c].value for c in captured))
        case Fold() as fold:
            return _fold(program, frame, fold, terms)
        case Grad() | Vjp() | Jvp():
            raise PreskBug("denote", f"`{binding.name}`: a derivative is left after differentiation")
        case Call() | Apply():
            raise PreskBug("denote", "unreachable")


def _fold(program: Program, frame: Frame, fold: Fold, terms: Terms) -> Value:
    """One term per leaf of the result: its attribute is the body on bound variables, its children what it reads."""
    level = frame.level + 1
    if level > DEEPEST_FOLDS:
        raise PreskBug("denote", "folds nest too deeply to be checked")
    count = fold.count.substitute(frame.dims)
    stacked = [frame.env[s].value for s in fold.stacked]
    acc, extras = frame.env[fold.acc].value, [frame.env[e].value for e in fold.extras]
    bound = [_bound(terms, level, i, v, sliced=i < len(stacked)) for i, v in enumerate([*stacked, acc, *extras])]
    dims = {d: form.substitute(frame.dims) for d, form in fold.dim_args}
    body = _run(program, _frame(program.functions[fold.body], dims, bound, level), terms)
    children = tuple(leaf for v in [*stacked, acc, *extras] for leaf in leaves(v))
    form = (count, fold.reverse, level, len(stacked), tuple(leaf.id for leaf in leaves(body)))
    last = _results(terms, "fold", form, children, body, None)
    if not fold.scan:
        return last
    return Branch((("0", last), ("1", _results(terms, "scan", form, children, body, count))))


def _bound(terms: Terms, level: int, index: int, value: Value, *, sliced: bool) -> Value:
    """A bound variable of a fold's body, of the form of the argument (of a slice of it, if it is stacked)."""
    numbers = iter(range(len(leaves(value))))

    def leaf(x: Tensor) -> Value:
        lengths = x.lengths[1:] if sliced else x.lengths
        return terms.make("bound", (level, index, next(numbers), lengths), (), lengths)

    return map_leaves(leaf, value)


def _results(
    terms: Terms, op: str, form: tuple[object, ...], children: tuple[Tensor, ...], body: Value, count: Linear | None
) -> Value:
    numbers = iter(range(len(leaves(body))))

    def leaf(x: Tensor) -> Value:
        lengths = x.lengths if count is None else (count, *x.lengths)
        return terms.make(op, (*form, next(numbers)), children, lengths)

    return map_leaves(leaf, body)
