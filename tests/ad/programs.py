"""Core programs written by hand: the perceptron of the spec, without its `…_grad` names shortened."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.ir import Apply, Binding, Call, Closure, Function, Grad, Op, Param, Prim, Program
from presk_rel.elab.ty import (
    SCALAR_REAL,
    Applied,
    Axis,
    Init,
    ModuleDef,
    ParamField,
    Params,
    Real,
    Shape,
    Type,
    UseField,
)
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.smt.linear import Linear, symbol

D, B, IN, OUT, HIDDEN = (symbol(s) for s in ("D", "B", "In", "Out", "hidden"))


def real(*axes: Linear | tuple[str, Linear], prefix: str | None = None) -> Real:
    """ℝ[axes], an axis named by a pair."""
    return Real(Shape(prefix, tuple(Axis(*a) if isinstance(a, tuple) else Axis(None, a) for a in axes)))


def prim(op: str, *args: str, attrs: tuple[str | int | Fraction, ...] = ()) -> Prim:
    return Prim(op, attrs, args)


def function(
    name: str, dims: str, params: list[tuple[str, Type]], result: Type, body: list[tuple[str, Type, Op]], ret: str
) -> Function:
    bindings = tuple(Binding(n, ty, op) for n, ty, op in body)
    return Function(name, tuple(dims.split()), tuple(Param(n, ty) for n, ty in params), result, bindings, ret)


def program(functions: list[Function], modules: tuple[ModuleDef, ...] = ()) -> Program:
    return Program({m.name: m for m in modules}, {f.name: f for f in functions})


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


def mlp() -> Program:
    """programs/mlp.psk, lowered as the spec's excerpt shows."""
    lin, net = Params(Applied("Linear", (IN, OUT))), Params(Applied("MLP", (D, HIDDEN)))
    l1, l2 = Params(Applied("Linear", (D, HIDDEN))), Params(Applied("Linear", (HIDDEN, D)))
    lead = {"prefix": "..."}
    linear_apply = function(
        "Linear.apply",
        "In Out",
        [("θ", lin), ("x", real(IN, **lead))],
        real(OUT, **lead),
        [
            ("w", real(IN, OUT), prim("field", "θ", attrs=("w",))),
            ("%3", real(OUT, **lead), prim("dot", "x", "w")),
            ("b", real(OUT), prim("field", "θ", attrs=("b",))),
            ("%5", real(OUT, **lead), prim("add", "%3", "b")),
        ],
        "%5",
    )
    mlp_apply = function(
        "MLP.apply",
        "D hidden",
        [("θ", net), ("x", real(D, **lead))],
        real(D, **lead),
        [
            ("l1", l1, prim("field", "θ", attrs=("l1",))),
            ("%3", real(HIDDEN, **lead), Call("Linear.apply", (("In", D), ("Out", HIDDEN)), ("l1", "x"))),
            ("%4", real(HIDDEN, **lead), prim("gelu", "%3")),
            ("l2", l2, prim("field", "θ", attrs=("l2",))),
            ("%6", real(D, **lead), Call("Linear.apply", (("In", HIDDEN), ("Out", D)), ("l2", "%4"))),
        ],
        "%6",
    )
    top, x = Params(Applied("MLP", (D, D.scale(4)))), real(("batch", B), ("model", D))
    mse = function(
        "mse",
        "D B",
        [("θ", top), ("x", x), ("y", x)],
        SCALAR_REAL,
        [
            ("ŷ", real(("batch", B), D), Call("MLP.apply", (("D", D), ("hidden", D.scale(4))), ("θ", "x"))),
            ("%4", x, prim("sub", "ŷ", "y")),
            ("%5", x, prim("pow", "%4", attrs=(2,))),
            ("%6", SCALAR_REAL, prim("mean", "%5")),
        ],
        "%6",
    )
    both = (("D", D), ("B", B))
    loss = function(
        "mse_grad.lambda0",
        "D B",
        [("x", x), ("y", x), ("θ", top)],
        SCALAR_REAL,
        [("%3", SCALAR_REAL, Call("mse", both, ("θ", "x", "y")))],
        "%3",
    )
    mse_grad = function(
        "mse_grad",
        "D B",
        [("θ", top), ("x", x), ("y", x)],
        top,
        [
            ("%3", FunctionType((top,), SCALAR_REAL), Closure("mse_grad.lambda0", both, ("x", "y"))),
            ("%4", FunctionType((top,), top), Grad("%3")),
            ("%5", top, Apply("%4", ("θ",))),
        ],
        "%5",
    )
    return program([linear_apply, mlp_apply, mse, loss, mse_grad], (LINEAR, MLP))
