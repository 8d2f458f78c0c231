"""An iteration as the recurrence it denotes: y₀ = x, y_(ℓ+1) = ⟦f⟧(θ.blocks[ℓ], y_ℓ) for 0 ≤ ℓ < L."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, count

from presk_rel.notation.formula import (
    LIST,
    OPEN,
    Cat,
    Den,
    Dim,
    Equation,
    Formula,
    Num,
    Sign,
    Sub,
    Sym,
    applied,
    each,
    row,
)
from presk_rel.smt.linear import Linear, constant, linear

_SEQUENCES = "yzuvws"
_INDICES = "ℓijmn"


@dataclass(slots=True)
class Letters:
    """The letters of the recurrences of one function: none that the function's own names use."""

    taken: set[str]
    _sequences: Iterator[str] = field(init=False)
    index: Sym = field(init=False)

    def __post_init__(self) -> None:
        self._sequences = _free(_SEQUENCES, self.taken)
        self.index = Sym(next(_free(_INDICES, self.taken)))

    def sequence(self) -> Sym:
        """A new one."""
        return Sym(next(self._sequences))


def _free(letters: str, taken: Container[str]) -> Iterator[str]:
    more = (f"{letters[0]}{n}" for n in count(2))
    return (name for name in chain(letters, more) if name not in taken)


@dataclass(frozen=True, slots=True)
class Iteration:
    """`arguments(ℓ, y_ℓ)` are the operands of `body` at step ℓ; `start` is the first member of the sequence."""

    body: str
    count: Linear
    start: Formula
    arguments: Callable[[Formula, Formula], tuple[Formula, ...]]
    reverse: bool = False


def recurrence(it: Iteration, letters: Letters) -> tuple[Equation, Formula, Formula]:
    """The equation that defines the sequence; its last member; the tensor of the members before each step."""
    y, index = letters.sequence(), letters.index
    step = linear(((index.name, Fraction(1)),), Fraction(0))
    after = step + constant(1)
    first, last = (it.count, constant(0)) if it.reverse else (constant(0), it.count)
    old, new = (after, step) if it.reverse else (step, after)
    defined = row(Sub(y, Dim(new)), Sign("="), applied(Den(it.body), it.arguments(index, Sub(y, Dim(old)))))
    bounds = row(Num(Fraction(0)), Sign("≤"), index, Sign("<"), Dim(it.count))
    right = Cat(((it.start, OPEN), (Sign("comma"), LIST), (defined, LIST), (Sign("for"), LIST), (bounds, LIST)), LIST)
    return Equation(Sub(y, Dim(first)), right), Sub(y, Dim(last)), each((index,), Sub(y, Dim(old)))
