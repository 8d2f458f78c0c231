"""The interpreter of PSK-Core on exact values: any program without `grad`, on any kernel.

A loop over a stack of activations, never Python's recursion, so a chain of calls may be as deep as the program's. A
call evaluates the callee's dims in the caller (one the checker left unconstrained stays unbound: only a use of it
fails) and binds the callee's prefixes from the arguments; a binding's value takes its axis names from the binding's
type.

Nothing is freed before its activation ends unless `last_use` says where a name is read last: rows
`(function, name, number of the binding)` of the liveness relation of rules.dl. A value is then dropped by its last
reader, a call's argument included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from time import perf_counter

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
    Prim,
    Program,
    Vjp,
    operands,
)
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Idx, Mask, Params, Real, TupleOf, Type, field_type
from presk_rel.exec.exact.kernel import Kernel, Site, owner
from presk_rel.exec.exact.rows import ROWS
from presk_rel.exec.exact.rows_values import draw
from presk_rel.exec.exact.step import Draws, Step
from presk_rel.exec.shapes import Env, axes, bind_prefixes, fail, function, length
from presk_rel.exec.values import (
    FunctionValue,
    HostReals,
    IndexTensor,
    MaskTensor,
    RunAxes,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    shape_of,
    stack,
    take,
)

MAX_DEPTH = 50_000
LastUse = Iterable[tuple[str, str, int]]
Times = dict[tuple[str, str], float]
"""Seconds by function and binding."""


@dataclass(slots=True)
class Loop:
    """A fold under way: the iterations left, and, for a scan, the accumulators so far by iteration."""

    fold: Fold
    dims: dict[str, int]
    left: Iterator[int]
    total: int
    stacked: tuple[Value, ...]
    acc: Value
    extras: tuple[Value, ...]
    before: dict[int, Value] = field(default_factory=dict[int, Value])


@dataclass(slots=True)
class Frame:
    """One activation of a function."""

    fn: Function
    env: Env
    types: dict[str, Type]
    values: dict[str, Value]
    pc: int = 0
    loop: Loop | None = None


class Interpreter:
    """Runs functions of one program on one kernel. `progress` is called before every primitive; `times` gathers what
    each binding took."""

    def __init__(
        self,
        program: Program,
        kernel: Kernel,
        *,
        last_use: LastUse = (),
        draws: Draws = draw,
        progress: Callable[[Site], None] | None = None,
        times: Times | None = None,
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.draws = draws
        self.progress = progress
        self.times: Times = {} if times is None else times
        self.places: dict[tuple[str, str], str] = {}
        self.steps = 0
        self.dead_after = _by_binding(last_use)

    def run(self, name: str, args: tuple[Value, ...], dims: Mapping[str, int]) -> Value:
        """The value of function `name` at `args` (of this kernel's arrays) and its dims."""
        frames = [self.enter(name, args, dims)]
        del args  # an argument, too, goes after its last reader
        while True:
            frame = frames[-1]
            if frame.pc < len(frame.fn.bindings):
                self._execute(frames, frame, frame.fn.bindings[frame.pc])
                continue
            value = frame.values[frame.fn.ret]
            frames.pop()
            if not frames:
                return self._declared(value, frame.fn.result, frame.env, name)
            self._deliver(frames, value)

    # ------------------------------------------------------------------------------------------------- activations

    def enter(self, name: str, args: tuple[Value, ...], dims: Mapping[str, int]) -> Frame:
        fn = function(self.program, name)
        if len(args) != len(fn.params):
            raise PreskBug("exec", f"{name} takes {len(fn.params)} arguments, not {len(args)}")
        types = [p.type for p in fn.params]
        env = Env(dims, bind_prefixes(types, args, name))
        values = {p.name: self._named(v, p.type, env, name) for p, v in zip(fn.params, args, strict=True)}
        return Frame(fn, env, {p.name: p.type for p in fn.params}, values)

    def bound(self, frame: Frame, binding: Binding, value: Value) -> None:
        """A value was bound; a test counts here."""

    def iterating(self, loop: Loop) -> None:
        """An iteration of a fold begins; the estimator counts here."""

    def _where(self, frame: Frame, binding: Binding) -> str:
        """A binding in the function of the source that it is written in."""
        at = (frame.fn.name, binding.name)
        if at not in self.places:
            self.places[at] = f"`{binding.name}` in `{self._owner(frame, binding)}`"
        return self.places[at]

    def _owner(self, frame: Frame, binding: Binding) -> str:
        return owner(self.program.declared, binding.span) or frame.fn.name

    def _bind(self, frame: Frame, binding: Binding, value: Value) -> None:
        value = self._named(value, binding.type, frame.env, self._where(frame, binding))
        frame.values[binding.name] = value
        frame.types[binding.name] = binding.type
        frame.pc += 1
        self.bound(frame, binding, value)

    def _named(self, value: Value, ty: Type, env: Env, where: str) -> Value:
        """The value with the axis names of its type."""
        match ty, value:
            case Real(shape), Tensor(run, data):
                return Tensor(_renamed(run, axes(shape, env, where), where), data)
            case Idx(bound, shape), IndexTensor(_, run, data):
                named = _renamed(run, axes(shape, env, where), where)
                return IndexTensor(length(bound, env, where), named, data)
            case Mask(shape), MaskTensor(run, data):
                return MaskTensor(_renamed(run, axes(shape, env, where), where), data)
            case TupleOf(types), TupleValue(items) if len(types) == len(items):
                return TupleValue(tuple(self._named(v, t, env, where) for t, v in zip(types, items, strict=True)))
            case _:
                return value

    def _declared(self, value: Value, ty: Type, env: Env, where: str) -> Value:
        """As `_named`, in trees too: inside the program a field has the names of the binding that reads it."""
        match ty, value:
            case Params(instance), TreeValue(fields):
                modules = self.program.modules
                typed = ((n, v, field_type(modules, instance, n)) for n, v in fields.items())
                return TreeValue({n: self._declared(v, t or ty, env, where) for n, v, t in typed})
            case TupleOf(types), TupleValue(items) if len(types) == len(items):
                parts = zip(types, items, strict=True)
                return TupleValue(tuple(self._declared(v, t, env, where) for t, v in parts))
            case _:
                return self._named(value, ty, env, where)

    # -------------------------------------------------------------------------------------------------- operations

    def _execute(self, frames: list[Frame], frame: Frame, binding: Binding) -> None:
        args = tuple(frame.values[v] for v in operands(binding.op))
        for name in self.dead_after.get((frame.fn.name, frame.pc), ()):
            if name != frame.fn.ret and name in frame.values:
                del frame.values[name]
        if len(frames) > MAX_DEPTH:
            fail(
                "E7019",
                f"calls nest deeper than {MAX_DEPTH} in `{self._owner(frame, binding)}`: a recursion without end",
                None,
                exit_status=3,
            )
        match binding.op:
            case Prim():
                self._bind(frame, binding, self.primitive(frame, binding, binding.op, args))
            case Call(fn, dim_args):
                frames.append(self.enter(fn, args, self._dims(dim_args, frame)))
            case Closure(fn, dim_args):
                self._bind(frame, binding, FunctionValue(fn, self._dims(dim_args, frame), args))
            case Apply():
                target = args[0]
                if not isinstance(target, FunctionValue):
                    raise PreskBug("exec", f"`{binding.name}` in `{frame.fn.name}` applies no function value")
                frames.append(self.enter(target.fn, (*target.captured, *args[1:]), target.dims))
            case Fold() as fold:
                self._start(frames, frame, binding, fold, args)
            case Grad() | Vjp() | Jvp():
                raise PreskBug("exec", f"`{binding.name}` in `{frame.fn.name}` is a derivative: differentiate first")

    def primitive(self, frame: Frame, binding: Binding, op: Prim, args: tuple[Value, ...]) -> Value:
        self.steps += 1
        step = self.step(frame, binding, op, args)
        if self.progress is not None:
            self.progress(step.site)
        start = perf_counter()
        value = ROWS[op.op](step)
        at = (frame.fn.name, binding.name)
        self.times[at] = self.times.get(at, 0.0) + perf_counter() - start
        return value

    def step(self, frame: Frame, binding: Binding, op: Prim, args: tuple[Value, ...]) -> Step:
        types = tuple(frame.types[v] for v in op.args)
        site = Site(frame.fn.name, binding, self.steps, self.program.declared)
        return Step(
            self.kernel, self.program.modules, frame.env, op.op, op.attrs, args, types, binding.type, site, self.draws
        )

    def _dims(self, dim_args: DimArgs, frame: Frame) -> dict[str, int]:
        known = set(frame.env.dims)
        return {n: length(d, frame.env, f"`{frame.fn.name}`") for n, d in dim_args if d.symbols <= known}

    # ------------------------------------------------------------------------------------------------------- folds

    def _start(self, frames: list[Frame], frame: Frame, binding: Binding, fold: Fold, args: tuple[Value, ...]) -> None:
        total = length(fold.count, frame.env, f"`{self._owner(frame, binding)}`", binding.span)
        n = len(fold.stacked)
        left = self.iterations(fold, total)
        frame.loop = Loop(fold, self._dims(fold.dim_args, frame), left, total, args[:n], args[n], args[n + 1 :])
        self._iterate(frames, frame, binding)

    def iterations(self, fold: Fold, total: int) -> Iterator[int]:
        """The iterations to run, in order."""
        return iter(range(total - 1, -1, -1) if fold.reverse else range(total))

    def _iterate(self, frames: list[Frame], frame: Frame, binding: Binding) -> None:
        loop = frame.loop
        if loop is None:
            raise PreskBug("exec", f"no fold under way in {frame.fn.name}")
        i = next(loop.left, None)
        if i is None:
            frame.loop = None
            self._bind(frame, binding, self.folded(frame, binding, loop))
            return
        self.iterating(loop)
        if loop.fold.scan:
            loop.before[i] = loop.acc
        slices = tuple(take(v, i) for v in loop.stacked)
        frames.append(self.enter(loop.fold.body, (*slices, loop.acc, *loop.extras), loop.dims))

    def folded(self, frame: Frame, binding: Binding, loop: Loop) -> Value:
        """The value of a fold whose iterations are done; `frame.loop` is None by then."""
        if not loop.fold.scan:
            return loop.acc
        history = [loop.before[i] for i in sorted(loop.before)]
        return TupleValue((loop.acc, stack(history, loop.acc)))

    def _deliver(self, frames: list[Frame], value: Value) -> None:
        """A callee has returned `value` to the activation on top."""
        frame = frames[-1]
        binding = frame.fn.bindings[frame.pc]
        if frame.loop is None:
            self._bind(frame, binding, value)
            return
        frame.loop.acc = value
        self._iterate(frames, frame, binding)


def _renamed(run: RunAxes, typed: RunAxes, where: str) -> RunAxes:
    if shape_of(run) != shape_of(typed):
        raise PreskBug("exec", f"a value of shape {shape_of(run)} where {shape_of(typed)} was typed, at {where}")
    return typed


def _by_binding(last_use: LastUse) -> dict[tuple[str, int], list[str]]:
    table: dict[tuple[str, int], list[str]] = {}
    for fn, name, index in last_use:
        table.setdefault((fn, index), []).append(name)
    return table


class CachedDraws:
    """Draws by key, made once for all precisions of a run."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, bytes, tuple[int, ...], Fraction | None], HostReals] = {}

    def __call__(self, op: str, key: bytes, shape: tuple[int, ...], std: Fraction | None) -> HostReals:
        at = (op, key, shape, std)
        if at not in self.known:
            self.known[at] = draw(op, key, shape, std)
        return self.known[at]
