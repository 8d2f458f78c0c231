"""Expressions, patterns, types and module expressions as text (printer.py says what is promised)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from presk_rel.syntax import ast
from presk_rel.syntax.print_parts import ATOM, BLOCK, EXPR, INDENT, LEVELS, POSTFIX, UNARY, Part, Task, separated
from presk_rel.syntax.token import SCALARS

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})


def quoted(string: ast.Str) -> str:
    return f'"{string.value.translate(_ESCAPES)}"'


def expr(node: ast.Expr, at: Task, level: int = EXPR, last: bool = True) -> Task:
    """`node` as a part of what `at` prints."""
    return Task(expr_parts, node, level, last, at.margin)


def expr_parts(at: Task) -> Sequence[Part]:
    node: ast.Expr = at.node
    if _needs_parentheses(node, at):
        return ["(", Task(_bare, node, BLOCK, True, at.margin), ")"]
    return _bare(at)


def _needs_parentheses(node: ast.Expr, at: Task) -> bool:
    match node:
        case ast.Binary(op=op):
            return LEVELS[op] < at.level
        case ast.Negate():
            return at.level > UNARY
        case ast.Let():
            return at.level > BLOCK
        case ast.Lambda():
            return not at.last
        case _:
            return False


def _bare(at: Task) -> Sequence[Part]:
    node: ast.Expr = at.node
    match node:
        case ast.Name(text) | ast.Nat(text) | ast.Decimal(text):
            return [text]
        case ast.Quantity(number, unit):
            return [number + unit]
        case ast.Str():
            return [quoted(node)]
        case ast.Negate(operand):
            # `--` would start a comment
            sign = "- " if isinstance(operand, ast.Negate) else "-"
            return [sign, expr(operand, at, UNARY, at.last)]
        case ast.Binary():
            return _binary(node, at)
        case ast.Let(pattern, value, body):
            head: list[Part] = ["let ", _pattern(pattern), " = ", expr(value, at)]
            return [*head, "\n", at.margin, expr(body, at, BLOCK)]
        case ast.Lambda():
            return _lambda(node, at)
        case ast.Tuple(items):
            return ["(", *separated(expr(item, at, BLOCK) for item in items), ")"]
        case ast.Ascribe(value, annotation):
            return ["(", *_ascription(value, annotation, at), ")"]
        case ast.Ein(axes, body):
            names = ", ".join(axis.text for axis in axes)
            return [f"ein[{names}](", expr(body, at, BLOCK), ")"]
        case ast.Call() | ast.DimApply() | ast.Field() | ast.Index():
            return _postfix(node, at)
        case _:
            assert_never(node)


def _binary(node: ast.Binary, at: Task) -> Sequence[Part]:
    level = LEVELS[node.op]
    if node.op == "^":
        return [expr(node.left, at, POSTFIX, False), "^", expr(node.right, at, UNARY, at.last)]
    # `4*D`, as dimensions are written
    op = "*" if node.op == "*" and isinstance(node.left, ast.Nat) else f" {node.op} "
    return [expr(node.left, at, level, False), op, expr(node.right, at, level + 1, at.last)]


def _ascription(value: ast.Expr, annotation: ast.TypeExpr, at: Task) -> list[Part]:
    """`HD : ℝ`: here the scalar is written without its brackets."""
    scalar = isinstance(annotation, ast.RealType) and not annotation.axes
    return [expr(value, at, BLOCK), " : ", "ℝ" if scalar else type_(annotation, at)]


def _lambda(node: ast.Lambda, at: Task) -> Sequence[Part]:
    body = Task(expr_parts, node.body, BLOCK, True, at.margin + INDENT)
    if node.type is None:
        return ["λ ", _pattern(node.pattern), ". ", body]
    return ["λ (", _pattern(node.pattern), " : ", type_(node.type, at), "). ", body]


def _postfix(node: ast.Call | ast.DimApply | ast.Field | ast.Index, at: Task) -> Sequence[Part]:
    match node:
        case ast.Call(ast.Name("stream"), (ast.Positional(ast.Str() as path),)):
            return [f"stream {quoted(path)}"]
        case ast.Call(callee, args):
            inside: list[Part] = ["(", *separated(Task(_arg, arg, margin=at.margin + INDENT) for arg in args), ")"]
            return [expr(callee, at, POSTFIX, False), *inside]
        case ast.DimApply(base, dims):
            return [expr(base, at, POSTFIX, False), *dim_list(dims, at)]
        case ast.Field(base, name):
            return [expr(base, at, POSTFIX, False), f".{name.text}"]
        case ast.Index(base, selectors):
            inside = ["[", *separated(Task(_selector, s, margin=at.margin) for s in selectors), "]"]
            return [expr(base, at, POSTFIX, False), *inside]
        case _:
            assert_never(node)


def dim_list(dims: tuple[ast.Expr, ...], at: Task) -> list[Part]:
    return ["{", *separated(expr(dim, at) for dim in dims), "}"]


# ------------------------------------------------------------------------------------------ arguments and selectors


def _arg(at: Task) -> Sequence[Part]:
    arg: ast.Arg = at.node
    match arg:
        case ast.Positional(ast.Ascribe(value, annotation)) if _is_ascription(value, annotation):
            return _ascription(value, annotation, at)
        case ast.Positional(value):
            return [expr(value, at, BLOCK)]
        case ast.Named(name, value):
            return [f"{name.text} = ", expr(value, at, BLOCK)]
        case ast.AxisArg(axis):
            return [f"axis {axis.text}"]
        case ast.NamedAxis(axis, dim):
            shown: list[Part] = ["(", expr(dim, at), ")"] if _reads_as_type(dim) else [expr(dim, at)]
            return [f"{axis.text}: ", *shown]
        case _:
            assert_never(arg)


def _is_ascription(value: ast.Expr, annotation: ast.TypeExpr) -> bool:
    """Whether `value : annotation` as an argument is no named axis (layout.py: `is_ascription`)."""
    match annotation:
        case _ if not isinstance(value, ast.Name):
            return True
        case ast.NamedType(ast.Name(text), None):
            return text in SCALARS
        case ast.NamedType():
            return False
        case _:
            return True


def _reads_as_type(dim: ast.Expr) -> bool:
    """Whether the layout filter would take the axis length for a type."""
    if isinstance(dim, ast.Tuple) or (isinstance(dim, ast.Name) and dim.text in SCALARS):
        return True
    while True:
        match dim:
            case ast.Binary(left=base) | ast.Call(callee=base) | ast.DimApply(base=base) | ast.Field(base=base):
                dim = base
            case ast.Index(base=base):
                if base == ast.Name("bool"):
                    return True
                dim = base
            case _:
                return False


def _selector(at: Task) -> Sequence[Part]:
    selector: ast.Selector = at.node
    label: list[Part] = [f"{selector.axis.text}: "] if selector.axis is not None else []
    match selector:
        case ast.At(index=index):
            return [*label, expr(index, at)]
        case ast.Slice(low=low, high=high):
            return [*label, expr(low, at), "..", expr(high, at)]
        case _:
            assert_never(selector)


# -------------------------------------------------------------------------------------------------------- patterns


def _pattern(pattern: ast.Pattern) -> Task:
    return Task(_pattern_parts, pattern)


def _pattern_parts(at: Task) -> Sequence[Part]:
    pattern: ast.Pattern = at.node
    match pattern:
        case ast.NamePattern(name):
            return [name.text]
        case ast.TuplePattern(items):
            return ["(", *separated(_pattern(item) for item in items), ")"]
        case _:
            assert_never(pattern)


# ------------------------------------------------------------------------------------------------------------ types


def type_(node: ast.TypeExpr, at: Task) -> Task:
    return Task(type_parts, node, margin=at.margin)


def type_parts(at: Task) -> Sequence[Part]:
    node: ast.TypeExpr = at.node
    match node:
        case ast.RealType(axes):
            return ["ℝ", *_axes(axes, at)]
        case ast.IdxType(bound, axes):
            return ["idx[", expr(bound, at), "]", *(_axes(axes, at) if axes else [])]
        case ast.MaskType(axes):
            return ["bool", *_axes(axes, at)]
        case ast.ParamType(inner):
            return ["param ", type_(inner, at)]
        case ast.ParamsType(module):
            return ["params ", expr(module, at)]
        case ast.NamedType(path, dims):
            return [expr(path, at), *(dim_list(dims, at) if dims is not None else [])]
        case ast.TupleType(items):
            return ["(", *separated(type_(item, at) for item in items), ")"]
        case _:
            assert_never(node)


def _axes(axes: tuple[ast.Axis, ...], at: Task) -> list[Part]:
    return ["[", *separated(Task(_axis, axis, margin=at.margin) for axis in axes), "]"]


def _axis(at: Task) -> Sequence[Part]:
    axis: ast.Axis = at.node
    if axis.dim is None:
        return ["..."]
    return [f"{axis.name.text}: " if axis.name else "", expr(axis.dim, at)]


# ----------------------------------------------------------------------------------------------- module expressions


def module_expr(node: ast.ModuleExpr, level: int = EXPR) -> Task:
    return Task(module_parts, node, level)


def module_parts(at: Task) -> Sequence[Part]:
    node: ast.ModuleExpr = at.node
    match node:
        case ast.Compose(outer, inner):
            parts = [module_expr(outer), " ∘ ", module_expr(inner, ATOM)]
            return ["(", *parts, ")"] if at.level == ATOM else parts
        case ast.ModuleRef(path, dims, modules):
            parts: list[Part] = [expr(path, at), *(dim_list(dims, at) if dims else [])]
            return [*parts, "(", *separated(module_expr(m) for m in modules), ")"] if modules else parts
        case _:
            assert_never(node)
