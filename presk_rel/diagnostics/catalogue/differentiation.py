"""E6001, E6002: what cannot be differentiated. (Whether a gradient makes sense at all is E3001's question.)"""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

_CORE = """\
fn sine(x : ℝ[]) -> ℝ[] {{
  %1 : ℝ[] = sin x
  return %1
}}

fn same(f : (ℝ[]) -> ℝ[]) -> (ℝ[]) -> ℝ[] {{
  return f
}}

fn main(x : ℝ[]) -> ℝ[] {{
  %1 : (ℝ[]) -> ℝ[] = closure sine{{}}[]
  f : (ℝ[]) -> ℝ[] = {}
  %3 : (ℝ[]) -> ℝ[] = grad f
  %4 : ℝ[] = apply %3(x)
  return %4
}}
"""

PAGES: Final = (
    CodePage(
        "E6001",
        "error",
        "limit",
        "gradient of an unknown function",
        "`grad` is realized where its function is known: a lambda or a named function, also through `let`, captured "
        "values, tuples, arguments, results, the further arguments of a stack, and when it is itself a gradient. That "
        "is every function value of a Presk program. In PSK-Core text a fold may also hand one on from iteration to "
        "iteration; then it is not known.",
        _CORE.format("fold 2 same{}(stacked; acc %1)"),
        _CORE.format("closure sine{}[]"),
    ),
    CodePage(
        "E6002",
        "error",
        "limit",
        "a gradient that cannot be realized",
        "Something on the way from the argument to the result has no derivative that presk can write down: the "
        "argument itself holds a key, an index or a hyperparameter, or a stacked module hands on a hyperparameter. The "
        "message names it.",
        "fn main(x : ℝ[], k : key) -> (ℝ[], key) =\n  grad(λ (p : (ℝ[], key)). let (a, b) = p\n    a * a)((x, k))\n",
        "fn main(x : ℝ[], k : key) -> ℝ[] =\n  grad(λ (a : ℝ[]). a * a)(x)\n",
    ),
)
