"""E0100 … E0105: files of PSK-Core text (`presk run FILE.core`). E5002: modules without an initializer."""

from __future__ import annotations

from typing import Final, Literal

from presk_rel.diagnostics.catalogue.page import CodePage


def _page(
    code: str, title: str, meaning: str, failing: str, fixed: str, kind: Literal["user error", "limit"] = "user error"
) -> CodePage:
    return CodePage(code, "error", kind, title, meaning, failing, fixed)


def _neg(line: str, ret: str = "y") -> str:
    return f"fn f(x : ℝ[3]) -> ℝ[3] {{\n  {line}\n  return {ret}\n}}\n"


_GOOD = _neg("y : ℝ[3] = neg x")
_CONST = "fn f() -> ℝ[] {{\n  c : ℝ[] = const {}\n  return c\n}}\n"

PAGES: Final = (
    _page(
        "E0100",
        "not PSK-Core text",
        "The text of a `.core` file is not what `presk dump --stage core` prints: something else was expected at this "
        "place. A file is a sequence of `dim`, `module` and `fn` declarations; a function's body has one binding "
        "`name : type = operation` per line, then `return name`. Operands are names, never expressions.",
        _neg("y : ℝ[3] = neg (neg x)"),
        "fn f(x : ℝ[3]) -> ℝ[3] {\n  z : ℝ[3] = neg x\n  y : ℝ[3] = neg z\n  return y\n}\n",
    ),
    _page(
        "E0101",
        "not an operation of PSK-Core",
        "An operation is a primitive with as many operands as it takes, or one of `call`, `closure`, `grad`, `apply` "
        "and `fold`.",
        _neg("y : ℝ[3] = negate x"),
        _GOOD,
    ),
    _page(
        "E0102",
        "number that Core text may not hold",
        "A number of more than 20,000 digits, a decimal with an exponent beyond that, or a division by 0: a few "
        "characters must not ask for gigabytes.",
        _CONST.format("1e99999999"),
        _CONST.format("1e99"),
        "limit",
    ),
    _page(
        "E0103",
        "Core text nests too deeply",
        "Types of Core text may nest 200 levels deep.",
        f"fn f(x : {'(' * 300}{',)' * 300}) -> ℝ[] {{\n  return x\n}}\n",
        "fn f(x : ((),)) -> ((),) {\n  return x\n}\n",
        "limit",
    ),
    _page(
        "E0104",
        "defined twice in Core text",
        "Two functions, or two modules, of a `.core` file have the same name.",
        _GOOD + _GOOD,
        _GOOD + _GOOD.replace("fn f", "fn g"),
    ),
    _page(
        "E0105",
        "PSK-Core that is not well-formed",
        "The text can be read, but the program breaks a rule of PSK-Core: a name is used before it is defined or "
        "defined twice, an operation does not apply to operands of these types or does not give the type its binding "
        "declares, a call does not instantiate its callee's dimensions, a type mentions a dimension the function does "
        "not have, or a function reaches itself.",
        _neg("y : ℝ[4] = neg x").replace("-> ℝ[3]", "-> ℝ[4]"),
        _GOOD,
    ),
    CodePage(
        "E5002",
        "error",
        "limit",
        "module that cannot be initialized",
        "`M.init` draws every layer of `stack{L}(…)` from a key of its own, one call per layer, so L must be a "
        "constant of at most 10,000. The module can still be checked, differentiated and run: `presk run` draws "
        "parameters at the dimensions it is given.",
        "presk run tower.psk --entry Tower.init    with `use layers : stack{L}(Layer)` in `module Tower{L : dim}`",
        "presk run tower.psk --entry Tower.apply --dim L=3, or `const L = 3`",
        situation=True,
    ),
)
