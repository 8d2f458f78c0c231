"""Arguments of a call, and which parameter each is for (spec: "Calls")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.signatures import ParamSig
from presk_rel.syntax import ast
from presk_rel.types.check.checker import Blame, Checker
from presk_rel.types.infer import IType
from presk_rel.types.tree import TExpr


@record
class Given:
    """An argument that is typed already: the left side of `|>`."""

    node: TExpr
    span: Span


Value = ast.Expr | Given


@record
class Arg:
    """`name` is the parameter's or axis' name; `value` of `axis a` is None."""

    form: Literal["positional", "named", "axis", "dim"]
    name: ast.Ident | None
    value: Value | None
    span: Span


def arguments(args: Sequence[ast.Arg]) -> list[Arg]:
    return [_argument(a) for a in args]


def _argument(arg: ast.Arg) -> Arg:
    match arg:
        case ast.Positional(value):
            return Arg("positional", None, value, value.span)
        case ast.Named(name, value):
            return Arg("named", name, value, arg.span)
        case ast.AxisArg(axis):
            return Arg("axis", axis, None, arg.span)
        case ast.NamedAxis(axis, dim):
            return Arg("dim", axis, dim, arg.span)


def infer_value(c: Checker, value: Value, hint: IType | None = None) -> TExpr:
    return value.node if isinstance(value, Given) else c.infer(value, hint)


def check_value(c: Checker, value: Value, expected: IType, blame: Blame) -> TExpr:
    return c.expect(infer_value(c, value, expected), expected, value.span, blame)


def infer_all(c: Checker, args: Sequence[Arg]) -> None:
    """Infers arguments that go nowhere, for the errors in them."""
    for arg in args:
        if arg.value is not None and arg.form != "dim":
            infer_value(c, arg.value)


def match(
    c: Checker, callee: str, params: Sequence[ParamSig], args: Sequence[Arg], span: Span
) -> list[Value | None] | None:
    """One value for each parameter, None where its default stands in; E2021 when they do not fit together."""
    found: dict[str, Value] = {}
    for arg in args:
        if arg.form in ("axis", "dim") or arg.value is None:
            name = "" if arg.name is None else arg.name.text
            c.error("E2021", f"`{callee}` takes no axis argument `{name}`", arg.span)
            return None
        name = _parameter(c, callee, params, arg, found)
        if name is None:
            return None
        found[name] = arg.value
    missing = [p.name for p in params if p.name not in found and p.node.default is None]
    if missing:
        names = ", ".join(f"`{m}`" for m in missing)
        c.error("E2021", f"`{callee}` is called without {names}", span, help=f"it takes {_heading(params)}")
        return None
    return [found.get(p.name) for p in params]


def _parameter(c: Checker, callee: str, params: Sequence[ParamSig], arg: Arg, found: dict[str, Value]) -> str | None:
    if arg.form == "named" and arg.name is not None:
        return _by_name(c, callee, params, arg.name, found)
    left = next((p for p in params if p.name not in found), None)
    if left is None:
        c.error("E2021", f"`{callee}` is called with too many arguments", arg.span, help=f"it takes {_heading(params)}")
        return None
    return left.name


def _by_name(
    c: Checker, callee: str, params: Sequence[ParamSig], name: ast.Ident, found: dict[str, Value]
) -> str | None:
    names = [p.name for p in params]
    if name.text not in names:
        from difflib import get_close_matches

        near = get_close_matches(name.text, names, 1)
        help_text = f"did you mean `{near[0]}`?" if near else f"it takes {_heading(params)}"
        c.error("E2021", f"`{callee}` has no parameter `{name.text}`", name.span, help=help_text)
        return None
    if name.text in found:
        c.error("E2021", f"the parameter `{name.text}` of `{callee}` is given twice", name.span)
        return None
    return name.text


def _heading(params: Sequence[ParamSig]) -> str:
    if not params:
        return "no arguments"
    return ", ".join(f"{p.name}{' (optional)' if p.node.default is not None else ''}" for p in params)
