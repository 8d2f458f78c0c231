"""Dimension expressions → linear forms (spec: "Dimensions")."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.diagnostics import Span
from presk_rel.elab.context import Elab
from presk_rel.elab.declared import Declared
from presk_rel.smt.linear import Linear, constant, symbol
from presk_rel.smt.solver import Divides, Proven, Refuted
from presk_rel.syntax import ast

LARGEST = 10**18
"""Naturals beyond it are refused (E1029): no tensor has such an axis, and their arithmetic would not end."""

_DIGITS = len(str(LARGEST))


def natural(elab: Elab, literal: ast.Nat) -> int | None:
    """The value of a natural literal; E1029 if it is too large."""
    digits = literal.text.lstrip("0") or "0"
    if len(digits) <= _DIGITS and int(digits) <= LARGEST:
        return int(digits)
    elab.error("E1029", f"the number {_short(digits)} is too large: dimensions end at 10^18", literal.span)
    return None


def _short(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:8]}… ({len(digits)} digits)"


def length(elab: Elab, expr: ast.Expr) -> Linear | None:
    """The form of an axis length, index bound, count or dimension argument: a constant one must be a natural (E1028).
    None after an error, which is reported here or by the pass over names."""
    form = dimension(elab, expr)
    if form is None or not form.is_constant:
        return form
    if form.const.denominator != 1 or form.const < 0:
        elab.error("E1028", f"the dimension is {form}, which is no natural number", expr.span)
        return None
    return form


def dimension(elab: Elab, expr: ast.Expr) -> Linear | None:
    """The linear form that an expression over naturals, constants and symbolic dimensions denotes. Left-deep chains of
    operators may be long: the spine is walked by a loop."""
    spine: list[ast.Binary] = []
    while isinstance(expr, ast.Binary):
        spine.append(expr)
        expr = expr.left
    value = _atom(elab, expr)
    for node in reversed(spine):
        right = dimension(elab, node.right)
        value = None if value is None or right is None else _combine(elab, node, value, right)
    return value


def _atom(elab: Elab, expr: ast.Expr) -> Linear | None:
    match expr:
        case ast.Nat():
            value = natural(elab, expr)
            return None if value is None else constant(value)
        case ast.Negate(operand):
            inner = dimension(elab, operand)
            return None if inner is None else inner.scale(-1)
        case ast.Name() | ast.Field():
            return _named(elab, expr)
        case _:
            elab.error("E1026", "this is no dimension", expr.span, help=_DIMENSIONS)
            return None


_DIMENSIONS = "a dimension is built from naturals, constants and dims with + - * /"


def _named(elab: Elab, path: ast.Name | ast.Field) -> Linear | None:
    found = elab.names.resolve(path.span) if isinstance(path, ast.Name) else None
    if found is not None and found in elab.implicit:
        return symbol(path.text) if isinstance(path, ast.Name) else None
    target = elab.target(path)
    if isinstance(target, Declared):
        return _declared(elab, target, path.span)
    if not elab.unresolved(path):
        elab.error("E1026", f"`{path_text(path)}` is no dimension", path.span, help=_DIMENSIONS)
    return None


def _declared(elab: Elab, target: Declared, span: Span) -> Linear | None:
    match target.node:
        case ast.Const():
            return _constant(elab, target, span)
        case ast.Dim():
            return symbol(elab.symbol_of(target))
        case ast.TypeParam(_, "dim"):
            return symbol(elab.symbol_of(target))
        case ast.TypeParam(_, "Shape"):
            elab.error("E1026", f"`{target.name}` is a shape, not a dimension; it can only begin a list of axes", span)
        case _:
            elab.error("E1026", f"`{target.name}` is no dimension", span, help=_DIMENSIONS)
    return None


def _constant(elab: Elab, target: Declared, span: Span) -> Linear | None:
    if target.id in elab.constants:
        value = elab.constants[target.id]
        return None if value is None else constant(value)
    elab.error(
        "E1022",
        f"the constant `{target.name}` is used before its declaration",
        span,
        help="constants are computed in order: move the declaration up",
    )
    return None


def _combine(elab: Elab, node: ast.Binary, left: Linear, right: Linear) -> Linear | None:
    match node.op:
        case "+":
            return _bounded(elab, node, left + right)
        case "-":
            return _bounded(elab, node, left - right)
        case "*":
            return _product(elab, node, left, right)
        case "/":
            return _quotient(elab, node, left, right)
        case _:
            elab.error("E1026", f"`{node.op}` is no operator of dimensions", node.op_span, help=_DIMENSIONS)
            return None


def _bounded(elab: Elab, node: ast.Binary, form: Linear) -> Linear | None:
    numbers = [form.const, *(c for _, c in form.terms)]
    if all(abs(n.numerator) <= LARGEST and n.denominator <= LARGEST for n in numbers):
        return form
    elab.error("E1029", "a number in this dimension grows beyond 10^18", node.span)
    return None


def _product(elab: Elab, node: ast.Binary, left: Linear, right: Linear) -> Linear | None:
    form = left.times(right)
    if form is not None:
        return _bounded(elab, node, form)
    elab.error(
        "E1007",
        f"the product of `{left}` and `{right}` is no linear dimension",
        node.op_span,
        help="one factor must be a number: products of symbolic dimensions are not decidable",
    )
    return None


def _quotient(elab: Elab, node: ast.Binary, left: Linear, right: Linear) -> Linear | None:
    if not right.is_constant:
        elab.error(
            "E1007",
            f"the dimension `{left}` is divided by `{right}`, which may be 0",
            node.op_span,
            help="divide by a number",
        )
        return None
    divisor = right.const
    if divisor == 0:
        elab.error("E1028", "division by zero", node.op_span)
        return None
    quotient = _bounded(elab, node, left.scale(1 / divisor))
    if quotient is None or left.is_constant:
        return quotient
    return quotient if _divides(elab, node, left, divisor) else None


def _divides(elab: Elab, node: ast.Binary, left: Linear, divisor: Fraction) -> bool:
    """The fact `k | e` that a division of a symbolic dimension needs."""
    scaled, k = left.scale(divisor.denominator), abs(divisor.numerator)
    verdict = elab.solver.prove(Divides(k, scaled))
    if isinstance(verdict, Proven):
        return True
    example = dict(verdict.counterexample) if isinstance(verdict, Refuted) else None
    elab.error(
        "E1030",
        f"`{left}` is not always divisible by {divisor}",
        node.op_span,
        counterexample=example,
        help=f"name the quotient by a dim of its own, and write the dividend as {divisor} times it",
    )
    return False


def path_text(path: ast.Expr) -> str:
    """`m.V` as written."""
    parts: list[str] = []
    while isinstance(path, ast.Field):
        parts.append(path.name.text)
        path = path.base
    if isinstance(path, ast.Name):
        parts.append(path.text)
    return ".".join(reversed(parts))
