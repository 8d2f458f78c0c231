"""The typed program: what the type checker makes of a file and its imports, and what lowering reads.

Everything is resolved: names are binders, calls name their Core function and carry the instantiation of its dimensions,
operators and builtins name their PSK-Core primitive (`core/prims.py`) with its attributes, constants are literals, and
every expression has its final type (no inference variable is left). Pipelines, ascriptions and default arguments are
gone.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import Literal

from presk_rel.diagnostics import Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.config.records import Blocks
from presk_rel.elab.ty import Key, ModuleDef, Params, Real, Type
from presk_rel.smt.linear import Linear

Attr = str | int | Fraction | Linear
"""An attribute of a primitive: an axis name, a field name, an index, an exact number, a dimension."""

DimArgs = tuple[tuple[str, Linear], ...]
"""The callee's dims, each with the caller's form for it. A dim the checker left unconstrained is absent."""


@record
class Binder:
    """A bound variable: `id` is unique in its function, `name` is the user's (two binders may share one)."""

    id: int
    name: str
    type: Type
    span: Span


@record
class PVar:
    binder: Binder


@record
class PTuple:
    """`_` in a pattern is None."""

    items: tuple[PVar | PTuple | None, ...]


TPattern = PVar | PTuple | None


@record
class TVar:
    binder: Binder
    type: Type
    span: Span


@record
class TTheta:
    """The enclosing module function's own parameter tree."""

    type: Params
    span: Span


@record
class TLiteral:
    """An exact number; `type` is a `Hyper` or ℝ[]."""

    value: Fraction
    type: Type
    span: Span


@record
class TDim:
    """A dimension used as a natural number (`type` is nat or int)."""

    dim: Linear
    type: Type
    span: Span


@record
class TPrim:
    """A primitive of PSK-Core applied to values: operators, builtins, `ein`, index and slice (spec: "Builtins")."""

    op: str
    attrs: tuple[Attr, ...]
    args: tuple[TExpr, ...]
    type: Type
    span: Span


@record
class TField:
    """A parameter or sub-module of a parameter tree: `θ.l1.w`."""

    base: TExpr
    name: str
    type: Real | Params
    span: Span


@record
class TCall:
    """A call of the function `fn` (its unique Core name: `mse`, `Linear.apply`). For a module function the parameter
    tree is `args[0]`; module-typed arguments are gone."""

    fn: str
    dim_args: DimArgs
    args: tuple[TExpr, ...]
    type: Type
    span: Span


@record
class TStackCall:
    """A call through `stack{count}(M)`: `fn` (M's function) applied `count` times to slices of the stacked tree."""

    count: Linear
    fn: str
    dim_args: DimArgs
    stacked: TExpr
    acc: TExpr
    extras: tuple[TExpr, ...]
    type: Type
    span: Span


@record
class TFunction:
    """A named function used as a value, partially applied to nothing."""

    fn: str
    dim_args: DimArgs
    type: Type
    span: Span


@record
class TLambda:
    """`λ pattern. body`: one parameter, `param`, taken apart by `pattern` when that is a tuple. `more` are the other
    parameters where it is a function taken as a value."""

    param: Binder
    pattern: TPattern
    body: TExpr
    type: Type
    span: Span
    more: tuple[Binder, ...] = ()


@record
class TApply:
    """A function value applied."""

    fn: TExpr
    args: tuple[TExpr, ...]
    type: Type
    span: Span


@record
class TGrad:
    """`grad(fn)`, a function value."""

    fn: TExpr
    type: Type
    span: Span


@record
class TVjp:
    """`vjp(fn)`, a function value (x, cotangent of fn(x)) ↦ cotangent of x."""

    fn: TExpr
    type: Type
    span: Span


@record
class TJvp:
    """`jvp(fn)`, a function value (x, v) ↦ the tangent of fn at x along v."""

    fn: TExpr
    type: Type
    span: Span


@record
class TLet:
    """Long chains nest in `body`: walk them with a loop."""

    pattern: TPattern
    value: TExpr
    body: TExpr
    type: Type
    span: Span


@record
class TTuple:
    items: tuple[TExpr, ...]
    type: Type
    span: Span


TExpr = (
    TVar
    | TTheta
    | TLiteral
    | TDim
    | TPrim
    | TField
    | TCall
    | TStackCall
    | TFunction
    | TLambda
    | TApply
    | TGrad
    | TVjp
    | TJvp
    | TLet
    | TTuple
)


@record
class TFn:
    """A checked function. `name` is its unique Core name. `dims`: the module's and its own type parameters in order of
    declaration, then the file dims that its types or body mention, in order of first appearance (spec: `mse{D B}`).
    `theta` is the type of the implicit θ of a module's function. Module-typed parameters are not in `params`.
    `uses` are the declared effects. `defaults`: the parameters that a caller may leave out, by name, each with its
    value: literals, dims and primitives of these."""

    name: str
    dims: tuple[str, ...]
    theta: Params | None
    params: tuple[Binder, ...]
    result: Type
    uses: tuple[str, ...]
    body: TExpr
    span: Span
    name_span: Span
    defaults: tuple[tuple[str, TExpr], ...] = ()


@record
class OptimizerSpec:
    """An optimizer block resolved for a training run (spec: "The optimizer"): AdamW over the tree `model`, with the
    hyperparameters as exact numbers, defaults filled in. `grad_clip` None: no clipping."""

    name: str
    model: Params
    lr: Fraction
    betas: tuple[Fraction, Fraction] = (Fraction(9, 10), Fraction(999, 1000))
    eps: Fraction = Fraction(1, 10**8)
    weight_decay: Fraction = Fraction(0)
    grad_clip: Fraction | None = None
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup: int = 0


@record
class TypedProgram:
    """`modules` holds every module of the file and its imports by unique Core name; `functions` in source order,
    imports first; `main` is the path of the main file, `constants` its constants after `--const`."""

    main: str
    modules: dict[str, ModuleDef]
    functions: tuple[TFn, ...]
    constants: dict[str, int]
    bounds: tuple[tuple[str, Linear], ...]
    """`dim T <= N` facts: symbol and bound."""
    optimizers: tuple[OptimizerSpec, ...] = ()
    blocks: Blocks = field(default_factory=Blocks)
    """The main file's configuration blocks, resolved."""
    values: dict[str, int] = field(default_factory=dict[str, int])
    """Every constant of the main file and its imports, by the id of its declaration."""


KEY = Key()
