"""The builtins, one row each. A builtin of the language without a row is E9001, a limit of this version."""

from __future__ import annotations

from presk_rel.types.builtins.functions import grad, grad_hints
from presk_rel.types.builtins.real import elementwise, injection, matmul, real_hint, reduction
from presk_rel.types.builtins.row import Builtin

_ELEMENTWISE = ("gelu", "relu", "exp", "tanh", "sqrt", "abs", "log", "sigmoid", "sin", "cos")

_ROWS = (
    *(Builtin(name, ("x",), elementwise, hints=real_hint) for name in _ELEMENTWISE),
    Builtin("mean", ("x",), reduction, axes=(0, 1), hints=real_hint),
    Builtin("sum", ("x",), reduction, axes=(0, 1), hints=real_hint),
    Builtin("real", ("x",), injection),
    Builtin("matmul", ("x", "w"), matmul, hints=real_hint),
    Builtin("grad", ("f",), grad, hints=grad_hints),
)

BUILTINS: dict[str, Builtin] = {row.name: row for row in _ROWS}
