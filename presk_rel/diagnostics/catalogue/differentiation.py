"""E6001, E6002: what cannot be differentiated. (Whether a gradient makes sense at all is E3001's question.)"""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

PAGES: Final = (
    CodePage(
        "E6001",
        "error",
        "limit",
        "gradient of an unknown function",
        "`grad` is realized where its function is known: a lambda or a named function, also through `let`, captured "
        "values, arguments, results, and when it is itself a gradient. It is not known inside a function that takes "
        "it as an argument and whose leading axes (`...`) its caller chooses. Write the axes out.",
        "dim B\n"
        "dim D\n"
        "\n"
        "fn step(f, x : ℝ[..., D]) -> ℝ[..., D] = x - grad(f)(x)\n"
        "\n"
        "fn main(x : ℝ[batch: B, D]) -> ℝ[batch: B, D] = step(λ t. sum(exp(t)), x)\n",
        "dim B\n"
        "dim D\n"
        "\n"
        "fn step(f, x : ℝ[batch: B, D]) -> ℝ[batch: B, D] = x - grad(f)(x)\n"
        "\n"
        "fn main(x : ℝ[batch: B, D]) -> ℝ[batch: B, D] = step(λ t. sum(exp(t)), x)\n",
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
