"""Formulas and sections as plain Unicode text, as a terminal shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from unicodedata import combining

from presk_rel.core.numbers import number_text
from presk_rel.notation.formula import Equation, Section, SignName
from presk_rel.notation.table import CONSTANTS, INFIX, SIGNS
from presk_rel.notation.write import write
from presk_rel.smt.linear import Linear

NOTE_COLUMN = 42
"""Where notes start, unless an equation with one is longer."""

_HIGH = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class UnicodeStyle:
    def sym(self, name: str, primes: int) -> str:
        return name + "'" * primes

    def den(self, path: str) -> str:
        return f"⟦{path}⟧"

    def word(self, op: str) -> str:
        return CONSTANTS[op][0] if op in CONSTANTS else op

    def num(self, value: Fraction) -> str:
        return number_text(value).replace("-", "−") if value < 0 else number_text(value)

    def dim(self, form: Linear) -> str:
        return str(form)

    def sign(self, name: SignName) -> str:
        return SIGNS[name][0]

    def infix(self, sign: str) -> str:
        return INFIX[sign][1]

    def minus(self, body: str) -> str:
        return f"−{body}"

    def stacks(self, depth: int) -> bool:
        return False

    def over(self, above: str, below: str) -> str:
        return f"{above} / {below}"

    def covers(self, depth: int) -> bool:
        return False

    def root(self, body: str, covered: bool) -> str:
        return f"√{body}"

    def bars(self, body: str) -> str:
        return f"|{body}|"

    def power(self, base: str, exponent: int) -> str:
        return base + str(exponent).translate(_HIGH)

    def sub(self, base: str, index: str, atom: bool) -> str:
        if index.isascii() and index.isdigit():
            return base + index.translate(_LOW)
        return f"{base}_{index}" if atom else f"{base}_({index.replace(' ', '')})"

    def sum_over(self, over: str, body: str) -> str:
        return f"∑_{{{over}}} {body}"


STYLE = UnicodeStyle()


def unicode_text(sections: Iterable[Section]) -> str:
    """Each function under its header, an empty line between two."""
    return "\n\n".join(_section(s) for s in sections)


def _section(section: Section) -> str:
    params = ",  ".join(f"{write(name, STYLE)} : {write(ty, STYLE)}" for name, ty in section.params)
    head = f"{section.name}, of {params}" if params else section.name
    return "\n".join([head, *_equations(section.equations)])


def _equations(equations: Sequence[Equation]) -> list[str]:
    rows = [(f"    {write(e.left, STYLE)} = {write(e.right, STYLE)}", _one_line(e.note)) for e in equations]
    column = max([NOTE_COLUMN, *(_width(text) + 2 for text, note in rows if note)])
    return [f"{text}{' ' * (column - _width(text))}-- {note}" if note else text for text, note in rows]


def _one_line(note: str | None) -> str:
    """A note from a file of Core text may hold anything."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join((note or "").split()))


def _width(text: str) -> int:
    """Columns on a screen: a combining mark (the hat of x̂) takes none."""
    return len(text) if text.isascii() else sum(not combining(c) for c in text)
