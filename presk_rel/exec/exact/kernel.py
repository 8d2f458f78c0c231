"""What a kernel of exact arithmetic offers: numbers in numpy object arrays, and the few operations the primitives need.

Kernels: `balls` (proven), `mp` (mpmath: independent, measured), `rationals` (exact where a value is rational, else
unknown), and `sizes` (no numbers at all: an estimate). A primitive is one row of `exec.exact.rows`; the entry-by-entry
functions of a kernel are its table `UNARY`, one row per name of `ELEMENTWISE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

import numpy as np

from presk_rel.core.ir import Binding, Prim
from presk_rel.diagnostics import NOWHERE, Diagnostic, PreskError, Span
from presk_rel.exec.shapes import fail
from presk_rel.exec.values import Array, HostReals

ELEMENTWISE = (
    "neg", "gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos",
    "gelu'", "normal_pdf", "heaviside", "sign",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "max", "min")
COMPARISONS = ("lt", "le", "gt", "ge", "eq")


def owner(declared: tuple[tuple[str, Span], ...], span: Span) -> str | None:
    """Which of these functions a span is in."""
    around = (n for n, s in declared if s.file == span.file and s.start <= span.start and span.end <= s.end)
    return next(around, None)


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operation happens. `step` numbers the operations executed in a run: as no value steers control, it names
    the same operation in every kernel and at every precision."""

    function: str
    binding: Binding
    step: int
    declared: tuple[tuple[str, Span], ...] = ()

    @property
    def owner(self) -> str:
        """The function of the source that the operation is written in; where none is known, the one that runs it."""
        return owner(self.declared, self.binding.span) or self.function

    @property
    def span(self) -> Span | None:
        return None if self.binding.span == NOWHERE else self.binding.span

    @property
    def operation(self) -> str:
        """The name of the primitive."""
        return self.binding.op.op if isinstance(self.binding.op, Prim) else ""

    @property
    def full(self) -> str:
        """With the binding's name, for us."""
        return f"`{self.binding.name}` in `{self.owner}`"

    def __str__(self) -> str:
        """In the user's words: a binding that only PSK-Core names is told by its span."""
        return f"`{self.owner}`" if self.binding.name.startswith("%") else self.full


@dataclass(frozen=True, slots=True)
class Event:
    """Something a kernel could not decide at its precision. `undecided`: the value given is a sound enclosure all the
    same. `undefined`: the operation may have no value (a divisor that may be 0)."""

    kind: Literal["undecided", "undefined"]
    site: Site
    message: str
    entry: tuple[int, ...]
    value: str


@dataclass(slots=True)
class Events:
    """The events of one run, the first of each site."""

    by_step: dict[int, Event] = field(default_factory=dict[int, Event])

    def add(self, event: Event) -> None:
        self.by_step.setdefault(event.site.step, event)

    def first(self, kind: str | None = None) -> Event | None:
        return next((e for _, e in sorted(self.by_step.items()) if kind in (None, e.kind)), None)


def undefined(site: Site, message: str) -> NoReturn:
    """E7004: the program has no value at these arguments."""
    fail("E7004", f"{message}, in {site}", site.span)


class Undecided(PreskError):
    """A choice (argmax, sample, a comparison) that no kernel at this precision can make: what follows has no meaning,
    so the run ends here. E7005 where nobody tries again with more bits."""

    def __init__(self, event: Event) -> None:
        what = f"{event.message} is not decided in {event.site}{at_entry(event.entry)}: {event.value}"
        super().__init__([Diagnostic("E7005", what, event.site.span)])
        self.event = event


Number: TypeAlias = Any
Choices: TypeAlias = list[int | None]
Row: TypeAlias = list[Number]


@dataclass(frozen=True, slots=True)
class RowFunctions:
    """What a kernel computes of one row of scores: each takes a list of its numbers. A choice that is not decided is
    None."""

    softmax: Callable[[Row], Row]
    """Of at least one score."""
    cross_entropy: Callable[[Row, int], Number]
    """-log softmax(row)[y]."""
    argmax: Callable[[Row], int | None]
    """The least index of a greatest entry."""
    sample: Callable[[Row, float], int | None]
    """The least index whose cumulative probability exceeds the draw."""
    compare: Callable[[str, Number, Number], bool | None]
    """One of `COMPARISONS`."""


class Kernel(Protocol):
    """Arrays are numpy object arrays (0-d for scalars) of one shape; they may repeat entries by strides of 0, and are
    never written to."""

    name: str
    events: Events
    rows: RowFunctions

    def settle(self, chosen: Choices, shape: tuple[int, ...], site: Site, what: Callable[[int], str]) -> list[int]:
        """The choices of one operation, none of them open: `Undecided` where this kernel cannot tell. `what(i)` says
        in words what choice i, of an array of `shape`, is between."""
        ...

    def inject(self, data: HostReals) -> Array:
        """Exact reals (float64, integers, Fractions), each correct to the kernel's precision; floats exactly."""
        ...

    def rational(self, q: Fraction) -> Array:
        """A scalar."""
        ...

    def pi(self) -> Array:
        """π, a scalar."""
        ...

    def unary(self, op: str, x: Array, site: Site) -> Array:
        """An operation of `ELEMENTWISE`."""
        ...

    def power(self, x: Array, n: int, site: Site) -> Array:
        """x to the natural power n; x^0 = 1."""
        ...

    def binary(self, op: str, x: Array, y: Array, site: Site) -> Array:
        """An operation of `BINARY` on arrays that numpy broadcasts."""
        ...

    def total(self, x: Array, over: tuple[int, ...]) -> Array:
        """The sum over the given axes, which go."""
        ...

    def matmul(self, x: Array, y: Array) -> Array:
        """(M, K) · (K, N)."""
        ...


def at_entry(entry: tuple[int, ...]) -> str:
    """Where in a tensor; nothing for a scalar."""
    return f" at entry {list(entry)}" if entry else ""


# ------------------------------------------------------------------------------------- arrays that repeat entries


def boxed(x: Any) -> Array:
    """`x` as an array: numpy turns a 0-d result on objects into the object itself."""
    if hasattr(x, "strides"):
        return x
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def filled(values: list[Any], shape: tuple[int, ...]) -> Array:
    """An array of `shape` from its entries in row-major order."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out.reshape(shape)


def repeat(x: Any, shape: tuple[int, ...]) -> Array:
    """`x` repeated to `shape` without copying."""
    return np.broadcast_to(boxed(x), shape)


def distinct(x: Array) -> Array:
    """The array with every axis that repeats one entry cut to length 1: compute there, then `repeat` back."""
    if x.size == 0 or all(s != 0 or n == 1 for s, n in zip(x.strides, x.shape, strict=True)):
        return x
    cut = tuple(slice(0, 1) if s == 0 else slice(None) for s in x.strides)
    return x[cut]


def is_constant(x: Array) -> bool:
    """Whether the array repeats one entry everywhere."""
    return x.size > 0 and distinct(x).size == 1


def only(x: Array) -> Any:
    """The entry of an array that repeats one."""
    return x[(0,) * x.ndim]
