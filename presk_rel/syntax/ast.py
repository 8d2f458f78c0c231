"""The abstract syntax of Presk (spec: "Program structure" to "Expressions").

Frozen trees with spans. Spans do not take part in equality, so `parse(print(tree)) == tree` says that the *structure*
survives. Identifiers are NFC-normalised; numbers keep their text (no rounding at parse time); both spellings of a
symbol give the same tree (the canonical Unicode one).

A parsed tree is at most 200 nodes deep (E0005), not counting the two chains that may have any length: walkers loop
along `Binary.left` and `Let.body`, and may recurse everywhere else. `==` recurses everywhere.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from presk_rel.diagnostics import NOWHERE, Span
from presk_rel.diagnostics.record import record


def _span() -> Any:
    return field(default=NOWHERE, compare=False, repr=False)


@record
class Ident:
    """A name where it is declared, or a label that is looked up in no scope (axis, field, argument names)."""

    text: str
    span: Span = _span()


# ---------------------------------------------------------------------------------------------------- expressions

BinaryOp = Literal["|>", "|", "⊗", "∘", "==", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "·", "^"]


@record
class Name:
    """A use of a name, looked up lexically: `x`, `D`, `mean`, `auto`. A path `m.V` is a `Field` of a `Name`."""

    text: str
    span: Span = _span()


@record
class Nat:
    """A natural literal of any size; `text` is decimal digits as written."""

    text: str
    span: Span = _span()


@record
class Decimal:
    """A decimal literal as written: `0.02`, `3e-4`."""

    text: str
    span: Span = _span()


@record
class Quantity:
    """A number with a unit: `5ms`, `192KiB/sm`."""

    number: str
    unit: str
    span: Span = _span()


@record
class Str:
    """A string literal; `value` has its escapes resolved."""

    value: str
    span: Span = _span()


@record
class Negate:
    operand: Expr
    span: Span = _span()


@record
class Binary:
    """`op_span` is where the operator stands: the caret of an operator's diagnostic. Long chains nest in `left`."""

    op: BinaryOp
    left: Expr
    right: Expr
    op_span: Span = _span()
    span: Span = _span()


@record
class Positional:
    value: Expr
    span: Span = _span()


@record
class Named:
    """`name = value`."""

    name: Ident
    value: Expr
    span: Span = _span()


@record
class AxisArg:
    """`axis a`."""

    axis: Ident
    span: Span = _span()


@record
class NamedAxis:
    """`seq: T`; `dim` is a dimension expression."""

    axis: Ident
    dim: Expr
    span: Span = _span()


Arg = Positional | Named | AxisArg | NamedAxis


@record
class Call:
    """`f(args)`. `stream "path"` is `Call(Name("stream"), (Positional(Str("path")),))`."""

    callee: Expr
    args: tuple[Arg, ...]
    span: Span = _span()


@record
class DimApply:
    """`M{D, 4*D}`."""

    base: Expr
    dims: tuple[Expr, ...]
    span: Span = _span()


@record
class Field:
    """`base.name`."""

    base: Expr
    name: Ident
    span: Span = _span()


@record
class At:
    """The selector `i` or `seq: i`, which drops its axis."""

    axis: Ident | None
    index: Expr
    span: Span = _span()


@record
class Slice:
    """The selector `lo..hi` or `pair: lo..hi`, which keeps its axis."""

    axis: Ident | None
    low: Expr
    high: Expr
    span: Span = _span()


Selector = At | Slice


@record
class Index:
    base: Expr
    selectors: tuple[Selector, ...]
    span: Span = _span()


@record
class NamePattern:
    """A binder; `_` binds nothing."""

    name: Ident
    span: Span = _span()


@record
class TuplePattern:
    items: tuple[Pattern, ...]
    span: Span = _span()


Pattern = NamePattern | TuplePattern


@record
class Let:
    """`let pattern = value` and the body on the next line. Long chains nest in `body`: walk them with a loop."""

    pattern: Pattern
    value: Expr
    body: Expr
    span: Span = _span()


@record
class Lambda:
    """`λ pattern. body`, or `λ (pattern : type). body`."""

    pattern: Pattern
    type: TypeExpr | None
    body: Expr
    span: Span = _span()


@record
class Ein:
    """`ein[axes](body)`."""

    axes: tuple[Ident, ...]
    body: Expr
    span: Span = _span()


@record
class Ascribe:
    """`(value : type)`."""

    value: Expr
    type: TypeExpr
    span: Span = _span()


@record
class Tuple:
    """`()` or `(a, b, …)`; never one item."""

    items: tuple[Expr, ...]
    span: Span = _span()


Expr = (
    Name | Nat | Decimal | Quantity | Str | Negate | Binary | Call | DimApply | Field | Index | Let | Lambda | Ein
    | Ascribe | Tuple
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- types


@record
class Axis:
    """`dim`, `name: dim`, or `...` (both fields None)."""

    name: Ident | None
    dim: Expr | None
    span: Span = _span()


@record
class RealType:
    """`ℝ[axes]`; bare `ℝ` and `ℝ[]` are the same tree."""

    axes: tuple[Axis, ...]
    span: Span = _span()


@record
class IdxType:
    """`idx[bound][axes]`; `idx[N]` has no axes."""

    bound: Expr
    axes: tuple[Axis, ...]
    span: Span = _span()


@record
class MaskType:
    """`bool[axes]`, a mask. Bare `bool` is the hyperparameter scalar: `NamedType`."""

    axes: tuple[Axis, ...]
    span: Span = _span()


@record
class ParamType:
    """`param T`."""

    inner: TypeExpr
    span: Span = _span()


@record
class ParamsType:
    """`params M`: the parameter tree of a module or a module-typed parameter. `module` is a path (`Name`, `Field`)."""

    module: Expr
    span: Span = _span()


@record
class NamedType:
    """A path with optional dimension arguments: `nat`, `Tokens`, `ff.Linear{D, D}`. `dims` is None without braces."""

    path: Expr
    dims: tuple[Expr, ...] | None
    span: Span = _span()


@record
class TupleType:
    items: tuple[TypeExpr, ...]
    span: Span = _span()


TypeExpr = RealType | IdxType | MaskType | ParamType | ParamsType | NamedType | TupleType


# --------------------------------------------------------------------------------------------- module expressions


@record
class ModuleRef:
    """`path{dims}(modules)`: `Linear{D, D}`, `stack{L}(Block)`. Absent braces or parentheses are empty tuples."""

    path: Expr
    dims: tuple[Expr, ...]
    modules: tuple[ModuleExpr, ...]
    span: Span = _span()


@record
class Compose:
    """`outer ∘ inner`: `inner` is applied first."""

    outer: ModuleExpr
    inner: ModuleExpr
    span: Span = _span()


ModuleExpr = ModuleRef | Compose


# --------------------------------------------------------------------------------------------------- declarations


@record
class TypeParam:
    """One name of `{In Out : dim, S : Shape}` with its group's kind."""

    name: Ident
    kind: Literal["dim", "Shape"]
    span: Span = _span()


@record
class FnParam:
    """`[axis] name [: type] [= default]`."""

    is_axis: bool
    name: Ident
    type: TypeExpr | None
    default: Expr | None
    span: Span = _span()


@record
class Fn:
    name: Ident
    type_params: tuple[TypeParam, ...]
    params: tuple[FnParam, ...]
    result: TypeExpr | None
    uses: tuple[Ident, ...]
    body: Expr
    span: Span = _span()


@record
class Param:
    """`param names : type [init = init]`. `param w : param T` is stored as `param w : T`."""

    names: tuple[Ident, ...]
    type: TypeExpr
    init: Expr | None
    span: Span = _span()


@record
class Use:
    names: tuple[Ident, ...]
    module: ModuleExpr
    span: Span = _span()


Member = Param | Use | Fn


@record
class Module:
    name: Ident
    type_params: tuple[TypeParam, ...]
    members: tuple[Member, ...]
    span: Span = _span()


@record
class Import:
    path: Str
    alias: Ident
    span: Span = _span()


@record
class Const:
    name: Ident
    type: TypeExpr | None
    value: Expr
    span: Span = _span()


@record
class StaticAssert:
    condition: Expr
    span: Span = _span()


@record
class Dim:
    name: Ident
    bound: Expr | None
    span: Span = _span()


@record
class TypeAlias:
    name: Ident
    type: TypeExpr
    span: Span = _span()


@record
class Effect:
    name: Ident
    span: Span = _span()


@record
class Model:
    name: Ident
    module: ModuleExpr
    span: Span = _span()


@record
class ConfigField:
    """`name = value`, `name : type = value` or `name : value` (then `type` is None: the same tree as `=`)."""

    name: Ident
    type: TypeExpr | None
    value: Expr
    span: Span = _span()


@record
class Checkpoint:
    """`checkpoint every steps steps to "path"`."""

    steps: Expr
    path: Str
    span: Span = _span()


ConfigItem = ConfigField | Checkpoint


@record
class Config:
    """`optimizer adamw { … }`, `training run { … }`, `inference serve { … }`."""

    kind: Literal["optimizer", "training", "inference"]
    name: Ident
    items: tuple[ConfigItem, ...]
    span: Span = _span()


Decl = Import | Const | StaticAssert | Dim | TypeAlias | Effect | Model | Module | Fn | Config


@record
class File:
    """One source file. `path` is as the user gave it (imports: relative to the main file's folder)."""

    path: str
    decls: tuple[Decl, ...]
    span: Span = _span()
