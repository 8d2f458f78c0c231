"""Whole-program correct rounding: run on balls, test every output entry (Ziv), double the working precision until done.

The first precision is `bits + 64 + 2/3 of the longest chain of arithmetic` in the run, gradient included: a transformer
layer is a chain of about 30 operations and was measured to cost 15 bits of radius forward, so this is 20 bits a layer
forward and 40 with its reverse sweep. A run is done when every real of the result rounds to one decimal whichever point
of its ball is taken, or is proven to be below the floor 2^-(bits + 32) with 0 in its ball, and no operation that may be
undefined was met. A choice (argmax, sample, a comparison) that is open ends an attempt. When doubling did not help,
ties are looked for exactly (`exec.exact.rationals`): once for each operation that stays open.

At the cap: E7005, with the site, what could not be decided there, and the precision reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from presk_rel.core.ir import Program
from presk_rel.exec.exact.ball_text import shown
from presk_rel.exec.exact.balls import Balls
from presk_rel.exec.exact.interp import CachedDraws, Interpreter, LastUse, Times
from presk_rel.exec.exact.kernel import Choices, Event, Kernel, Site, Undecided, at_entry
from presk_rel.exec.exact.rationals import GivenUp, Rationals
from presk_rel.exec.exact.rounding import Below, Decimal, bound_text, round_ball, round_rational
from presk_rel.exec.exact.untyped import flint_context
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import Array, Leaf, Rounded, Tensor, Value, leaves, map_leaves

START_BITS = 64
SHADOW_AFTER = 2
"""Attempts that may fail before ties are looked for exactly."""
FLOOR_BITS = 32
Progress = Callable[[int, Site], None]
"""Called before every primitive with the precision of the attempt and the site, which says how many came before it."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be run and proven. `args` hold host data; `chain` is the estimate's."""

    program: Program
    entry: str
    args: tuple[Value, ...]
    dims: Mapping[str, int]
    bits: int
    digits: int
    max_bits: int
    chain: int
    last_use: LastUse = ()
    extra_bits: int = 0
    """Added to the first working precision: results must not depend on it."""
    progress: Progress | None = None
    times: Times = field(default_factory=dict[tuple[str, str], float])
    """Gathers the seconds spent in each binding, over all attempts."""

    @property
    def floor(self) -> int:
        return self.bits + FLOOR_BITS

    def first_precision(self) -> int:
        return self.bits + START_BITS + (2 * self.chain + 2) // 3 + self.extra_bits


@dataclass(frozen=True, slots=True)
class Proven:
    """`rounded`: the result with decimals (`Rounded`) for reals; `balls`: the same with the balls they were read from,
    at working precision `precision`; `attempts`: the precisions tried."""

    rounded: Value
    balls: Value
    precision: int
    attempts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One run: either the rounded result with its balls, or why there is none: the event that matters most, if any, and
    the entry that is open. `doubtful`: the steps that were not decided; `choices`: those proven, by step."""

    precision: int
    result: tuple[Value, Value] | None
    event: Event | None = None
    open_entry: str = ""
    doubtful: frozenset[int] = frozenset()
    choices: Mapping[int, Choices] = field(default_factory=dict[int, Choices])


@dataclass(slots=True)
class _Known:
    """What the exact shadow has found: operands of undecided steps, choices, and the result. `asked`: the steps it was
    asked about."""

    operands: Mapping[int, Array] = field(default_factory=dict[int, Array])
    choices: Mapping[int, Choices] = field(default_factory=dict[int, Choices])
    result: Value | None = None
    asked: frozenset[int] | None = None


def inject(kernel: Kernel, args: tuple[Value, ...]) -> tuple[Value, ...]:
    """Arguments of host data as arrays of a kernel."""

    def leaf(v: Leaf) -> Value:
        return Tensor(v.axes, kernel.inject(v.data)) if isinstance(v, Tensor) else v

    return tuple(map_leaves(leaf, a) for a in args)


def prove(goal: Goal) -> Proven:
    """The result of the goal's entry, every digit proven. E7004 when it has no value, E7005 at the cap."""
    draws, known = CachedDraws(), _Known()
    precision = min(goal.first_precision(), goal.max_bits)
    attempts: list[int] = [precision]
    while True:
        attempt = _attempt(goal, draws, known, precision)
        if attempt.result is not None:
            return Proven(*attempt.result, precision, tuple(attempts))
        late = len(attempts) >= SHADOW_AFTER or precision >= goal.max_bits
        if late and (known.asked is None or attempt.doubtful - known.asked):
            known = _shadow(goal, draws, attempt, known.asked or frozenset())
            continue
        if precision >= goal.max_bits:
            _give_up(goal, attempt)
        precision = min(2 * precision, goal.max_bits)
        attempts.append(precision)


def _attempt(goal: Goal, draws: CachedDraws, known: _Known, precision: int) -> _Attempt:
    with flint_context.workprec(precision):
        kernel = Balls(known.operands, known.choices)
        try:
            balls = _interpret(goal, kernel, draws, precision)
        except Undecided as open_choice:
            event = open_choice.event
            doubtful = frozenset({*kernel.events.by_step, event.site.step})
            return _Attempt(precision, None, event, "", doubtful, kernel.proven)
        doubtful = frozenset(kernel.events.by_step)
        undefined = kernel.events.first("undefined")
        if undefined is not None:
            return _Attempt(precision, None, undefined, "", doubtful, kernel.proven)
        rounding = Rounding(goal.digits, goal.floor)
        rounded = rounding.value(balls, known.result)
    if rounding.open_entry:
        return _Attempt(precision, None, kernel.events.first(), rounding.open_entry, doubtful, kernel.proven)
    return _Attempt(precision, (rounded, balls))


def at_precision(report: Progress | None, precision: int) -> Callable[[Site], None] | None:
    return None if report is None else lambda site: report(precision, site)


def _interpret(goal: Goal, kernel: Kernel, draws: CachedDraws, precision: int) -> Value:
    interpreter = Interpreter(
        goal.program,
        kernel,
        last_use=goal.last_use,
        draws=draws,
        progress=at_precision(goal.progress, precision),
        times=goal.times,
    )
    return interpreter.run(goal.entry, inject(kernel, goal.args), goal.dims)


def _shadow(goal: Goal, draws: CachedDraws, attempt: _Attempt, asked: frozenset[int]) -> _Known:
    asked |= attempt.doubtful
    kernel = Rationals(asked, attempt.choices)
    try:
        result = _interpret(goal, kernel, draws, 0)
    except GivenUp:
        result = None
    return _Known(kernel.operands, kernel.chosen, result, asked)


def _give_up(goal: Goal, attempt: _Attempt) -> NoReturn:
    reached = f"at {attempt.precision} bits, the cap"
    event = attempt.event
    if event is None:
        message = f"the result of `{goal.entry}` is not decided to {goal.digits} digits {reached}: {attempt.open_entry}"
        fail("E7005", message, None, help="raise the cap with --max-bits, or ask for fewer digits")
    message = f"{event.message} is not decided {reached}, in {event.site}{at_entry(event.entry)}, where {event.value}"
    fail("E7005", message, event.site.span, help="this may be an exact tie: move the input off it, or raise --max-bits")


# ------------------------------------------------------------------------------------------------- rounding a result


class Rounding:
    """Rounds every real of a result; `open_entry` says which one was not decided, if any."""

    def __init__(self, digits: int, floor: int) -> None:
        self.digits = digits
        self.floor = floor
        self.open_entry = ""

    def value(self, balls: Value, exact: Value | None = None) -> Value:
        """`balls` with `Rounded` for reals. `exact` is the same value on exact rationals, where known."""
        paths = iter([path for path, _ in leaves(balls)])
        exacts = iter([v for _, v in leaves(exact)]) if exact is not None else None

        def leaf(v: Leaf) -> Value:
            path, shadow = next(paths), next(exacts) if exacts is not None else None
            if not isinstance(v, Tensor):
                return v
            return Tensor(v.axes, self._tensor(path, v.data, shadow.data if isinstance(shadow, Tensor) else None))

        return map_leaves(leaf, balls)

    def _tensor(self, path: str, data: Array, exact: Array | None) -> Rounded:
        text = np.empty(data.shape, dtype=object)
        flat = text.reshape(-1)
        rationals: list[Any] = [None] * data.size if exact is None else exact.ravel().tolist()
        unit: int | None = None
        below = 0
        for i, (ball, q) in enumerate(zip(data.ravel().tolist(), rationals, strict=True)):
            decimal = self._entry(ball, q)
            if decimal is None:
                self._open(path, data.shape, i, ball)
                return Rounded(text)
            if not isinstance(decimal, Decimal):
                below += 1
                flat[i] = "0"
                continue
            flat[i] = decimal.text
            if decimal.unit is not None:
                unit = decimal.unit if unit is None else max(unit, decimal.unit)
        return Rounded(text, bound_text(unit, self.floor if below else None), below)

    def _entry(self, ball: Any, q: Any) -> Decimal | Below | None:
        if q is not None:
            return round_rational(Fraction(int(q.p), int(q.q)), self.digits)
        return round_ball(ball, self.digits, self.floor)

    def _open(self, path: str, shape: tuple[int, ...], i: int, ball: Any) -> None:
        at = [int(k) for k in np.unravel_index(i, shape)] if shape else []
        name = " ".join(([f"`{path}`"] if path else []) + ([f"entry {at}"] if at else []))
        self.open_entry = f"{name or 'it'} is {shown(ball)}"
