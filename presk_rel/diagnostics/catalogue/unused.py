"""W1001 … W1006: what is declared and never used, and what hides a constant."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

_EXEMPT = " A name that begins with `_` is exempt."


def _page(code: str, title: str, meaning: str, failing: str, fixed: str) -> CodePage:
    return CodePage(code, "warning", "user error", title, meaning, failing, fixed)


_LINEAR = "module Linear {\n  param w : ℝ[3]\n  fn apply(x : ℝ[3]) -> ℝ[3] = x * w\n}\n\n"

PAGES: Final = (
    _page(
        "W1001",
        "unused let",
        "A `let` binds a name that nothing reads. A part of a tuple that is not needed is written `_`." + _EXEMPT,
        "fn f(x : ℝ[3]) -> ℝ[] =\n  let square = x^2\n  sum(x)\n",
        "fn f(x : ℝ[3]) -> ℝ[] =\n  let square = x^2\n  sum(square)\n",
    ),
    _page(
        "W1002",
        "unused parameter",
        "A function or lambda takes something that it does not read. If its callers have to pass it, as the layers of "
        "a stack are passed what only some of them need, let its name begin with `_`.",
        "fn f(x : ℝ[3], y : ℝ[3]) -> ℝ[] = sum(x)\n",
        "fn f(x : ℝ[3], _y : ℝ[3]) -> ℝ[] = sum(x)\n",
    ),
    _page(
        "W1003",
        "unused import",
        "A file is imported and nothing of it is used." + _EXEMPT,
        'import "mlp.psk" as ff\n\nfn f(x : ℝ[3]) -> ℝ[] = sum(x)\n',
        "fn f(x : ℝ[3]) -> ℝ[] = sum(x)\n",
    ),
    _page(
        "W1004",
        "unused sub-module",
        "A module includes another by `use` and never applies it: its parameters would be drawn, stored and never "
        "trained." + _EXEMPT,
        _LINEAR + "module Net {\n  use l1, l2 : Linear\n  fn apply(x : ℝ[3]) -> ℝ[3] = l1.apply(x)\n}\n",
        _LINEAR + "module Net {\n  use l1, l2 : Linear\n  fn apply(x : ℝ[3]) -> ℝ[3] = l2.apply(l1.apply(x))\n}\n",
    ),
    _page(
        "W1005",
        "unused parameter of a module",
        "No function reads this parameter of a module: it would be drawn, stored and never trained." + _EXEMPT,
        "module Linear {\n  param w, b : ℝ[3]\n  fn apply(x : ℝ[3]) -> ℝ[3] = x * w\n}\n",
        "module Linear {\n  param w, b : ℝ[3]\n  fn apply(x : ℝ[3]) -> ℝ[3] = x * w + b\n}\n",
    ),
    _page(
        "W1006",
        "name that hides a constant",
        "A parameter, a `let` or a lambda's variable has the name of a constant of the file: in its scope the name is "
        "that value, no longer the constant's number, which is easily overlooked.",
        "const H : nat = 4\n\nfn f(H : ℝ[], x : ℝ[4]) -> ℝ[] = H * sum(x)\n",
        "const H : nat = 4\n\nfn f(h : ℝ[], x : ℝ[H]) -> ℝ[] = h * sum(x)\n",
    ),
)
