"""Mathematical notation as trees, which a style writes as text (spec: "Reading a program as mathematics").

A formula says what is written, not how: whether a quotient is `a / b` or a fraction, and which parentheses it needs, is
for the style to say. Formulas may be deep (a sum of ten thousand terms nests to the left): walk them with
`core.trampoline`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from presk_rel.smt.linear import Linear

LIST, OPEN, RELATION, SUM, PRODUCT, POWER, ATOM = range(7)
"""How tightly a formula binds: LIST has a comma at its top (`softmax axis a s, m`), OPEN runs to the right as far as it
can (`gelu x`, `∑_{i} …`)."""

SignName = Literal[
    "space", "comma", "one", "wide comma", "colon", "=", "(", ")", "[", "]", "{", "}", ".", "dot-dot", "dots", "real",
    "params", "stack", "idx", "bool", "key", "->", "∘", "λ", "↦", "where", "for", "≤", "<", "axis", "·", "of", "times",
]  # fmt: skip
"""Signs and words of the notation itself."""


@dataclass(frozen=True, slots=True)
class Sym:
    """A name the user chose (or Core gave: `%8`), perhaps primed: x'."""

    name: str
    primes: int = 0


@dataclass(frozen=True, slots=True)
class Den:
    """⟦name⟧: what a function denotes. `name` is a path (`proj.apply`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """The name of an operation (`softmax`)."""

    text: str


@dataclass(frozen=True, slots=True)
class Num:
    value: Fraction


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension, or the number it denotes."""

    form: Linear


@dataclass(frozen=True, slots=True)
class Sign:
    name: SignName


@dataclass(frozen=True, slots=True)
class Cat:
    """Parts written one after the other. Each part is (formula, the least level it may have without parentheses)."""

    parts: tuple[tuple[Formula, int], ...]
    level: int = ATOM


@dataclass(frozen=True, slots=True)
class Infix:
    """`left sign right`; `sign` is a key of `table.INFIX`. Chains nest in `left`."""

    sign: str
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Minus:
    body: Formula


@dataclass(frozen=True, slots=True)
class Over:
    """A quotient."""

    above: Formula
    below: Formula


@dataclass(frozen=True, slots=True)
class Root:
    body: Formula


@dataclass(frozen=True, slots=True)
class Bars:
    """|body|"""

    body: Formula


@dataclass(frozen=True, slots=True)
class Power:
    base: Formula
    exponent: int


@dataclass(frozen=True, slots=True)
class Sub:
    """The member `index` of a sequence: y_(ℓ+1)."""

    base: Sym
    index: Formula


@dataclass(frozen=True, slots=True)
class SumOver:
    """The sum over the axes `over` of `body`."""

    over: tuple[Sym, ...]
    body: Formula


Formula = Sym | Den | Word | Num | Dim | Sign | Cat | Infix | Minus | Over | Root | Bars | Power | Sub | SumOver


@dataclass(frozen=True, slots=True)
class Equation:
    """`left = right`, and what it was made for."""

    left: Formula
    right: Formula
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A function: its name, its parameters with their types, its equations in order."""

    name: str
    params: tuple[tuple[Sym, Formula], ...]
    equations: tuple[Equation, ...]


# ---------------------------------------------------------------------------------------------- often-used shapes


def row(*parts: Formula, level: int = ATOM) -> Cat:
    """Parts side by side; none of them needs parentheses."""
    return Cat(tuple((p, LIST) for p in parts), level)


def listed(items: tuple[Formula, ...], least: int = OPEN) -> tuple[tuple[Formula, int], ...]:
    """Items with commas between them: parts of a `Cat`."""
    parts: list[tuple[Formula, int]] = []
    for i, item in enumerate(items):
        if i:
            parts.append((Sign("comma"), LIST))
        parts.append((item, least))
    return tuple(parts)


def bracketed(opening: SignName, items: tuple[Formula, ...], closing: SignName) -> Cat:
    return Cat(((Sign(opening), LIST), *listed(items), (Sign(closing), LIST)))


def tuple_of(items: tuple[Formula, ...]) -> Cat:
    """`(a, b)`, `(a,)`, `()`."""
    if len(items) == 1:
        return row(Sign("("), items[0], Sign("one"), Sign(")"))
    return bracketed("(", items, ")")


def applied(fn: Formula, args: tuple[Formula, ...]) -> Cat:
    """`f(a, b)`"""
    return Cat(((fn, ATOM), (bracketed("(", args, ")"), LIST)))


def at(base: Formula, indices: tuple[Formula, ...]) -> Formula:
    """`x[i, j]`; with no index, x."""
    if not indices:
        return base
    return Cat(((base, ATOM), (bracketed("[", indices, "]"), LIST)))


def member(base: Formula, name: Formula) -> Cat:
    """`θ.w`"""
    return Cat(((base, ATOM), (Sign("."), LIST), (name, LIST)))


def each(indices: tuple[Formula, ...], body: Formula) -> Cat:
    """`i, j ↦ body`: the tensor with these entries."""
    return Cat((*listed(indices), (Sign("↦"), LIST), (body, OPEN)), LIST)
