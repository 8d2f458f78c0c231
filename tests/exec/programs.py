"""Programs of PSK-Core that the tests run."""

from presk_rel.ad.reverse import differentiate
from presk_rel.core.ir import Program
from presk_rel.core.reader import load
from presk_rel.diagnostics import Diagnostics

MLP = """
dim B <= 64

module Linear{In Out} {
  param w : ℝ[In, Out]  init = xavier_uniform
  param b : ℝ[Out]  init = zeros
}
module MLP{D hidden} {
  use l1 : Linear{D, hidden}
  use l2 : Linear{hidden, D}
}
fn Linear.init{In Out}(key : key) -> params Linear{In, Out} uses Rand {
  keys : (key, key) = split_key 2 key
  k1 : key = keys.0
  w : ℝ[In, Out] = xavier_uniform k1
  b : ℝ[Out] = zeros
  θ : params Linear{In, Out} = record w, b
  return θ
}
fn MLP.init{D hidden}(key : key) -> params MLP{D, hidden} uses Rand {
  keys : (key, key) = split_key 2 key
  k1 : key = keys.0
  k2 : key = keys.1
  l1 : params Linear{D, hidden} = call Linear.init{In = D, Out = hidden}(k1)
  l2 : params Linear{hidden, D} = call Linear.init{In = hidden, Out = D}(k2)
  θ : params MLP{D, hidden} = record l1, l2
  return θ
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
fn mse_grad.lambda0{D B}(x : ℝ[batch: B, model: D], y : ℝ[batch: B, model: D], θ : params MLP{D, 4*D}) -> ℝ[] {
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


def program(text: str) -> Program:
    """A program that the reader and the verifier accept, without `grad`."""
    found = Diagnostics()
    read = load(text, "test.core", found)
    assert read is not None, [d.message for d in found.items]
    assert not found.has_errors, [d.message for d in found.items]
    return differentiate(read, "recompute") if "= grad" in text else read


def single(params: str, result: str, operation: str, dims: str = "") -> Program:
    """`fn f{dims}(params) -> result` of one operation."""
    head = f"fn f{'{' + dims + '}' if dims else ''}({params}) -> {result}"
    return program(f"{head} {{\n  out : {result} = {operation}\n  return out\n}}")
