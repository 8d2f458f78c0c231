"""Every name of the outermost scope (spec: "Typing", "Types", "Effects"), whether or not this version types it.

`types` has a row per builtin function it knows; a name listed here without such a row is "not implemented yet" rather
than "unknown".
"""

from __future__ import annotations

FUNCTIONS = (
    *("gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos"),
    *("mean", "sum", "softmax", "real", "embed", "one_hot", "cross_entropy", "argmax", "sample"),
    *("merge", "split", "split_heads", "merge_heads", "positions", "causal_mask", "matmul", "grad", "vjp", "jvp"),
    *("dropout", "split_key", "max", "min", "clamp", "concat"),
)
TYPES = ("nat", "int", "rat", "f64", "bool", "key")
MODULES = ("stack",)
EFFECTS = ("Rand",)

BUILTIN_SCOPE = "builtin"
EFFECT_SCOPE = "builtin effects"


def builtin_id(name: str) -> str:
    """The declaration that a builtin name means: `builtin:mean`."""
    return f"builtin:{name}"
