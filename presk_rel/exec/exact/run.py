"""`run_exact`: an entry of a PSK-Core program on exact arithmetic, from arguments to correctly rounded results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from presk_rel.core.expand import expanded
from presk_rel.core.ir import Program
from presk_rel.elab.ty import Type
from presk_rel.exec import inputs
from presk_rel.exec.exact.interp import Interpreter, LastUse, Times
from presk_rel.exec.exact.kernel import Site, filled
from presk_rel.exec.exact.mp import GUARD_BITS, Measured
from presk_rel.exec.exact.proven import Goal, at_precision, inject, prove
from presk_rel.exec.exact.rounding import round_rational
from presk_rel.exec.exact.sizes import Estimate, Estimator, check_fits, estimate, real_bytes
from presk_rel.exec.literals import Node
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import Leaf, Rounded, Tensor, Value, map_leaves

KernelName = Literal["balls", "mpmath"]
MIN_BITS, MAX_BITS = 24, 10_000
LOG10_2 = 0.30102999566398119
Progress = Callable[[int, int, Site], None]
"""Called before every primitive with the working precision, the number of primitives that an attempt executes (as
estimated), and the site, whose `step` counts them."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked for. `digits` None: all that `bits` give. `max_bits` None: 16·bits + 1024. `memory` in bytes,
    None: a share of the machine's. `extra_bits` starts with a higher working precision."""

    bits: int = 256
    digits: int | None = None
    kernel: KernelName = "balls"
    max_bits: int | None = None
    memory: int | None = None
    last_use: LastUse = ()
    extra_bits: int = 0
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class BindingCost:
    """What one binding of PSK-Core cost: executions in one attempt, seconds in all attempts, bytes of the reals that
    one execution makes (views and repeated entries make none)."""

    function: str
    binding: str
    type: str
    times: int
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """`value` holds `Rounded` decimals for reals; `raw` the kernel's own numbers (balls, or mpmath's). `precision` is
    the working precision of the last attempt. `phases` are seconds, by name, in order; `costs` those of every binding,
    in order of first execution."""

    entry: str
    type: Type
    value: Value
    raw: Value
    args: tuple[Value, ...]
    dims: Mapping[str, int]
    bits: int
    digits: int
    seed: int
    kernel: KernelName
    precision: int
    attempts: tuple[int, ...]
    estimate: Estimate
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    costs: tuple[BindingCost, ...] = ()

    @property
    def peak_bytes(self) -> int:
        """Of the reals held at the peak, as estimated."""
        return self.estimate.bytes_at(self.precision)


def digits_of(bits: int) -> int:
    """⌊bits·log₁₀ 2⌋: 77 at 256."""
    return int(bits * LOG10_2)


def run_exact(
    program: Program,
    entry: str,
    given: Mapping[str, Node],
    dims: Mapping[str, int],
    seed: int = 0,
    options: Options | None = None,
    args: tuple[Value, ...] | None = None,
) -> RunResult:
    """Run `entry`. `program` has no `grad`; `given` are the arguments' nodes by name (`exec.literals.arguments`), the
    rest is synthesized from `seed`. `args` are values of the same shapes to take in place of all these. PreskError:
    E7003 … E7020 (`docs/errors`)."""
    options = options or Options()
    program = expanded(program)
    digits = _digits(options)
    clock = _Clock()
    bound = inputs.bind(program, entry, given, dims)
    inputs.executable(bound.fn)
    clock.lap("bind")
    found = _estimate(program, bound, options)
    clock.lap("estimate")
    args = inputs.synthesize(program, bound, seed) if args is None else args
    clock.lap("inputs")
    goal = Goal(
        program, bound.fn.name, args, bound.env.dims, options.bits, digits, _cap(options), found.chain,
        options.last_use, options.extra_bits, _reported(options.progress, found.primitives),
    )  # fmt: skip
    if options.kernel == "mpmath":
        value, raw, precision = _measured(goal)
        attempts: tuple[int, ...] = (precision,)
    else:
        proven = prove(goal)
        value, raw, precision, attempts = proven.rounded, proven.balls, proven.precision, proven.attempts
    clock.lap("run")
    return RunResult(
        bound.fn.name, bound.fn.result, value, raw, args, dict(bound.env.dims), options.bits, digits, seed,
        options.kernel, precision, attempts, found, clock.phases, _costs(found, goal.times, precision),
    )  # fmt: skip


def _reported(report: Progress | None, primitives: int) -> Callable[[int, Site], None] | None:
    return None if report is None else lambda precision, site: report(precision, primitives, site)


def _costs(found: Estimate, times: Times, precision: int) -> tuple[BindingCost, ...]:
    each = real_bytes(precision)
    return tuple(
        BindingCost(c.function, c.binding, c.type, c.times, times.get((c.function, c.binding), 0.0), c.entries * each)
        for c in found.costs
    )


class _Clock:
    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.phases[name], self.last = now - self.last, now


def _digits(options: Options) -> int:
    if not MIN_BITS <= options.bits <= MAX_BITS:
        _option(f"--bits is from {MIN_BITS} to {MAX_BITS}, not {options.bits}")
    most = digits_of(options.bits)
    if options.digits is None:
        return most
    if not 1 <= options.digits <= most:
        _option(f"--digits is from 1 to {most} at {options.bits} bits, not {options.digits}")
    return options.digits


def _cap(options: Options) -> int:
    if options.max_bits is None:
        return 16 * options.bits + 1024
    if options.max_bits < options.bits:
        _option(f"--max-bits is at least --bits, {options.bits}, not {options.max_bits}")
    return options.max_bits


def _option(message: str) -> None:
    fail("E7020", message, None, exit_status=2)


def _estimate(program: Program, bound: inputs.Bound, options: Options) -> Estimate:
    """Before anything is drawn or computed."""
    program = expanded(program)
    blank = Estimator(program)
    pairs = zip(bound.fn.params, bound.given, strict=True)
    args = tuple(v if v is not None else blank.blank(p.type, bound.env, 0, f"`{p.name}`") for p, v in pairs)
    found = estimate(program, bound.fn.name, args, bound.env.dims, options.last_use)
    check_fits(found, options.bits + GUARD_BITS, bound.fn.name, options.memory)
    return found


def check_defined(program: Program, bound: inputs.Bound) -> None:
    """E7003 for an operation that is undefined at these dimensions, before anything is computed: on every executor."""
    _estimate(program, bound, Options(memory=2**62))


def _measured(goal: Goal) -> tuple[Value, Value, int]:
    """On mpmath: rounded, nothing claimed."""
    precision = goal.bits + GUARD_BITS + goal.extra_bits
    kernel = Measured(precision)
    progress = at_precision(goal.progress, precision)
    interpreter = Interpreter(goal.program, kernel, last_use=goal.last_use, progress=progress, times=goal.times)
    raw = interpreter.run(goal.entry, inject(kernel, goal.args), goal.dims)

    def leaf(v: Leaf) -> Value:
        if not isinstance(v, Tensor):
            return v
        flat = [round_rational(kernel.fraction(x), goal.digits).text for x in v.data.ravel().tolist()]
        return Tensor(v.axes, Rounded(filled(flat, v.data.shape)))

    return map_leaves(leaf, raw), raw, precision
