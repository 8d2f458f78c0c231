"""The estimate before a run: the same interpreter on values without numbers. It says how much memory the run holds at
its peak, how many primitives it executes, and how long its longest chain of arithmetic is; and it meets every operation
that is undefined at the dimensions given (E7003), before anything is computed.

A fold is entered once: its iterations are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from presk_rel.core.ir import Binding, Fold, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.elab.ty import Hyper, Idx, Key, Mask, Params, Real, TupleOf, Type, field_names, field_type
from presk_rel.exec.exact.defined import check_defined
from presk_rel.exec.exact.interp import Frame, Interpreter, LastUse, Loop
from presk_rel.exec.exact.kernel import Choices, Events, Site, owner
from presk_rel.exec.exact.rational_rows import RATIONAL_ROWS
from presk_rel.exec.exact.rows import ROWS, STRUCTURAL
from presk_rel.exec.memory import memory_limit, written_size
from presk_rel.exec.shapes import Env, axes, fail, length
from presk_rel.exec.values import (
    UNIT,
    Array,
    HostReals,
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    MaskTensor,
    RunAxes,
    StackValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    count,
    leaves,
    map_leaves,
    shape_of,
)

REPEATING = frozenset({"zeros", "ones", "zeros_like", "ones_like", "broadcast_like", "mean_vjp"})
"""The primitives whose result repeats entries without holding them."""
COPIES = frozenset({"index", "slice"})
"""Views that are small: they are copied, so that what they are views of can go."""
HEAVY = frozenset({
    "dot", "dot_vjp_l", "dot_vjp_r", "mean", "sum", "sum_to", "ein", "softmax", "cross_entropy", "cross_entropy_vjp",
    "embed_vjp", "sum_squares",
})  # fmt: skip
"""Sums of many terms: they count twice in a chain of arithmetic."""


@dataclass(slots=True)
class Meter:
    """Counts reals: those held now, and at the peak."""

    live: int = 0
    peak: int = 0


class Buffer:
    """The memory behind an array, held as long as a value refers to it: Python's own counting of references does for
    the estimate what it will do for the run."""

    __slots__ = ("meter", "size")

    def __init__(self, meter: Meter, size: int) -> None:
        self.meter, self.size = meter, size
        meter.live += size
        meter.peak = max(meter.peak, meter.live)

    def __del__(self) -> None:
        self.meter.live -= self.size


@dataclass(frozen=True, slots=True)
class Blank:
    """Stands for an array; `chain` is the length of the longest chain of arithmetic behind it, `buffers` its memory."""

    shape: tuple[int, ...]
    chain: int
    buffers: tuple[Buffer, ...] = ()

    def __getitem__(self, _index: object) -> Blank:
        return Blank(self.shape[1:], self.chain, self.buffers)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one binding costs: how often it is executed, and the reals it makes each time."""

    function: str
    binding: str
    type: str
    times: int
    entries: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """`entries`: reals held at the peak; `largest`: the binding that makes most of them, in words; `primitives`: how
    many are executed; `chain`: the longest chain of arithmetic operations; `costs`: those of every binding, in order of
    first execution."""

    entries: int
    largest: str
    primitives: int
    chain: int
    costs: tuple[Cost, ...]

    def bytes_at(self, precision: int) -> int:
        """Bytes at the peak."""
        return self.entries * real_bytes(precision)


def real_bytes(precision: int) -> int:
    """A ball is a Python object of 64 bytes, a pointer to it, and its mantissa's limbs with their heap block."""
    return 72 + 16 + 8 * (precision // 64 + 1)


class _NoNumbers:
    """The kernel that computes nothing; only `rational` is ever asked for."""

    name = "sizes"
    rows = RATIONAL_ROWS  # never asked

    def __init__(self) -> None:
        self.events = Events()

    def rational(self, q: Fraction) -> Array:
        blank: Array = Blank((), 0)  # pyright: ignore[reportAssignmentType] - stands for an array
        return blank

    def inject(self, data: HostReals) -> Array:
        raise NotImplementedError

    def pi(self) -> Array:
        raise NotImplementedError

    def settle(self, chosen: Choices, shape: tuple[int, ...], site: Site, what: Callable[[int], str]) -> list[int]:
        raise NotImplementedError

    def unary(self, op: str, x: Array, site: Site) -> Array:
        raise NotImplementedError

    def power(self, x: Array, n: int, site: Site) -> Array:
        raise NotImplementedError

    def binary(self, op: str, x: Array, y: Array, site: Site) -> Array:
        return self.rational(Fraction(0))

    def total(self, x: Array, over: tuple[int, ...]) -> Array:
        raise NotImplementedError

    def matmul(self, x: Array, y: Array) -> Array:
        raise NotImplementedError


def chain_of(value: Value) -> int:
    return max((v.data.chain for _, v in leaves(value) if isinstance(v, Tensor)), default=0)


def entries_of(value: Value) -> int:
    return sum(count(v.axes) for _, v in leaves(value) if isinstance(v, Tensor))


class Estimator(Interpreter):
    """See the module's head."""

    def __init__(self, program: Program, last_use: LastUse = ()) -> None:
        super().__init__(program, _NoNumbers(), last_use=last_use)
        self.meter = Meter()
        self.largest = (0, "the arguments")
        self.multiplier = 1
        self.primitives = 0
        self.costs: dict[tuple[str, str], Cost] = {}
        self.starts: dict[int, int] = {}

    def primitive(self, frame: Frame, binding: Binding, op: Prim, args: tuple[Value, ...]) -> Value:
        self.steps += 1
        self.primitives += self.multiplier
        step = self.step(frame, binding, op, args)
        check_defined(step)
        if op.op in STRUCTURAL or isinstance(binding.type, Hyper):
            self._count(frame, binding, 0)
            return ROWS[op.op](step)
        if op.op in HEAVY:
            extra = sum(entries_of(a) for a in args)
            self.meter.peak = max(self.meter.peak, self.meter.live + extra)
        chain = max((chain_of(a) for a in args), default=0)
        view = PRIMS[op.op].view and op.op not in COPIES
        value = self.blank(binding.type, frame.env, chain + _steps(op.op), step.where)
        size = 0 if view or op.op in REPEATING else entries_of(value)
        self._count(frame, binding, size)
        return _held(value, _buffers(args[0]) if view and args else (Buffer(self.meter, size),))

    def _count(self, frame: Frame, binding: Binding, size: int) -> None:
        at = (frame.fn.name, binding.name)
        before = self.costs.get(at)
        times = self.multiplier + (before.times if before is not None else 0)
        self.costs[at] = Cost(*at, str(binding.type), times, max(size, before.entries if before is not None else 0))
        if size > self.largest[0]:
            self.largest = (size, self._said(frame, binding))

    def _said(self, frame: Frame, binding: Binding) -> str:
        where = owner(self.program.declared, binding.span) or frame.fn.name
        return f"`{binding.name} : {binding.type}` in `{where}`"

    def blank(self, ty: Type, env: Env, chain: int, where: str) -> Value:
        """A value of a type, without numbers."""
        match ty:
            case Real(shape):
                run = axes(shape, env, where)
                return Tensor(run, Blank(shape_of(run), chain))
            case Idx(bound, shape):
                run = axes(shape, env, where)
                return IndexTensor(length(bound, env, where), run, Blank(shape_of(run), 0))
            case Mask(shape):
                run = axes(shape, env, where)
                return MaskTensor(run, Blank(shape_of(run), 0))
            case TupleOf(items):
                return TupleValue(tuple(self.blank(t, env, chain, where) for t in items))
            case Params(instance):
                fields: dict[str, Value] = {}
                for name in field_names(self.program.modules, instance):
                    below = field_type(self.program.modules, instance, name)
                    fields[name] = UNIT if below is None else self.blank(below, env, chain, where)
                return TreeValue(fields)
            case Hyper(kind):
                return HyperValue(kind, Fraction(1))
            case Key(shape) if shape.axes:
                return StackValue((KeyValue(bytes(32)),))
            case _:
                return KeyValue(bytes(32))

    # -------------------------------------------------------------------------------------------------------- folds

    def iterations(self, fold: Fold, total: int) -> Iterator[int]:
        self.multiplier *= max(total, 1)
        return iter(range(min(total, 1)))

    def iterating(self, loop: Loop) -> None:
        self.starts[id(loop)] = chain_of(loop.acc)

    def folded(self, frame: Frame, binding: Binding, loop: Loop) -> Value:
        self.multiplier //= max(loop.total, 1)
        before = self.starts.pop(id(loop), 0)
        chain = before + (chain_of(loop.acc) - before) * max(loop.total, 1)
        if not loop.fold.scan:
            return _with_chain(loop.acc, chain)
        history = _stacked(loop.acc, loop.total, chain)
        history = _held(history, (Buffer(self.meter, entries_of(history)),))
        return TupleValue((_with_chain(loop.acc, chain), history))


def _steps(op: str) -> int:
    """What a primitive adds to a chain of arithmetic."""
    return 0 if PRIMS[op].view or op in REPEATING else 2 if op in HEAVY else 1


def _buffers(value: Value) -> tuple[Buffer, ...]:
    found = [b for _, v in leaves(value) if isinstance(v, Tensor) for b in v.data.buffers]
    return tuple(dict.fromkeys(found))


def _held(value: Value, buffers: tuple[Buffer, ...]) -> Value:
    """`value` with the memory behind it."""

    def leaf(v: Leaf) -> Value:
        return Tensor(v.axes, replace(v.data, buffers=buffers)) if isinstance(v, Tensor) else v

    return map_leaves(leaf, value)


def _with_chain(value: Value, chain: int) -> Value:
    def leaf(v: Leaf) -> Value:
        return Tensor(v.axes, replace(v.data, chain=chain)) if isinstance(v, Tensor) else v

    return map_leaves(leaf, value)


def _stacked(value: Value, n: int, chain: int) -> Value:
    def longer(run: RunAxes) -> RunAxes:
        return ((None, n), *run)

    match value:
        case Tensor(run, data):
            return Tensor(longer(run), Blank((n, *data.shape), chain))
        case IndexTensor(bound, run, data):
            return IndexTensor(bound, longer(run), data)
        case MaskTensor(run, data):
            return MaskTensor(longer(run), data)
        case TupleValue(items):
            return TupleValue(tuple(_stacked(v, n, chain) for v in items))
        case TreeValue(fields):
            return TreeValue({k: _stacked(v, n, chain) for k, v in fields.items()})
        case _:
            return StackValue((value,))


def blank_like(value: Value, meter: Meter) -> Value:
    """An argument without its numbers."""

    def leaf(v: Leaf) -> Value:
        if not isinstance(v, Tensor):
            return v
        return Tensor(v.axes, Blank(shape_of(v.axes), 0, (Buffer(meter, count(v.axes)),)))

    return map_leaves(leaf, value)


def estimate(
    program: Program, entry: str, args: tuple[Value, ...], dims: Mapping[str, int], last_use: LastUse = ()
) -> Estimate:
    """What a run of `entry` takes. `args` may be blank (`Estimator.blank`) or real: only their shapes are read."""
    estimator = Estimator(program, last_use)
    result = estimator.run(entry, tuple(blank_like(a, estimator.meter) for a in args), dims)
    entries = max(estimator.meter.peak, entries_of(result) * 2)
    costs = tuple(estimator.costs.values())
    return Estimate(entries, estimator.largest[1], estimator.primitives, chain_of(result), costs)


# -------------------------------------------------------------------------------------------------------------- limits


def check_fits(found: Estimate, precision: int, entry: str, limit: int | None = None) -> None:
    """E7006 (exit status 3) when the estimate does not fit in memory, with the numbers."""
    limit = memory_limit() if limit is None else limit
    needed = found.bytes_at(precision)
    if needed <= limit:
        return
    message = (
        f"`{entry}` holds {found.entries:,} exact reals at its peak: about {written_size(needed)} at {precision} bits, "
        f"of {written_size(limit)} allowed; most is held by {found.largest}"
    )
    fail("E7006", message, None, help="take smaller dimensions, fewer bits, or the torch executor", exit_status=3)
