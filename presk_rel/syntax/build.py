"""From productions to trees: one function per name on the right of `->` (or rule) in grammar.lark.

Each takes the span of what was read and the production's children: tokens, nodes, lists, or None for an absent part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from presk_rel.diagnostics import Pos, Span
from presk_rel.syntax import ast
from presk_rel.syntax.token import Token, words


def items(_span: Span, *found: Any) -> tuple[Any, ...]:
    return tuple(item for item in found if item is not None)


def same(_span: Span, found: Any) -> Any:
    return found


def _parsed(_span: Span, found: Any) -> Any:
    return found


# ---------------------------------------------------------------------------------------------------------- names


def name(span: Span, token: Token) -> ast.Ident:
    return ast.Ident(token.text, span)


def variable(span: Span, ident: ast.Ident) -> ast.Name:
    return ast.Name(ident.text, span)


# ---------------------------------------------------------------------------------------------------- expressions


def nat(span: Span, token: Token) -> ast.Nat:
    return ast.Nat(token.text, span)


def decimal(span: Span, token: Token) -> ast.Decimal:
    return ast.Decimal(token.text, span)


def quantity(span: Span, token: Token) -> ast.Quantity:
    number, _, unit = token.text.partition(" ")
    return ast.Quantity(number, unit, span)


def string(span: Span, token: Token) -> ast.Str:
    return ast.Str(token.text, span)


def _str(span: Span, token: Token) -> ast.Str:
    return ast.Str(token.text, Span(span.file, token.start, token.end))


def stream(span: Span, token: Token) -> ast.Call:
    """`stream "path"` is sugar for `stream("path")`."""
    value, word, start = _str(span, token), "stream", span.start
    end = Pos(start.line, start.column + len(word), start.offset + len(word))
    callee = ast.Name(word, Span(span.file, start, end))
    return ast.Call(callee, (ast.Positional(value, value.span),), span)


def binary(span: Span, left: ast.Expr, op: Token, right: ast.Expr) -> ast.Binary:
    return ast.Binary(cast(ast.BinaryOp, op.kind), left, right, Span(span.file, op.start, op.end), span)


def negate(span: Span, operand: ast.Expr) -> ast.Negate:
    return ast.Negate(operand, span)


def call(span: Span, callee: ast.Expr, args: tuple[ast.Arg, ...]) -> ast.Call:
    return ast.Call(callee, args, span)


def positional(span: Span, value: ast.Expr) -> ast.Positional:
    return ast.Positional(value, span)


def ascribed(span: Span, value: ast.Expr, type: ast.TypeExpr) -> ast.Positional:
    return ast.Positional(ast.Ascribe(value, type, span), span)


def named(span: Span, label: ast.Ident, value: ast.Expr) -> ast.Named:
    return ast.Named(label, value, span)


def named_axis(span: Span, axis: ast.Ident, dim: ast.Expr) -> ast.NamedAxis:
    return ast.NamedAxis(axis, dim, span)


def axis_arg(span: Span, axis: ast.Ident) -> ast.AxisArg:
    return ast.AxisArg(axis, span)


def index(span: Span, base: ast.Expr, selectors: tuple[ast.Selector, ...]) -> ast.Index:
    return ast.Index(base, selectors, span)


def at(span: Span, position: ast.Expr) -> ast.At:
    return ast.At(None, position, span)


def named_at(span: Span, axis: ast.Ident, position: ast.Expr) -> ast.At:
    return ast.At(axis, position, span)


def slice(span: Span, low: ast.Expr, high: ast.Expr) -> ast.Slice:
    return ast.Slice(None, low, high, span)


def named_slice(span: Span, axis: ast.Ident, low: ast.Expr, high: ast.Expr) -> ast.Slice:
    return ast.Slice(axis, low, high, span)


def dim_apply(span: Span, base: ast.Expr, dims: tuple[ast.Expr, ...]) -> ast.DimApply:
    return ast.DimApply(base, dims, span)


def field(span: Span, base: ast.Expr, label: ast.Ident) -> ast.Field:
    return ast.Field(base, label, span)


def let(span: Span, pattern: ast.Pattern, value: ast.Expr, body: ast.Expr) -> ast.Let:
    return ast.Let(pattern, value, body, span)


def function(span: Span, pattern: ast.Pattern, body: ast.Expr) -> ast.Lambda:
    return ast.Lambda(pattern, None, body, span)


def typed_function(span: Span, pattern: ast.Pattern, type: ast.TypeExpr, body: ast.Expr) -> ast.Lambda:
    return ast.Lambda(pattern, type, body, span)


def ein(span: Span, axes: tuple[ast.Ident, ...] | None, body: ast.Expr) -> ast.Ein:
    return ast.Ein(axes or (), body, span)


def ascribe(span: Span, value: ast.Expr, type: ast.TypeExpr) -> ast.Ascribe:
    return ast.Ascribe(value, type, span)


def tuple_(span: Span, *found: ast.Expr) -> ast.Tuple:
    return ast.Tuple(found, span)


def name_pattern(span: Span, ident: ast.Ident) -> ast.NamePattern:
    return ast.NamePattern(ident, span)


def tuple_pattern(span: Span, *found: ast.Pattern) -> ast.TuplePattern:
    return ast.TuplePattern(found, span)


# ---------------------------------------------------------------------------------------------------------- types

Axes = tuple[ast.Axis, ...]


def real_type(span: Span, axes: Axes | None) -> ast.RealType:
    return ast.RealType(axes or (), span)


def idx_type(span: Span, bound: ast.Expr, axes: Axes | None) -> ast.IdxType:
    return ast.IdxType(bound, axes or (), span)


def mask_type(span: Span, axes: Axes) -> ast.MaskType:
    return ast.MaskType(axes, span)


def param_type(span: Span, inner: ast.TypeExpr) -> ast.ParamType:
    return ast.ParamType(inner, span)


def params_type(span: Span, module: ast.Expr) -> ast.ParamsType:
    return ast.ParamsType(module, span)


def named_type(span: Span, path: ast.Expr, dims: tuple[ast.Expr, ...] | None) -> ast.NamedType:
    return ast.NamedType(path, dims, span)


def tuple_type(span: Span, *found: ast.TypeExpr) -> ast.TupleType:
    return ast.TupleType(found, span)


def axis(span: Span, dim: ast.Expr) -> ast.Axis:
    return ast.Axis(None, dim, span)


def named_length(span: Span, label: ast.Ident, dim: ast.Expr) -> ast.Axis:
    return ast.Axis(label, dim, span)


def open_prefix(span: Span) -> ast.Axis:
    return ast.Axis(None, None, span)


# --------------------------------------------------------------------------------------------- module expressions


def module_ref(
    span: Span, path: ast.Expr, dims: tuple[ast.Expr, ...] | None, modules: tuple[ast.ModuleExpr, ...] | None
) -> ast.ModuleRef:
    return ast.ModuleRef(path, dims or (), modules or (), span)


def compose(span: Span, outer: ast.ModuleExpr, inner: ast.ModuleExpr) -> ast.Compose:
    return ast.Compose(outer, inner, span)


# --------------------------------------------------------------------------------------------------- declarations


def file(span: Span, *decls: ast.Decl) -> ast.File:
    return ast.File(span.file, decls, span)


def import_decl(span: Span, path: Token, alias: ast.Ident) -> ast.Import:
    return ast.Import(_str(span, path), alias, span)


def const(span: Span, ident: ast.Ident, type: ast.TypeExpr | None, value: ast.Expr) -> ast.Const:
    return ast.Const(ident, type, value, span)


def static_assert(span: Span, condition: ast.Expr) -> ast.StaticAssert:
    return ast.StaticAssert(condition, span)


def dim(span: Span, ident: ast.Ident, bound: ast.Expr | None) -> ast.Dim:
    return ast.Dim(ident, bound, span)


def type_alias(span: Span, ident: ast.Ident, type: ast.TypeExpr) -> ast.TypeAlias:
    return ast.TypeAlias(ident, type, span)


def effect(span: Span, ident: ast.Ident) -> ast.Effect:
    return ast.Effect(ident, span)


def model(span: Span, ident: ast.Ident, module: ast.ModuleExpr) -> ast.Model:
    return ast.Model(ident, module, span)


TypeParams = tuple[ast.TypeParam, ...]


def module(span: Span, ident: ast.Ident, type_params: TypeParams | None, *members: ast.Member) -> ast.Module:
    return ast.Module(ident, type_params or (), members, span)


def param(span: Span, names: tuple[ast.Ident, ...], type: ast.TypeExpr, init: ast.Expr | None) -> ast.Param:
    """`param w : param T` and `param w : T` are the same declaration."""
    return ast.Param(names, type.inner if isinstance(type, ast.ParamType) else type, init, span)


def use(span: Span, names: tuple[ast.Ident, ...], module: ast.ModuleExpr) -> ast.Use:
    return ast.Use(names, module, span)


def fn(
    span: Span,
    ident: ast.Ident,
    type_params: TypeParams | None,
    params: tuple[ast.FnParam, ...] | None,
    result: ast.TypeExpr | None,
    uses: tuple[ast.Ident, ...] | None,
    body: ast.Expr,
) -> ast.Fn:
    return ast.Fn(ident, type_params or (), params or (), result, uses or (), body, span)


def fn_param(span: Span, ident: ast.Ident, type: ast.TypeExpr | None, default: ast.Expr | None) -> ast.FnParam:
    return ast.FnParam(False, ident, type, default, span)


def axis_param(span: Span, ident: ast.Ident, type: ast.TypeExpr | None, default: ast.Expr | None) -> ast.FnParam:
    return ast.FnParam(True, ident, type, default, span)


def type_params(_span: Span, *groups: TypeParams) -> TypeParams:
    return tuple(param for group in groups for param in group)


def type_group(_span: Span, *found: Any) -> TypeParams:
    """Names, then the kind that all of them have."""
    kind: Any = found[-1]
    names: tuple[ast.Ident, ...] = found[:-1]
    return tuple(ast.TypeParam(ident, kind, ident.span) for ident in names)


def kind(_span: Span, token: Token) -> str:
    return token.kind


# ------------------------------------------------------------------------------------------- configuration blocks


def optimizer(span: Span, ident: ast.Ident, body: tuple[ast.ConfigItem, ...]) -> ast.Config:
    return ast.Config("optimizer", ident, body, span)


def training(span: Span, ident: ast.Ident, body: tuple[ast.ConfigItem, ...]) -> ast.Config:
    return ast.Config("training", ident, body, span)


def inference(span: Span, ident: ast.Ident, body: tuple[ast.ConfigItem, ...]) -> ast.Config:
    return ast.Config("inference", ident, body, span)


def field_value(span: Span, ident: ast.Ident, value: ast.Expr) -> ast.ConfigField:
    return ast.ConfigField(ident, None, value, span)


def field_typed(span: Span, ident: ast.Ident, type: ast.TypeExpr, value: ast.Expr) -> ast.ConfigField:
    return ast.ConfigField(ident, type, value, span)


def checkpoint(span: Span, steps: ast.Expr, path: Token) -> ast.Checkpoint:
    return ast.Checkpoint(steps, _str(span, path), span)


Builder = Callable[..., Any]

BUILDERS: Final[dict[str, Builder]] = {
    f.__name__.rstrip("_"): f
    for f in (
        items, same, name, variable, nat, decimal, quantity, string, stream, binary, negate, call, positional, ascribed,
        named, named_axis, axis_arg, index, at, named_at, slice, named_slice, dim_apply, field, let, function,
        typed_function, ein, ascribe, tuple_, name_pattern, tuple_pattern, real_type, idx_type, mask_type, param_type,
        params_type, named_type, tuple_type, axis, named_length, open_prefix, module_ref, compose, file, import_decl,
        const, static_assert, dim, type_alias, effect, model, module, param, use, fn, fn_param, axis_param, type_params,
        type_group, kind, optimizer, training, inference, field_value, field_typed, checkpoint,
    )
} | {
    "group": same, "names": items, "fn_params": items, "module_args": items, "config_body": items,
    "lone_expr": _parsed, "lone_type": _parsed, "lone_module": _parsed,
}  # fmt: skip

NESTS: Final = words(
    "negate call stream index dim_apply field function typed_function ein ascribe group tuple tuple_pattern "
    "real_type idx_type mask_type param_type params_type named_type tuple_type module_ref compose"
)
"""Productions that add a level of nesting; `binary` and `let` add one for all but their `left` and `body`."""
