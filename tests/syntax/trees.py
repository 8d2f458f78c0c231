"""Hypothesis strategies for every tree that source text can say (syntax/printer.py lists what it cannot)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from presk_rel.syntax import ast
from presk_rel.syntax.token import CONTEXTUAL, RESERVED, SCALARS

T = TypeVar("T")

PLAIN = ["x", "D", "_", "σ2", "θ", "x̂", "ŷ", "λ1", "ℝn", "sm_90", "q̇̈", "Ω", "名前", "in", "e5", "steps2", "नमस्ते"]


def _is_name(text: str) -> bool:
    if not text.isidentifier() or text in RESERVED or text == "Real":
        return False
    return unicodedata.normalize("NFC", text) == text and not set(text) & {"\u00b7", "\u0387"}


NAMES = st.one_of(
    st.sampled_from(PLAIN + sorted(CONTEXTUAL) + sorted(SCALARS)),
    st.text(st.characters(categories=["L", "Nd", "Mn", "Mc", "Pc"]), min_size=1, max_size=4).filter(_is_name),
)
WORDS = NAMES | st.sampled_from(sorted(RESERVED - {"ℝ", "λ"}))
NATS = st.text("0123456789", min_size=1, max_size=30)
DECIMALS = st.from_regex(r"[0-9]{1,9}(\.[0-9]{1,9}([eE][-+]?[0-9]{1,3})?|[eE][-+]?[0-9]{1,3})", fullmatch=True)
UNITS = st.sampled_from(["ms", "MiB", "GB/s", "KiB/sm", "s", "e", "µs", "x"])
TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", "\n\t\r", "a -- b", "{(["])
OPERATORS = ["|>", "|", "⊗", "∘", "==", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "·", "^"]


class Grow:
    """Draws trees; `depth` counts down, and at 0 only leaves are drawn."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def one(self, *choices: Callable[[int], T], depth: int) -> T:
        return self.draw(st.sampled_from(choices))(depth)

    def some(self, of: Callable[[], T], least: int = 0, most: int = 3) -> tuple[T, ...]:
        return tuple(of() for _ in range(self.draw(st.integers(least, most))))

    def two_or_none(self, of: Callable[[], T]) -> tuple[T, ...]:
        return self.some(of, self.draw(st.sampled_from([2, 2, 3])), 3) if self.draw(st.booleans()) else ()

    def maybe(self, of: Callable[[], T]) -> T | None:
        return of() if self.draw(st.booleans()) else None

    def ident(self) -> ast.Ident:
        return ast.Ident(self.draw(NAMES))

    def label(self) -> ast.Ident:
        return ast.Ident(self.draw(WORDS))

    # ------------------------------------------------------------------------------------------------ expressions

    def expr(self, depth: int) -> ast.Expr:
        if depth <= 0 or self.draw(st.integers(0, 4)) == 0:
            return self.leaf()
        return self.one(
            self.binary, self.binary, self.negate, self.call, self.call, self.stream, self.dim_apply, self.field,
            self.index, self.let, self.let, self.function, self.function, self.ein, self.ascribe, self.tuple,
            depth=depth - 1,
        )  # fmt: skip

    def leaf(self) -> ast.Expr:
        kind = self.draw(st.integers(0, 8))
        if kind < 5:
            return ast.Name(self.draw(NAMES))
        if kind == 5:
            return ast.Nat(self.draw(NATS))
        if kind == 6:
            return ast.Decimal(self.draw(DECIMALS))
        if kind == 7:
            return ast.Quantity(self.draw(NATS | DECIMALS), self.draw(UNITS))
        return self.string()

    def string(self) -> ast.Str:
        return ast.Str(self.draw(TEXTS))

    def binary(self, d: int) -> ast.Expr:
        return ast.Binary(self.draw(st.sampled_from(OPERATORS)), self.expr(d), self.expr(d))

    def negate(self, d: int) -> ast.Expr:
        return ast.Negate(self.expr(d))

    def call(self, d: int) -> ast.Expr:
        return ast.Call(self.expr(d), self.some(lambda: self.arg(d)))

    def stream(self, _d: int) -> ast.Expr:
        return ast.Call(ast.Name("stream"), (ast.Positional(self.string()),))

    def dim_apply(self, d: int) -> ast.Expr:
        return ast.DimApply(self.expr(d), self.some(lambda: self.expr(d)))

    def field(self, d: int) -> ast.Expr:
        return ast.Field(self.expr(d), self.label())

    def index(self, d: int) -> ast.Expr:
        return ast.Index(self.expr(d), self.some(lambda: self.selector(d), 1, 2))

    def let(self, d: int) -> ast.Expr:
        return ast.Let(self.pattern(2), self.expr(d), self.expr(d))

    def function(self, d: int) -> ast.Expr:
        return ast.Lambda(self.pattern(2), self.maybe(lambda: self.type(d)), self.expr(d))

    def ein(self, d: int) -> ast.Expr:
        return ast.Ein(self.some(self.ident), self.expr(d))

    def ascribe(self, d: int) -> ast.Expr:
        return ast.Ascribe(self.expr(d), self.type(d))

    def tuple(self, d: int) -> ast.Expr:
        return ast.Tuple(self.two_or_none(lambda: self.expr(d)))

    def arg(self, d: int) -> ast.Arg:
        kind = self.draw(st.integers(0, 4))
        if kind == 0:
            return ast.Named(self.ident(), self.expr(d))
        if kind == 1:
            return ast.AxisArg(self.ident())
        if kind == 2:
            return ast.NamedAxis(self.ident(), self.expr(d))
        return ast.Positional(self.expr(d) if kind == 3 else self.ascribe(d))

    def selector(self, d: int) -> ast.Selector:
        if self.draw(st.booleans()):
            return ast.At(self.maybe(self.ident), self.expr(d))
        return ast.Slice(self.maybe(self.ident), self.expr(d), self.expr(d))

    def pattern(self, depth: int) -> ast.Pattern:
        if depth == 0 or self.draw(st.booleans()):
            return ast.NamePattern(self.ident())
        return ast.TuplePattern(self.two_or_none(lambda: self.pattern(depth - 1)))

    def path(self) -> ast.Expr:
        path: ast.Expr = ast.Name(self.draw(NAMES))
        for label in self.some(self.label, 0, 2):
            path = ast.Field(path, label)
        return path

    # ------------------------------------------------------------------------------------------------------ types

    def type(self, depth: int) -> ast.TypeExpr:
        return self.one(
            self.real, self.real, self.idx, self.mask, self.param_type, self.params, self.named, self.named,
            self.tuple_type, depth=max(depth, 0) - 1,
        )  # fmt: skip

    def axis(self, d: int) -> ast.Axis:
        if self.draw(st.integers(0, 3)) == 0:
            return ast.Axis(None, None)
        return ast.Axis(self.maybe(self.ident), self.expr(d))

    def axes(self, d: int) -> tuple[ast.Axis, ...]:
        return self.some(lambda: self.axis(d))

    def real(self, d: int) -> ast.TypeExpr:
        return ast.RealType(self.axes(d))

    def idx(self, d: int) -> ast.TypeExpr:
        return ast.IdxType(self.expr(d), self.axes(d))

    def mask(self, d: int) -> ast.TypeExpr:
        return ast.MaskType(self.axes(d))

    def param_type(self, d: int) -> ast.TypeExpr:
        return ast.ParamType(self.type(d)) if d > 0 else self.params(d)

    def params(self, _d: int) -> ast.TypeExpr:
        return ast.ParamsType(self.path())

    def named(self, d: int) -> ast.TypeExpr:
        return ast.NamedType(self.path(), self.maybe(lambda: self.some(lambda: self.expr(d))))

    def tuple_type(self, d: int) -> ast.TypeExpr:
        return ast.TupleType(self.two_or_none(lambda: self.type(d)) if d > 0 else ())

    def module(self, depth: int) -> ast.ModuleExpr:
        if depth > 0 and self.draw(st.booleans()):
            return ast.Compose(self.module(depth - 1), self.module(depth - 1))
        inner = self.some(lambda: self.module(depth - 1), 0, 2) if depth > 0 else ()
        return ast.ModuleRef(self.path(), self.some(lambda: self.expr(1)), inner)

    # ----------------------------------------------------------------------------------------------- declarations

    def file(self) -> ast.File:
        return ast.File("t.psk", self.some(lambda: self.decl(3), 0, 5))

    def decl(self, d: int) -> ast.Decl:
        return self.one(
            lambda _: ast.Import(self.string(), self.ident()),
            lambda d: ast.Const(self.ident(), self.maybe(lambda: self.type(d)), self.expr(d)),
            lambda d: ast.StaticAssert(self.expr(d)),
            lambda d: ast.Dim(self.ident(), self.maybe(lambda: self.expr(d))),
            lambda d: ast.TypeAlias(self.ident(), self.type(d)),
            lambda _: ast.Effect(self.ident()),
            lambda d: ast.Model(self.ident(), self.module(d)),
            lambda d: ast.Module(self.ident(), self.type_params(), self.some(lambda: self.member(d))),
            self.fn,
            self.config,
            depth=d,
        )

    def type_params(self) -> tuple[ast.TypeParam, ...]:
        return self.some(lambda: ast.TypeParam(self.ident(), self.draw(st.sampled_from(["dim", "Shape"]))))

    def fn(self, d: int) -> ast.Fn:
        result = self.maybe(lambda: self.type(1))
        params = self.some(lambda: self.fn_param(d - 1))
        return ast.Fn(self.ident(), self.type_params(), params, result, self.some(self.ident, 0, 2), self.expr(d))

    def fn_param(self, d: int) -> ast.FnParam:
        default = self.maybe(lambda: self.expr(d))
        return ast.FnParam(self.draw(st.booleans()), self.ident(), self.maybe(lambda: self.type(d)), default)

    def member(self, d: int) -> ast.Member:
        return self.one(
            lambda d: ast.Param(self.some(self.ident, 1), self.type(d), self.maybe(lambda: self.expr(d))),
            lambda d: ast.Use(self.some(self.ident, 1), self.module(d)),
            self.fn,
            depth=d,
        )

    def config(self, d: int) -> ast.Config:
        kind, name = self.draw(
            st.sampled_from([("optimizer", "adamw"), ("optimizer", "run"), ("training", "run"), ("inference", "serve")])
        )
        return ast.Config(kind, ast.Ident(name), self.some(lambda: self.config_item(d)))

    def config_item(self, d: int) -> ast.ConfigItem:
        if self.draw(st.integers(0, 3)) == 0:
            return ast.Checkpoint(self.expr(d), self.string())
        return ast.ConfigField(self.label(), self.maybe(lambda: self.type(d)), self.expr(d))


def _grown(of: Callable[[Grow], T]) -> st.SearchStrategy[T]:
    @st.composite
    def strategy(draw: Callable[[st.SearchStrategy[Any]], Any]) -> T:
        return of(Grow(draw))

    return strategy()


exprs = _grown(lambda grow: grow.expr(4))
types = _grown(lambda grow: grow.type(3))
module_exprs = _grown(lambda grow: grow.module(3))
files = _grown(lambda grow: grow.file())
