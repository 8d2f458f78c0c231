"""E914x: questions of `presk why` that have no answer."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

PAGES: Final = (
    CodePage(
        "E9140",
        "error",
        "user error",
        "nothing of this name to explain",
        "`presk why` was asked about a function that the program does not have, or about a parameter that the function "
        "does not have, or about an effect that there is not (there is `Rand`). A function of a module is called "
        "`Module.function`; `presk check FILE --summary` lists them.",
        "presk why mlp.psk apply",
        "presk why mlp.psk MLP.apply",
        situation=True,
    ),
    CodePage(
        "E9141",
        "error",
        "user error",
        "the effect is not as asked",
        "`presk why --effect` proves an effect that a function has, and with `--not` says why it does not have one. "
        "Here it is the other way round.",
        "presk why mlp.psk mse --effect Rand",
        "presk why mlp.psk mse --effect Rand --not",
        situation=True,
    ),
)
