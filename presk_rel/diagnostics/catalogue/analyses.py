"""E3001, E4001, W4001, W4002: what the analyses of PSK-Core find."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

_TWICE = "fn f(x : ℝ[8], key : key) -> ℝ[8] uses Rand =\n"
_BLOCK = "type Acc = (ℝ[8], key)\n\nmodule Block {\n  param w : ℝ[8]\n"

PAGES: Final = (
    CodePage(
        "E3001",
        "error",
        "user error",
        "gradient of a discontinuous function",
        "A gradient exists almost everywhere if the function is smooth but for kinks, and not if it jumps. On the way "
        "from the argument to the result stands a primitive that makes it jump, or, where the gradient of a gradient "
        "is taken, one that makes it bend. `presk why` shows the whole way. What only counts or chooses can often "
        "stay outside of what is differentiated.",
        "fn pick(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[] = mean(real(argmax(logits)))\n\n"
        "fn f(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[batch: 4, vocab: 8] = grad(λ l. pick(l))(logits)\n",
        "fn pick(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[] = mean(softmax(axis vocab, logits)^2)\n\n"
        "fn f(logits : ℝ[batch: 4, vocab: 8]) -> ℝ[batch: 4, vocab: 8] = grad(λ l. pick(l))(logits)\n",
    ),
    CodePage(
        "E4001",
        "error",
        "user error",
        "effect that is not declared",
        "A function draws at random, itself, in a lambda, or through a function that it calls, and has no `uses Rand`. "
        "Whoever calls it must be able to see that.",
        "fn f(x : ℝ[8], key : key) -> ℝ[8] = dropout(0.1, key, x)\n",
        "fn f(x : ℝ[8], key : key) -> ℝ[8] uses Rand = dropout(0.1, key, x)\n",
    ),
    CodePage(
        "W4001",
        "warning",
        "user error",
        "key drawn from twice",
        "A draw is a function of its key and of nothing else, so two draws from one key are the same numbers: two "
        "dropouts with one key drop the same entries. A call of a function that draws from its key counts as a draw. "
        "`split_key` is one, too: what is drawn from the key itself has something in common with its halves.",
        _TWICE + "  dropout(0.1, key, x) + dropout(0.1, key, x * x)\n",
        _TWICE + "  let (k1, k2) = split_key(key)\n  dropout(0.1, k1, x) + dropout(0.1, k2, x * x)\n",
    ),
    CodePage(
        "W4002",
        "warning",
        "user error",
        "one key for all layers of a stack",
        "A stacked module is applied layer by layer, each time with the same further arguments: a key among them is "
        "one key for all layers, and each of them drops the same entries. Carry the key in the first argument, which "
        "goes from layer to layer, and split it in every layer.",
        "module Block {\n  param w : ℝ[8]\n"
        "  fn apply(x : ℝ[8], key : key) -> ℝ[8] uses Rand = x + dropout(0.1, key, x * w)\n}\n\n"
        "module Net {\n  use blocks : stack{4}(Block)\n"
        "  fn apply(x : ℝ[8], key : key) -> ℝ[8] uses Rand = blocks.apply(x, key)\n}\n",
        _BLOCK + "  fn apply(s : Acc) -> Acc uses Rand =\n    let (x, k) = s\n    let (k1, k2) = split_key(k)\n"
        "    (x + dropout(0.1, k1, x * w), k2)\n}\n\n"
        "module Net {\n  use blocks : stack{4}(Block)\n"
        "  fn apply(x : ℝ[8], key : key) -> ℝ[8] uses Rand =\n    let (y, _) = blocks.apply((x, key))\n    y\n}\n",
    ),
)
