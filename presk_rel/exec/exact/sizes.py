"""The estimate before a run: the same interpreter on values without numbers. It says how much memory the run holds at
its peak, how many primitives it executes, and how long its longest chain of arithmetic is; and it meets every operation
that is undefined at the dimensions given (E7003), before anything is computed.

A fold is entered once: its iterations are alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from presk_rel.core.ir import Binding, Call, Fold, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.elab.ty import Hyper, Idx, Mask, Params, Real, TupleOf, Type, field_names, field_type
from presk_rel.exec.exact.defined import check_defined
from presk_rel.exec.exact.interp import Frame, Interpreter, LastUse, Loop
from presk_rel.exec.exact.kernel import Events, Site
from presk_rel.exec.exact.rows import ROWS, STRUCTURAL
from presk_rel.exec.shapes import Env, axes, fail, length
from presk_rel.exec.values import (
    UNIT,
    Array,
    HostReals,
    HyperValue,
    IndexTensor,
    KeyValue,
    MaskTensor,
    RunAxes,
    StackValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    count,
    leaves,
    shape_of,
)

REPEATING = frozenset({"zeros", "ones", "zeros_like", "ones_like", "broadcast_like", "mean_vjp"})
"""The primitives whose result repeats entries without holding them."""
HEAVY = frozenset({
    "dot", "dot_vjp_l", "dot_vjp_r", "mean", "sum", "sum_to", "ein", "softmax", "cross_entropy", "cross_entropy_vjp",
    "embed_vjp", "sum_squares",
})  # fmt: skip
"""Sums of many terms: they count twice in a chain of arithmetic."""
SHARE = 0.8
"""The share of the machine's memory that a run may take."""


@dataclass(frozen=True, slots=True)
class Blank:
    """Stands for an array; `chain` is the length of the longest chain of arithmetic behind it."""

    shape: tuple[int, ...]
    chain: int

    def __getitem__(self, _index: object) -> Blank:
        return Blank(self.shape[1:], self.chain)


@dataclass(frozen=True, slots=True)
class Estimate:
    """`entries`: reals held at the peak; `largest`: the binding that holds most of them, in words; `primitives`: how
    many are executed; `chain`: the longest chain of arithmetic operations."""

    entries: int
    largest: str
    primitives: int
    chain: int

    def bytes_at(self, precision: int) -> int:
        """A ball is a Python object of 64 bytes, a pointer to it, and its mantissa's limbs with their heap block."""
        return self.entries * (72 + 16 + 8 * (precision // 64 + 1))


class _NoNumbers:
    """The kernel that computes nothing; only `rational` is ever asked for."""

    name = "sizes"

    def __init__(self) -> None:
        self.events = Events()

    def rational(self, q: Fraction) -> Array:
        blank: Array = Blank((), 0)  # pyright: ignore[reportAssignmentType] - stands for an array
        return blank

    def inject(self, data: HostReals) -> Array:
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
    """See the module's head; `live` and `peak` count reals."""

    def __init__(self, program: Program, last_use: LastUse = ()) -> None:
        super().__init__(program, _NoNumbers(), last_use=last_use)
        self.live = 0
        self.peak = 0
        self.largest = (0, "the arguments")
        self.multiplier = 1
        self.primitives = 0
        self.owned: dict[int, dict[str, int]] = {}
        self.starts: dict[int, int] = {}

    def primitive(self, frame: Frame, binding: Binding, op: Prim, args: tuple[Value, ...]) -> Value:
        self.steps += 1
        self.primitives += self.multiplier
        step = self.step(frame, binding, op, args)
        check_defined(step)
        if op.op in STRUCTURAL or isinstance(binding.type, Hyper):
            return ROWS[op.op](step)
        if op.op in HEAVY:
            self.peak = max(self.peak, self.live + sum(entries_of(a) for a in args))
        chain = max((chain_of(a) for a in args), default=0)
        cost = 0 if PRIMS[op.op].view or op.op in REPEATING else 2 if op.op in HEAVY else 1
        return self.blank(binding.type, frame.env, chain + cost, step.where)

    def blank(self, ty: Type, env: Env, chain: int, where: str) -> Value:
        """A value of a type, without numbers."""
        match ty:
            case Real(shape):
                run = axes(shape, env, where)
                return Tensor(run, Blank(shape_of(run), chain))
            case Idx(bound, shape):
                return IndexTensor(length(bound, env, where), axes(shape, env, where), Blank((), 0))
            case Mask(shape):
                return MaskTensor(axes(shape, env, where), Blank((), 0))
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
            case _:
                return KeyValue(bytes(32))

    # ------------------------------------------------------------------------------------------------------- memory

    def bound(self, frame: Frame, binding: Binding, value: Value) -> None:
        op = binding.op
        held = isinstance(op, Call | Fold) or (
            isinstance(op, Prim) and not PRIMS[op.op].view and op.op not in REPEATING
        )
        size = entries_of(value) if held else 0
        self._hold(frame, binding.name, size, binding)

    def _hold(self, frame: Frame, name: str, size: int, binding: Binding | None) -> None:
        self.owned.setdefault(id(frame), {})[name] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        if binding is not None and size > self.largest[0]:
            self.largest = (size, f"`{binding.name} : {binding.type}` in `{frame.fn.name}`")

    def dropped(self, frame: Frame, name: str) -> None:
        self.live -= self.owned.get(id(frame), {}).pop(name, 0)

    def leave(self, frame: Frame) -> None:
        self.live -= sum(self.owned.pop(id(frame), {}).values())

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
        return TupleValue((_with_chain(loop.acc, chain), _stacked(loop.acc, loop.total, chain)))


def _with_chain(value: Value, chain: int) -> Value:
    match value:
        case Tensor(run, data):
            return Tensor(run, Blank(data.shape, chain))
        case TupleValue(items):
            return TupleValue(tuple(_with_chain(v, chain) for v in items))
        case TreeValue(fields):
            return TreeValue({n: _with_chain(v, chain) for n, v in fields.items()})
        case _:
            return value


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


def blank_like(value: Value) -> Value:
    """An argument without its numbers."""
    match value:
        case Tensor(run, _):
            return Tensor(run, Blank(shape_of(run), 0))
        case TupleValue(items):
            return TupleValue(tuple(blank_like(v) for v in items))
        case TreeValue(fields):
            return TreeValue({n: blank_like(v) for n, v in fields.items()})
        case _:
            return value


def estimate(
    program: Program, entry: str, args: tuple[Value, ...], dims: Mapping[str, int], last_use: LastUse = ()
) -> Estimate:
    """What a run of `entry` takes. `args` may be blank (`Estimator.blank`) or real: only their shapes are read."""
    estimator = Estimator(program, last_use)
    blanks = tuple(blank_like(a) for a in args)
    estimator.live = estimator.peak = sum(entries_of(a) for a in blanks)
    estimator.largest = (estimator.peak, "the arguments")
    result = estimator.run(entry, blanks, dims)
    entries = max(estimator.peak, entries_of(result) * 2)
    return Estimate(entries, estimator.largest[1], estimator.primitives, chain_of(result))


# -------------------------------------------------------------------------------------------------------------- limits


def memory_limit() -> int:
    """Bytes a run may take: a share of the machine's memory, or of the container's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        total = min(total, int(text)) if text.isdigit() else total
    except OSError:
        pass
    return int(total * SHARE)


def check_fits(found: Estimate, precision: int, entry: str, limit: int | None = None) -> None:
    """E7006 (exit status 3) when the estimate does not fit in memory, with the numbers."""
    limit = memory_limit() if limit is None else limit
    needed = found.bytes_at(precision)
    if needed <= limit:
        return
    message = (
        f"`{entry}` holds {found.entries:,} exact reals at its peak: about {_size(needed)} at {precision} bits, "
        f"of {_size(limit)} allowed; most is held by {found.largest}"
    )
    fail("E7006", message, None, help="take smaller dimensions, fewer bits, or the torch executor", exit_status=3)


def _size(n: int) -> str:
    """`2.4 GiB`."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    k = min(max(n.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{n:,} bytes" if k == 0 else f"{n / 1024**k:,.1f} {units[k]}"
