"""Lengths as the source writes them: `4 * D` where it says `4*D`, though constants are numbers by now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from presk_rel.diagnostics import Span
from presk_rel.elab.declared import Declared
from presk_rel.export.text import ATOM, PRODUCT, SUM, UNARY, Py, infix, literal
from presk_rel.smt.linear import Linear, constant, symbol
from presk_rel.syntax import ast

Read = tuple[Linear, Py]
_LEVELS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}


@dataclass(slots=True)
class Written:
    """The constants of all files: their values and Python names by declaration, and where each is used."""

    resolve: Callable[[Span], str | None] = lambda _: None
    uses: Mapping[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    """By file, the offset and the declaration of every use of a constant."""
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    names: dict[str, str] = field(default_factory=dict[str, str])
    declared: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The declaration of a file's constant by its name."""

    def near(self, span: Span, value: int) -> str | None:
        """The constant of this value that the source names within a span."""
        first, last = span.start.offset, span.end.offset
        found = (d for at, d in self.uses.get(span.file, []) if first <= at < last and self.values[d] == value)
        return next((self.names[d] for d in found if d in self.names), None)

    def of_file(self, file: str, name: str) -> str | None:
        """Python's name of a file's constant."""
        return self.names.get(self.declared.get((file, name), ""))

    def read(self, e: ast.Expr, symbols: Mapping[str, Py]) -> Read | None:
        """A length of the source and its Python, for dims of which `symbols` has the Python; None for anything else."""
        match e:
            case ast.Nat(text):
                number = Fraction(int(text))
                return constant(number), literal(number)
            case ast.Name(text, span):
                return self._named(span, text, symbols)
            case ast.Field(_, name):
                return self._named(name.span, "", symbols)
            case ast.Negate(operand):
                inner = self.read(operand, symbols)
                return None if inner is None else (inner[0].scale(-1), Py(f"-{inner[1].at(UNARY)}", UNARY, True))
            case ast.Binary(op, left, right) if op in _LEVELS:
                a, b = self.read(left, symbols), self.read(right, symbols)
                form = None if a is None or b is None else _combined(op, a[0], b[0])
                if a is None or b is None or form is None:
                    return None
                return form, infix(a[1], "//" if op == "/" else op, b[1], _LEVELS[op], number=True)
            case _:
                return None

    def _named(self, span: Span, text: str, symbols: Mapping[str, Py]) -> Read | None:
        declaration = self.resolve(span)
        if declaration is not None and declaration in self.values:
            name = self.names.get(declaration)
            return None if name is None else (constant(self.values[declaration]), Py(name, ATOM, True))
        return (symbol(text), symbols[text]) if text in symbols else None


def _combined(op: str, a: Linear, b: Linear) -> Linear | None:
    """None where Python's whole numbers would be others: at a division that leaves a rest."""
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a.times(b)
        case _:
            if not b.is_constant or b.const == 0:
                return None
            form = a.scale(1 / b.const)
            whole = form.const.denominator == 1 and all(c.denominator == 1 for _, c in form.terms)
            return form if whole else None


def written(constants: Mapping[str, Declared], values: Mapping[str, int], uses: Mapping[str, str]) -> Written:
    """The constants `constants`, by declaration, before they have names; `uses` are all uses of names, by place."""

    def resolve(span: Span) -> str | None:
        return uses.get(f"{span.file}@{span.start.offset}")

    by_file: dict[str, list[tuple[int, str]]] = {}
    for place, declaration in uses.items():
        if declaration in constants and declaration in values:
            file, _, offset = place.rpartition("@")
            by_file.setdefault(file, []).append((int(offset), declaration))
    declared = {(d.file, d.name): id for id, d in constants.items()}
    return Written(resolve, {f: sorted(us) for f, us in by_file.items()}, values, {}, declared)
