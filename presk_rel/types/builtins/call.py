"""A call of a builtin: its arguments sorted by the row's forms, then typed by the row's rule."""

from __future__ import annotations

from collections.abc import Sequence

from presk_rel.diagnostics import Span
from presk_rel.elab.dims import length
from presk_rel.smt.linear import Linear
from presk_rel.syntax import ast
from presk_rel.types.builtins.row import Builtin, Use
from presk_rel.types.builtins.table import BUILTINS
from presk_rel.types.check.arguments import Arg, Given, infer_all, infer_value
from presk_rel.types.check.checker import Checker, is_bad
from presk_rel.types.infer import IType
from presk_rel.types.tree import TExpr

_DERIVATIVES = frozenset({"builtin:grad", "builtin:vjp", "builtin:jvp"})


def is_derivative(c: Checker, expr: ast.Expr) -> bool:
    """Is `expr` a call of `grad`, `vjp` or `jvp`: a function value that its arguments say the type of?"""
    return isinstance(expr, ast.Call) and c.program.elab.target(expr.callee) in _DERIVATIVES


def call_builtin(c: Checker, name: str, args: Sequence[Arg], span: Span, at: Span, hint: IType | None) -> TExpr:
    row = BUILTINS[name]
    sorted_args = _sort(c, row, args, span)
    if sorted_args is None:
        infer_all(c, args)
        return c.broken(span)
    axes, dims, values, named = sorted_args
    hints = row.hints(c, hint)
    typed = tuple(
        infer_value(c, a.value, hints[i] if i < len(hints) else None)
        for i, a in enumerate(values)
        if a.value is not None
    )
    typed_named = {k: infer_value(c, a.value) for k, a in named.items() if a.value is not None}
    if any(is_bad(v) for v in (*typed, *typed_named.values())):
        return c.broken(span)
    use = Use(c, name, axes, dims, typed, typed_named, span, at, hint)
    return c.later(lambda: row.rule(use), span)


_Sorted = tuple[tuple[ast.Ident, ...], tuple[tuple[ast.Ident, Linear], ...], list[Arg], dict[str, Arg]]


def _sort(c: Checker, row: Builtin, args: Sequence[Arg], span: Span) -> _Sorted | None:
    """Axis arguments, named axes, values by position, named values; None after E2021 (or an error in a dimension)."""
    axes = tuple(a.name for a in args if a.form == "axis" and a.name is not None)
    named_axes = [a for a in args if a.form == "dim"]
    values: dict[str, Arg] = {}
    named: dict[str, Arg] = {}
    for arg in args:
        if arg.form in ("axis", "dim"):
            continue
        key = _slot(row, arg, values)
        if key is None or key in values or key in named:
            return _wrong(c, row, arg.span)
        (named if key in row.named else values)[key] = arg
    if len(axes) not in row.axes or len(named_axes) != row.dims or len(values) != len(row.values):
        return _wrong(c, row, span)
    dims = [(a.name, _length(c, a)) for a in named_axes]
    known = tuple((n, d) for n, d in dims if n is not None and d is not None)
    return (axes, known, [values[v] for v in row.values], named) if len(known) == len(dims) else None


def _slot(row: Builtin, arg: Arg, taken: dict[str, Arg]) -> str | None:
    if arg.form == "named" and arg.name is not None:
        return arg.name.text if arg.name.text in (*row.values, *row.named) else None
    return next((v for v in row.values if v not in taken), None)


def _length(c: Checker, arg: Arg) -> Linear | None:
    return None if arg.value is None or isinstance(arg.value, Given) else length(c.program.elab, arg.value)


def _wrong(c: Checker, row: Builtin, span: Span) -> None:
    c.error("E2021", f"`{row.name}` does not take these arguments", span, help=f"write {' or '.join(_forms(row))}")


def _forms(row: Builtin) -> list[str]:
    letters = "abc"
    out: list[str] = []
    for n in row.axes:
        parts = [f"axis {letters[i]}" for i in range(n)]
        parts += [f"{letters[i]}: {'LMN'[i]}" for i in range(row.dims)]
        parts += row.values
        out.append(f"{row.name}({', '.join(parts)})")
        out.extend(f"{row.name}({', '.join([*parts, f'{k} = …'])})" for k in row.named)
    return out
