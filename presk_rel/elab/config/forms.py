"""Value forms of configuration fields: what may be written, how it is said in a diagnostic (`str`), and reading it.

Reading gives plain values: Fraction, int, str, the expression of a path, tuples, and `Called` for what is written as a
call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import assert_never

from presk_rel.diagnostics.record import record
from presk_rel.elab.context import Elab
from presk_rel.elab.declared import Declared
from presk_rel.elab.dims import natural
from presk_rel.elab.numbers import exact
from presk_rel.syntax import ast


@record
class Number:
    """A decimal or natural literal, from `low` (`strict`: above it) to below `high`."""

    low: Fraction = Fraction(0)
    strict: bool = False
    high: Fraction | None = None

    def __str__(self) -> str:
        start = f"above {self.low}" if self.strict else f"from {self.low}"
        return f"a number {start}" + (f" to below {self.high}" if self.high is not None else "")


@record
class Natural:
    """A natural literal or a constant, from `least`."""

    least: int = 0

    def __str__(self) -> str:
        return "N" if self.least == 0 else f"N ≥ {self.least}"


@record
class Text:
    """A string literal; `what` is shown."""

    what: str = "path"

    def __str__(self) -> str:
        return f'"{self.what}"'


@record
class Word:
    """A bare name; one of `among` if that is not empty."""

    among: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "|".join(self.among) or "NAME"


@record
class Duration:
    """`5ms`, `2s`."""

    def __str__(self) -> str:
        return "5ms"


@record
class Path:
    """A name or a member of an import; `what` says of what."""

    what: str

    def __str__(self) -> str:
        return self.what


@record
class Pair:
    first: Form
    second: Form

    def __str__(self) -> str:
        return f"a pair (a, b): {self.first}" + ("" if self.first == self.second else f", {self.second}")


@record
class AxisForm:
    """The argument `axis a`."""

    def __str__(self) -> str:
        return "axis a"


@record
class Either:
    """One of several forms."""

    forms: tuple[Form, ...]

    def __str__(self) -> str:
        return "|".join(map(str, self.forms))


@record
class Call:
    """`name(…)`: positional arguments by number, then named ones. `optional` ones may be missing."""

    name: str
    plain: tuple[Form, ...] = ()
    named: tuple[tuple[str, Form], ...] = ()
    optional: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.name == "stream":
            return f"stream {self.plain[0]}"
        return f"{self.name}({', '.join([*map(str, self.plain), *(f'{n} = {f}' for n, f in self.named)])})"


@record
class Joined:
    """Calls joined by `op`, each form at most once, in any order."""

    op: str
    forms: tuple[Call, ...]

    def __str__(self) -> str:
        return f" {self.op} ".join(map(str, self.forms))


@record
class Steps:
    """A pipeline: the forms in order, of which those named in `optional` may be missing."""

    forms: tuple[Call, ...]
    optional: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self._step(i, f) for i, f in enumerate(self.forms))

    def _step(self, index: int, form: Call) -> str:
        text = f"|> {form}" if index else str(form)
        return f"[{text}]" if form.name in self.optional else text


Form = Number | Natural | Text | Word | Duration | Path | Pair | AxisForm | Either | Call | Joined | Steps


@record
class Called:
    """What a call says: its arguments by name, positional ones by number (`"0"`)."""

    name: str
    args: Mapping[str, Value]

    def text(self, name: str) -> str:
        value = self.args[name]
        assert isinstance(value, str)
        return value

    def int_(self, name: str) -> int:
        value = self.args[name]
        assert isinstance(value, int)
        return value


Value = Fraction | int | str | ast.Expr | Called | tuple["Value", ...]


def read(elab: Elab, form: Form, expr: ast.Expr) -> Value | None:
    """The value of `expr` as `form` has it; None if it is not of that form."""
    match form:
        case Number():
            return _number(elab, form, expr)
        case Natural():
            return _natural(elab, form, expr)
        case Text():
            return expr.value if isinstance(expr, ast.Str) else None
        case Word(among):
            return expr.text if isinstance(expr, ast.Name) and (not among or expr.text in among) else None
        case Duration():
            return _duration(expr)
        case Path():
            return expr if isinstance(expr, ast.Name | ast.Field) else None
        case Pair(first, second):
            return _all(elab, (first, second), expr.items) if isinstance(expr, ast.Tuple) else None
        case AxisForm():
            return None
        case Either(forms):
            return next((v for f in forms if (v := read(elab, f, expr)) is not None), None)
        case Call():
            return _call(elab, form, expr)
        case Joined(op, forms):
            return _joined(elab, forms, _parts(op, expr))
        case Steps():
            return _steps(elab, form, _parts("|>", expr))
        case _:
            assert_never(form)


def _number(elab: Elab, form: Number, expr: ast.Expr) -> Fraction | None:
    if not isinstance(expr, ast.Nat | ast.Decimal):
        return None
    value = exact(elab.diagnostics, expr)
    if value is None or value < form.low or (form.strict and value == form.low):
        return None
    return value if form.high is None or value < form.high else None


def _natural(elab: Elab, form: Natural, expr: ast.Expr) -> int | None:
    value: int | None = None
    if isinstance(expr, ast.Nat):
        value = natural(elab, expr)
    elif isinstance(expr, ast.Name | ast.Field):
        target = elab.target(expr)
        value = elab.constants.get(target.id) if isinstance(target, Declared) else None
    return value if value is not None and value >= form.least else None


def _duration(expr: ast.Expr) -> str | None:
    if isinstance(expr, ast.Quantity) and expr.unit in ("us", "µs", "ms", "s", "min"):
        return f"{expr.number}{expr.unit}"
    return None


def _all(elab: Elab, forms: tuple[Form, ...], exprs: tuple[ast.Expr, ...]) -> tuple[Value, ...] | None:
    if len(forms) != len(exprs):
        return None
    values = [read(elab, f, e) for f, e in zip(forms, exprs, strict=True)]
    known = tuple(v for v in values if v is not None)
    return known if len(known) == len(forms) else None


def _call(elab: Elab, form: Call, expr: ast.Expr) -> Called | None:
    if not isinstance(expr, ast.Call) or not isinstance(expr.callee, ast.Name) or expr.callee.text != form.name:
        return None
    takes: dict[str, Form] = {**{str(i): f for i, f in enumerate(form.plain)}, **dict(form.named)}
    found: dict[str, Value] = {}
    for name, arg in _named(expr.args):
        value = _argument(elab, takes[name], arg) if name in takes and name not in found else None
        if value is None:
            return None
        found[name] = value
    return Called(form.name, found) if all(n in found or n in form.optional for n in takes) else None


def _named(args: tuple[ast.Arg, ...]) -> Iterator[tuple[str, ast.Arg]]:
    for position, arg in enumerate(args):
        yield (arg.name.text if isinstance(arg, ast.Named) else str(position)), arg


def _argument(elab: Elab, form: Form, arg: ast.Arg) -> Value | None:
    match arg:
        case ast.AxisArg(axis):
            return axis.text if isinstance(form, AxisForm) else None
        case ast.Positional(value) | ast.Named(_, value):
            return read(elab, form, value)
        case ast.NamedAxis():
            return None
        case _:
            assert_never(arg)


def _parts(op: str, expr: ast.Expr) -> list[ast.Expr]:
    """`a op b op c`, which nests to the left, in order."""
    parts: list[ast.Expr] = []
    while isinstance(expr, ast.Binary) and expr.op == op:
        parts.append(expr.right)
        expr = expr.left
    return [expr, *reversed(parts)]


def _joined(elab: Elab, forms: tuple[Call, ...], parts: list[ast.Expr]) -> tuple[Value, ...] | None:
    found: list[Value] = []
    left = list(forms)
    for part in parts:
        hit = next(((f, v) for f in left if (v := _call(elab, f, part)) is not None), None)
        if hit is None:
            return None
        left.remove(hit[0])
        found.append(hit[1])
    return tuple(found)


def _steps(elab: Elab, form: Steps, parts: list[ast.Expr]) -> tuple[Value, ...] | None:
    found: list[Value] = []
    for step in form.forms:
        value = _call(elab, step, parts[len(found)]) if len(found) < len(parts) else None
        if value is not None:
            found.append(value)
        elif step.name not in form.optional:
            return None
    return tuple(found) if len(found) == len(parts) else None
