"""What a Core function computes, as hash-consed canonical terms: the checker's own reading of PSK-Core.

Two functions with the same denotation here compute the same real numbers. It serves to check that inlining, the
encoding of the proof's terms and the extraction back to Core lost nothing, and shares no code with them (nor with the
executors). Calls, closures, trees and tuples are resolved; folds are read by `egraph.denote_folds`.

A body is read once per reading of a program: what it computes depends on the function, its dims, its arguments and how
deep it is, and these are the key under which it is kept. A fold that needs a body which is not read yet says so
(`Unread`), and is read again once the body is: so no nest is too deep for the stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from presk_rel.core.ir import Apply, Binding, Call, Closure, Fold, Function, Grad, Jvp, Prim, Program, Vjp
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.denote_terms import Branch, FunctionValue, Lengths, Tensor, Terms, Value, shape_of
from presk_rel.elab.ty import Idx, Mask, Real, Shape, TupleOf, Type
from presk_rel.smt.linear import Linear, symbol

MOST_BINDINGS = 1_000_000
"""Reading folds up to laws reads their bodies with what they are given, so one body several times where that differs,
and folds in it as often again; beyond this the checker gives up."""

BodyKey = tuple[str, tuple[tuple[str, Linear], ...], tuple[Value, ...], int]
"""All that the reading of a body depends on: the function, its dims, its arguments, and how many folds it is in."""


def open_axes(shape: Shape) -> Lengths:
    """The axes that a prefix stands for in the entry, which nothing can count: one of a length like no other."""
    return () if shape.prefix is None else (symbol(shape.prefix),)


@dataclass(frozen=True, slots=True)
class Local:
    """A value with its declared type, generic in the function's dims and prefix: alignments are read off this type."""

    value: Value
    type: Type


class Unread(Exception):
    """A fold cannot be read before this body is."""

    def __init__(self, key: BodyKey) -> None:
        super().__init__()
        self.key = key


@dataclass(slots=True)
class Frame:
    """An activation: of a body that is kept under `key`, or of a call (None). `fold` is the fold at `pc` as far as it
    is read."""

    function: Function
    dims: dict[str, Linear]
    prefixes: dict[str, Lengths]
    env: dict[str, Local]
    level: int = 0
    pc: int = 0
    key: BodyKey | None = None
    fold: Any = None

    def lengths(self, shape: Shape) -> Lengths:
        front, rest = ([a.length.substitute(self.dims) for a in run] for run in (shape.front, shape.axes))
        return (*front, *self.prefixes.get(shape.prefix or "", ()), *rest)

    def lead(self, shape: Shape) -> int:
        """How many axes stand before those that a type names."""
        return len(shape.front) + len(self.prefixes.get(shape.prefix or "", ()))

    def positions(self, where: tuple[int, ...], small: Shape, large: Shape) -> tuple[int, ...]:
        """An alignment of axes after the prefixes as positions of the whole shapes."""
        return (*range(self.lead(small)), *(i + self.lead(large) for i in where))

    def position(self, place: object, ty: Type) -> int:
        """The position of an axis given by name, or by number from the front after any prefix."""
        shape = shape_of(ty)
        found = [i for i, a in enumerate(shape.axes) if place in (a.name, i)]
        if not found:
            raise PreskBug("denote", f"no axis `{place}` in {ty}")
        return found[0] + self.lead(shape)


@dataclass(slots=True)
class Reading:
    """One reading of a program: the table of terms, and the laws up to which folds are read (`egraph.denote_folds`,
    which finds in `folds` the fold of a term). `bodies` are the values of the bodies read so far."""

    program: Program
    terms: Terms
    laws: frozenset[str] = frozenset()
    folds: dict[int, Any] = field(default_factory=dict[int, Any])
    bodies: dict[BodyKey, Value] = field(default_factory=dict[BodyKey, "Value"])
    bindings_left: int = MOST_BINDINGS

    def body(self, name: str, dims: dict[str, Linear], args: list[Value], level: int) -> Value:
        """The value of a body; Unread where it has to be read first."""
        key = (name, tuple(sorted(dims.items())), tuple(args), level)
        if key not in self.bodies:
            raise Unread(key)
        return self.bodies[key]


def denote(program: Program, entry: str, terms: Terms) -> Value:
    """The value of `entry` on its own parameters, as canonical terms. Call depth is bounded by memory, not by the
    stack."""
    reading = Reading(program, terms)
    return run(reading, _start(reading, entry))


def denote_all(program: Program, entry: str, terms: Terms, laws: frozenset[str]) -> dict[str, Value]:
    """All values of `entry` by name, folds read up to `laws`."""
    reading = Reading(program, terms, laws)
    frame = _start(reading, entry)
    run(reading, frame)
    return {name: local.value for name, local in frame.env.items()}


def _start(reading: Reading, entry: str) -> Frame:
    function = reading.program.functions[entry]
    terms = reading.terms

    def parameter(path: str, ty: Type) -> Value:
        if isinstance(ty, Real | Mask | Idx):
            front, rest = ([a.length for a in run] for run in (ty.shape.front, ty.shape.axes))
            return terms.make("input", (path,), (), (*front, *open_axes(ty.shape), *rest))
        return terms.make("input", (path,), (), ())

    env: dict[str, Local] = {}
    for p in function.params:
        env[p.name] = Local(terms.leaves_of(reading.program.modules, p.type, parameter, p.name), p.type)
    return Frame(function, {}, _open(function), env)


def _open(function: Function) -> dict[str, Lengths]:
    """What the prefixes of an entry stand for."""
    found: dict[str, Lengths] = {}
    pending = [p.type for p in function.params]
    while pending:
        match pending.pop():
            case Real(shape) | Mask(shape) | Idx(_, shape) if shape.prefix is not None:
                found[shape.prefix] = open_axes(shape)
            case TupleOf(items):
                pending += items
            case _:
                continue
    return found


def run(reading: Reading, frame: Frame) -> Value:
    """The value of an activation."""
    stack = [frame]
    while True:
        top = stack[-1]
        if top.pc < len(top.function.bindings):
            inner = _advance(reading, top)
            if inner is not None:
                stack.append(inner)
            continue
        returned = top.env[top.function.ret].value
        stack.pop()
        if not stack:
            return returned
        if top.key is not None:  # the fold that needs it is read again
            reading.bodies[top.key] = returned
            continue
        caller = stack[-1]
        bound = caller.function.bindings[caller.pc]
        caller.env[bound.name] = Local(returned, bound.type)
        caller.pc += 1


def _advance(reading: Reading, top: Frame) -> Frame | None:
    """Read the next binding; the frame that has to return first, if there is one."""
    binding = top.function.bindings[top.pc]
    inner = _enter(reading.program, top, binding)
    if inner is not None:
        return inner
    reading.bindings_left -= 1
    if reading.bindings_left < 0:
        raise PreskBug("denote", "the folds are too many and too deep to be checked")
    try:
        value = _simple(reading, top, binding)
    except Unread as needed:
        name, dims, args, level = needed.key
        return frame_of(reading.program.functions[name], dict(dims), list(args), level, needed.key)
    top.env[binding.name], top.fold = Local(value, binding.type), None
    top.pc += 1
    return None


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
    return frame_of(program.functions[fn], dict(dims), values, frame.level)


def frame_of(
    function: Function, dims: dict[str, Linear], values: list[Value], level: int, key: BodyKey | None = None
) -> Frame:
    env = {p.name: Local(v, p.type) for p, v in zip(function.params, values, strict=True)}
    return Frame(function, dims, _prefixes(function, values), env, level, key=key)


def _prefixes(function: Function, values: list[Value]) -> dict[str, Lengths]:
    """The leading axes that each prefix of the callee stands for, read off its arguments, also those in tuples."""
    found: dict[str, Lengths] = {}
    pending = [(p.type, v) for p, v in zip(function.params, values, strict=True)]
    while pending:
        match pending.pop():
            case ((Real(shape) | Mask(shape) | Idx(_, shape)), Tensor(_, lengths)) if shape.prefix is not None:
                found[shape.prefix] = lengths[len(shape.front) : len(lengths) - len(shape.axes)]
            case TupleOf(items), Branch(parts):
                pending += [(t, v) for t, (_, v) in zip(items, parts, strict=True)]
            case _:
                continue
    return found


def _simple(reading: Reading, frame: Frame, binding: Binding) -> Value:
    from presk_rel.egraph.denote_folds import read_fold
    from presk_rel.egraph.denote_prims import Primitive

    match binding.op:
        case Prim() as prim:
            return Primitive(reading.program.modules, frame, binding, prim, reading.terms).value()
        case Closure(fn, dim_args, captured):
            dims = tuple((d, form.substitute(frame.dims)) for d, form in dim_args)
            return FunctionValue(fn, dims, tuple(frame.env[c].value for c in captured))
        case Fold() as fold:
            return read_fold(reading, frame, fold)
        case Grad() | Vjp() | Jvp():
            raise PreskBug("denote", f"`{binding.name}`: a derivative is left after differentiation")
        case Call() | Apply():
            raise PreskBug("denote", "unreachable")
