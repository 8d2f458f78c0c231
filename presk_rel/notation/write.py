"""Formulas as text: the walk and the parentheses are here, the spelling is the style's."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, Protocol, assert_never

from presk_rel.core.numbers import number_text
from presk_rel.core.trampoline import Walk, run
from presk_rel.notation.formula import (
    ATOM,
    LIST,
    OPEN,
    POWER,
    PRODUCT,
    SUM,
    Bars,
    Cat,
    Den,
    Dim,
    Formula,
    Infix,
    Minus,
    Num,
    Over,
    Power,
    Root,
    Sign,
    SignName,
    Sub,
    SumOver,
    Sym,
    Word,
)
from presk_rel.notation.table import INFIX
from presk_rel.smt.linear import Linear


class Text(NamedTuple):
    """What a formula is written as. `depth` counts nested groups (fractions, roots), which TeX takes few of."""

    text: str
    depth: int = 0


class Style(Protocol):
    """How the parts of a formula are spelled. Parentheses are in place already."""

    def sym(self, name: str, primes: int) -> str: ...
    def den(self, path: str) -> str: ...
    def word(self, op: str) -> str: ...
    def num(self, value: Fraction) -> str: ...
    def dim(self, form: Linear) -> str: ...
    def sign(self, name: SignName) -> str: ...
    def infix(self, sign: str) -> str: ...
    def minus(self, body: str) -> str: ...
    def stacks(self, depth: int) -> bool:
        """Whether a quotient with `depth` groups inside is set as a fraction, whose parts need no parentheses."""
        ...

    def over(self, above: str, below: str) -> str: ...
    def covers(self, depth: int) -> bool:
        """Whether a root with `depth` groups inside covers its operand, which then needs no parentheses."""
        ...

    def root(self, body: str, covered: bool) -> str: ...
    def bars(self, body: str) -> str: ...
    def power(self, base: str, exponent: int) -> str: ...
    def sub(self, base: str, index: str, atom: bool) -> str: ...
    def sum_over(self, over: str, body: str) -> str: ...


def write(formula: Formula, style: Style) -> str:
    """The formula in a style; the depth of the formula is no limit."""
    return run(_write(formula, style)).text


def level(formula: Formula) -> int:
    """How tightly a formula binds, in any style."""
    match formula:
        case Sym() | Den() | Word() | Sign() | Sub() | Bars():
            return ATOM
        case Num(value):
            text = number_text(value)
            return SUM if value < 0 else PRODUCT if "/" in text or "e" in text else ATOM
        case Dim(form):
            return _dim_level(form)
        case Cat(_, own):
            return own
        case Infix(sign):
            return INFIX[sign][0]
        case Minus():
            return SUM
        case Over():
            return PRODUCT
        case Root() | Power():
            return POWER
        case SumOver():
            return OPEN
        case _:
            assert_never(formula)


def _dim_level(form: Linear) -> int:
    if len(form.terms) + bool(form.const) > 1 or str(form).startswith("-"):
        return SUM
    return ATOM if str(form).isalnum() or (form.terms and form.terms[0][1] == 1) else PRODUCT


def _write(formula: Formula, style: Style) -> Walk[Text]:
    match formula:
        case Sym(name, primes):
            return Text(style.sym(name, primes))
        case Den(name):
            return Text(style.den(name))
        case Word(text):
            return Text(style.word(text))
        case Num(value):
            return Text(style.num(value))
        case Dim(form):
            return Text(style.dim(form))
        case Sign(name):
            return Text(style.sign(name))
        case Cat(parts):
            return (yield _cat(parts, style))
        case Infix(sign, left, right):
            own = INFIX[sign][0]
            return (yield _cat(((left, own), (right, own + 1)), style, style.infix(sign)))
        case SumOver(over, body):
            inner = yield _within(body, PRODUCT, style)
            return Text(style.sum_over(", ".join(style.sym(s.name, s.primes) for s in over), inner.text), inner.depth)
        case Minus() | Bars() | Power() | Root() | Over() | Sub():
            return (yield _mathematical(formula, style))
        case _:
            assert_never(formula)


def _mathematical(formula: Minus | Bars | Power | Root | Over | Sub, style: Style) -> Walk[Text]:
    match formula:
        case Minus(body):
            inner = yield _within(body, PRODUCT, style)
            return Text(style.minus(inner.text), inner.depth)
        case Bars(body):
            inner = yield _within(body, LIST, style)
            return Text(style.bars(inner.text), inner.depth)
        case Power(base, exponent):
            inner = yield _within(base, ATOM, style)
            return Text(style.power(inner.text, exponent), inner.depth)
        case Sub(base, index):
            inner = yield _write(index, style)
            return Text(style.sub(style.sym(base.name, base.primes), inner.text, level(index) == ATOM), inner.depth)
        case Root(body):
            inner = yield _write(body, style)
            covered = style.covers(inner.depth)
            text = inner.text if covered or level(body) >= ATOM else _parenthesized(inner.text, style)
            return Text(style.root(text, covered), inner.depth + covered)
        case Over(above, below):
            return (yield _over(above, below, style))


def _over(above: Formula, below: Formula, style: Style) -> Walk[Text]:
    a, b = (yield _write(above, style)), (yield _write(below, style))
    depth = max(a.depth, b.depth)
    if style.stacks(depth):
        return Text(style.over(a.text, b.text), depth + 1)
    left = a.text if level(above) >= PRODUCT else _parenthesized(a.text, style)
    right = b.text if level(below) > PRODUCT else _parenthesized(b.text, style)
    return Text(left + style.infix("/") + right, depth)


def _cat(parts: tuple[tuple[Formula, int], ...], style: Style, between: str = "") -> Walk[Text]:
    texts: list[str] = []
    depth = 0
    for part, least in parts:
        inner: Text = yield _within(part, least, style)
        texts.append(inner.text)
        depth = max(depth, inner.depth)
    return Text(between.join(texts), depth)


def _within(formula: Formula, least: int, style: Style) -> Walk[Text]:
    inner: Text = yield _write(formula, style)
    return inner if level(formula) >= least else Text(_parenthesized(inner.text, style), inner.depth)


def _parenthesized(text: str, style: Style) -> str:
    return f"{style.sign('(')}{text}{style.sign(')')}"
