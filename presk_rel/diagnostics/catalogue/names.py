"""E1001, E1002, E4002: names that mean nothing, or two things."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

PAGES: Final = (
    CodePage(
        "E1001",
        "error",
        "user error",
        "unknown name",
        "No declaration of this name can be seen here. A name is looked up in the `let`s and lambdas around it, among "
        "the arguments and type parameters of the function, the members of the module, the declarations of the file, "
        "and the builtins. What another file declares is reached through its import: `m.V`. Visible names one slip of "
        "the keyboard away are suggested.",
        "fn f(x : ℝ[3]) -> ℝ[] =\n  let total = sum(x)\n  totel\n",
        "fn f(x : ℝ[3]) -> ℝ[] =\n  let total = sum(x)\n  total\n",
    ),
    CodePage(
        "E1002",
        "error",
        "user error",
        "declared twice",
        "Two declarations of one scope have the same name: of a file, of a module's members and type parameters, of a "
        "function's arguments, or of one pattern. A `let` may rebind a name: each `let` opens a scope of its own.",
        "const D = 3\nconst D = 4\n",
        "const D = 3\nconst E = 4\n",
    ),
    CodePage(
        "E4002",
        "error",
        "user error",
        "unknown effect",
        "A `uses` clause names an effect that is neither `Rand` nor declared by `effect NAME`.",
        "fn f(x : ℝ[3]) -> ℝ[3] uses Random =\n  x\n",
        "fn f(x : ℝ[3]) -> ℝ[3] =\n  x\n",
    ),
)
