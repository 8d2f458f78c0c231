"""Typed programs built by hand, as the type checker would: for tests of lowering that need no source text."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.diagnostics import NOWHERE
from presk_rel.elab.ty import (
    SCALAR_REAL,
    Applied,
    Axis,
    Function,
    Init,
    ModuleDef,
    ParamField,
    Params,
    Real,
    Shape,
    Type,
    UseField,
)
from presk_rel.smt.linear import Linear, symbol
from presk_rel.types.tree import (
    Attr,
    Binder,
    PVar,
    TApply,
    TCall,
    TExpr,
    TField,
    TFn,
    TGrad,
    TLambda,
    TLet,
    TLiteral,
    TPrim,
    TTheta,
    TVar,
    TypedProgram,
)

B, D, IN, OUT, HIDDEN = (symbol(s) for s in ("B", "D", "In", "Out", "hidden"))
D4 = D.scale(4)


def real(*axes: Linear | tuple[str, Linear], prefix: str | None = None) -> Real:
    """`real(("batch", B), D)` is ℝ[batch: B, D]."""
    return Real(Shape(prefix, tuple(Axis(*a) if isinstance(a, tuple) else Axis(None, a) for a in axes)))


def params(module: str, *args: Linear) -> Params:
    return Params(Applied(module, args))


def binder(id_: int, name: str, ty: Type) -> Binder:
    return Binder(id_, name, ty, NOWHERE)


def var(b: Binder) -> TVar:
    return TVar(b, b.type, NOWHERE)


def prim(op: str, ty: Type, *args: TExpr, attrs: tuple[Attr, ...] = ()) -> TPrim:
    return TPrim(op, attrs, args, ty, NOWHERE)


def let(b: Binder, value: TExpr, body: TExpr) -> TLet:
    return TLet(PVar(b), value, body, body.type, NOWHERE)


def literal(value: Fraction | int, ty: Type = SCALAR_REAL) -> TLiteral:
    return TLiteral(Fraction(value), ty, NOWHERE)


def fn(name: str, dims: tuple[str, ...], params_: tuple[Binder, ...], body: TExpr, theta: Params | None = None) -> TFn:
    return TFn(name, dims, theta, params_, body.type, (), body, NOWHERE, NOWHERE)


def program(*functions: TFn, modules: dict[str, ModuleDef] | None = None) -> TypedProgram:
    return TypedProgram("test.psk", modules or {}, functions, {}, ())


LINEAR = ModuleDef(
    "Linear",
    ("In", "Out"),
    2,
    (ParamField("w", real(IN, OUT), Init("xavier_uniform")), ParamField("b", real(OUT), Init("zeros"))),
)
MLP = ModuleDef(
    "MLP",
    ("D", "hidden"),
    2,
    (UseField("l1", Applied("Linear", (D, HIDDEN))), UseField("l2", Applied("Linear", (HIDDEN, D)))),
)


def _linear_apply() -> TFn:
    theta = params("Linear", IN, OUT)
    x = binder(0, "x", real(IN, prefix="..."))
    out = real(OUT, prefix="...")
    w = TField(TTheta(theta, NOWHERE), "w", real(IN, OUT), NOWHERE)
    b = TField(TTheta(theta, NOWHERE), "b", real(OUT), NOWHERE)
    return fn("Linear.apply", ("In", "Out"), (x,), prim("add", out, prim("dot", out, var(x), w), b), theta)


def _mlp_apply() -> TFn:
    theta = params("MLP", D, HIDDEN)
    x = binder(0, "x", real(D, prefix="..."))
    l1 = TField(TTheta(theta, NOWHERE), "l1", params("Linear", D, HIDDEN), NOWHERE)
    l2 = TField(TTheta(theta, NOWHERE), "l2", params("Linear", HIDDEN, D), NOWHERE)
    h = real(HIDDEN, prefix="...")
    a = TCall("Linear.apply", (("In", D), ("Out", HIDDEN)), (l1, var(x)), h, NOWHERE)
    body = TCall("Linear.apply", (("In", HIDDEN), ("Out", D)), (l2, prim("gelu", h, a)), real(D, prefix="..."), NOWHERE)
    return fn("MLP.apply", ("D", "hidden"), (x,), body, theta)


def _mse() -> TFn:
    shape = (("batch", B), ("model", D))
    θ, x, y = binder(0, "θ", params("MLP", D, D4)), binder(1, "x", real(*shape)), binder(2, "y", real(*shape))
    ŷ = binder(3, "ŷ", real(("batch", B), D))
    call = TCall("MLP.apply", (("D", D), ("hidden", D4)), (var(θ), var(x)), ŷ.type, NOWHERE)
    square = prim("pow", real(*shape), prim("sub", real(*shape), var(ŷ), var(y)), attrs=(2,))
    return fn("mse", ("D", "B"), (θ, x, y), let(ŷ, call, prim("mean", SCALAR_REAL, square)))


def _mse_grad() -> TFn:
    shape = (("batch", B), ("model", D))
    tree = params("MLP", D, D4)
    θ, x, y = binder(0, "θ", tree), binder(1, "x", real(*shape)), binder(2, "y", real(*shape))
    inner = binder(3, "θ", tree)
    call = TCall("mse", (("D", D), ("B", B)), (var(inner), var(x), var(y)), SCALAR_REAL, NOWHERE)
    function = TLambda(inner, PVar(inner), call, Function((tree,), SCALAR_REAL), NOWHERE)
    gradient = TGrad(function, Function((tree,), tree), NOWHERE)
    return fn("mse_grad", ("D", "B"), (θ, x, y), TApply(gradient, (var(θ),), tree, NOWHERE))


def mlp() -> TypedProgram:
    """programs/mlp.psk of the specification."""
    return program(_linear_apply(), _mlp_apply(), _mse(), _mse_grad(), modules={"Linear": LINEAR, "MLP": MLP})
