"""The perceptron of the spec as Core text, and short ways to write Core by hand."""

from __future__ import annotations

from fractions import Fraction

from presk_rel.core.ir import Binding, Function, Op, Param, Prim, Program
from presk_rel.core.reader import load
from presk_rel.diagnostics import Diagnostics
from presk_rel.elab.ty import (
    Applied,
    Axis,
    Init,
    ModuleDef,
    ParamField,
    Real,
    Shape,
    Type,
    UseField,
)
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


def read(text: str) -> Program:
    """The program of a Core text."""
    said = Diagnostics()
    found = load(text, "test", said)
    assert found is not None, said.items
    return found


MLP_TEXT = """\
module Linear{In Out} {
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]  init = zeros
}

module MLP{D hidden} {
  use l1 : Linear{D, hidden}
  use l2 : Linear{hidden, D}
}

fn Linear.apply{In Out}(θ : params Linear{In, Out}, x : ℝ[..., In]) -> ℝ[..., Out] {
  w : ℝ[In, Out] = θ.w
  %3 : ℝ[..., Out] = dot x, w
  b : ℝ[Out] = θ.b
  %5 : ℝ[..., Out] = add %3, b
  return %5
}

fn MLP.apply{D hidden}(θ : params MLP{D, hidden}, x : ℝ[..., D]) -> ℝ[..., D] {
  l1 : params Linear{D, hidden} = θ.l1
  %3 : ℝ[..., hidden] = call Linear.apply{In = D, Out = hidden}(l1, x)
  %4 : ℝ[..., hidden] = gelu %3
  l2 : params Linear{hidden, D} = θ.l2
  %6 : ℝ[..., D] = call Linear.apply{In = hidden, Out = D}(l2, %4)
  return %6
}

fn mse{D B}(θ : params MLP{D, 4*D}, x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D]) -> ℝ[] {
  ŷ : ℝ[batch: B, D] = call MLP.apply{D = D, hidden = 4*D}(θ, x)
  %4 : ℝ[batch: B, model: D] = sub ŷ, y
  %5 : ℝ[batch: B, model: D] = pow 2 %4
  %6 : ℝ[] = mean %5
  return %6
}

fn mse_grad.lambda0{D B}(x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D], θ : params MLP{D, 4*D})
    -> ℝ[] {
  %3 : ℝ[] = call mse{D = D, B = B}(θ, x, y)
  return %3
}

fn mse_grad{D B}(θ : params MLP{D, 4*D}, x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D])
    -> params MLP{D, 4*D} {
  %3 : (params MLP{D, 4*D}) -> ℝ[] = closure mse_grad.lambda0[x, y]
  %4 : (params MLP{D, 4*D}) -> params MLP{D, 4*D} = grad %3
  %5 : params MLP{D, 4*D} = apply %4(θ)
  return %5
}
"""
"""programs/mlp.psk, lowered as the spec's excerpt shows."""


def mlp() -> Program:
    return read(MLP_TEXT)
