r"""Formulas and sections as LaTeX: a fragment in the macros of MACROS, or a document that compiles."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from presk_rel.core.numbers import number_text
from presk_rel.notation.formula import Equation, Section, SignName
from presk_rel.notation.latex_names import math_name, note_text, upright_name
from presk_rel.notation.table import CONSTANTS, INFIX, SIGNS
from presk_rel.notation.write import write
from presk_rel.smt.digits import digits
from presk_rel.smt.linear import Linear

MACROS = r"""\providecommand{\pskop}[1]{\mathrm{#1}}
\providecommand{\pskfn}[1]{\mathsf{#1}}
\providecommand{\pskden}[1]{[\mkern-3mu[\pskfn{#1}]\mkern-3mu]}
\ifdefined\Umathcode
  \providecommand{\pskchar}[1]{\mbox{\char"#1}}
\else
  \providecommand{\pskchar}[1]{\mbox{\texttt{<#1>}}}
\fi
\providecommand{\pskfunction}[1]{\par\medskip\noindent$\pskfn{#1}$}
\providecommand{\pskparams}[1]{, of $#1$}
\providecommand{\pskequation}[2]{\par\noindent\hangindent=4em\hspace*{2em}$\displaystyle #1 = #2$}
\providecommand{\psknote}[1]{\quad{\small\itshape #1}}
"""
r"""What fragments are written in: operations, functions, ⟦…⟧, a character without a command (by its code point), the
head of a function, its parameters, an equation, a note beside it."""

_DOCUMENT = (
    r"""\documentclass{article}
\usepackage{amssymb}
\usepackage{amsmath}
\setlength{\textwidth}{7in}\setlength{\oddsidemargin}{-0.25in}
\setlength{\textheight}{9.5in}\setlength{\topmargin}{-0.5in}
\raggedright
"""
    + MACROS
    + "\\begin{document}\n"
)

_DEEPEST = 3
"""Fractions within fractions; beyond, a quotient is written on the line."""


class LatexStyle:
    def sym(self, name: str, primes: int) -> str:
        return f"{{{math_name(name)}}}{chr(39) * primes}" if primes else math_name(name)

    def den(self, path: str) -> str:
        return rf"\pskden{{{upright_name(path)}}}"

    def word(self, op: str) -> str:
        return CONSTANTS[op][1] if op in CONSTANTS else rf"\pskop{{{upright_name(op)}}}"

    def num(self, value: Fraction) -> str:
        mantissa, e, exponent = number_text(value).partition("e")
        return rf"{mantissa} \cdot 10^{{{exponent}}}" if e else mantissa

    def dim(self, form: Linear) -> str:
        terms = [(_times(abs(c), math_name(s)), c < 0) for s, c in form.terms]
        if form.const or not terms:
            terms.append((_times(abs(form.const), ""), form.const < 0))
        head, *rest = terms
        return ("-" if head[1] else "") + head[0] + "".join(f" {'-' if n else '+'} {t}" for t, n in rest)

    def sign(self, name: SignName) -> str:
        return SIGNS[name][1]

    def infix(self, sign: str) -> str:
        return INFIX[sign][2]

    def minus(self, body: str) -> str:
        return f"-{body}"

    def stacks(self, depth: int) -> bool:
        return depth < _DEEPEST

    def over(self, above: str, below: str) -> str:
        return rf"\frac{{{above}}}{{{below}}}"

    def covers(self, depth: int) -> bool:
        return depth < _DEEPEST

    def root(self, body: str, covered: bool) -> str:
        return rf"\sqrt{{{body}}}" if covered else rf"\surd {body}"

    def bars(self, body: str) -> str:
        return rf"\lvert {body}\rvert "

    def power(self, base: str, exponent: int) -> str:
        whole = base if base.startswith("(") else f"{{{base}}}"
        return f"{whole}^{{{exponent}}}"

    def sub(self, base: str, index: str, atom: bool) -> str:
        return f"{{{base}}}_{{{index}}}"

    def sum_over(self, over: str, body: str) -> str:
        return rf"\sum_{{{over}}} {body}"


STYLE = LatexStyle()


def _times(factor: Fraction, symbol: str) -> str:
    above = digits(factor.numerator)
    whole = symbol if symbol and factor.numerator == 1 else rf"{above}\,{symbol}" if symbol else above
    return whole if factor.denominator == 1 else f"{whole} / {digits(factor.denominator)}"


def latex_text(sections: Iterable[Section], *, standalone: bool) -> str:
    """A fragment in the macros of MACROS, or a document."""
    fragment = "\n\n".join(_section(s) for s in sections)
    return f"{_DOCUMENT}{fragment}\n\\end{{document}}" if standalone else fragment


def _section(section: Section) -> str:
    params = SIGNS["wide comma"][1].join(f"{write(name, STYLE)} : {write(ty, STYLE)}" for name, ty in section.params)
    head = rf"\pskfunction{{{upright_name(section.name)}}}"
    if params:
        head += rf"\pskparams{{{params}}}"
    return "\n".join([head, *map(_equation, section.equations)])


def _equation(e: Equation) -> str:
    text = rf"\pskequation{{{write(e.left, STYLE)}}}{{{write(e.right, STYLE)}}}"
    return rf"{text}\psknote{{{note_text(e.note)}}}" if e.note else text
