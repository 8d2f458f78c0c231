"""E2010, W0002, W0003: configuration blocks."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

_MODEL = "dim B\n\nmodule Line {\n  param w : ℝ[3]\n  fn apply(x : ℝ[..., 3]) -> ℝ[...] = x · w\n}\n\n"
_LOSS = (
    "fn loss(θ : params Line, batch : (ℝ[batch: B, 3], ℝ[batch: B])) -> ℝ[] =\n"
    "  let (x, y) = batch\n"
    "  mean((Line.apply(θ, x) - y)^2)\n\n"
)
_OPTIMIZER = "optimizer adamw {\n  lr = 1e-3\n}\n\n"
_RUN = "training run {\n  model     = Line\n  objective = loss\n  optimizer = adamw\n"
_CHOICE = (
    "dim B\ndim T\n\nmodule Bigram {\n  param w : ℝ[9, 9]\n"
    "  fn apply(t : idx[9][batch: B, seq: T]) -> ℝ[batch: B, seq: T, vocab: 9] = embed(w, t)\n}\n\n"
)
_NEXT = (
    "fn next(θ : params Bigram, ctx : idx[9][batch: B, seq: T], key : key) -> idx[9][batch: B] uses Rand =\n"
    "  sample(key, Bigram.apply(θ, ctx)[seq: -1])\n\n"
)
_SERVE = "inference serve {\n  model = Bigram\n}\n"

PAGES: Final = (
    CodePage(
        "E2010",
        "error",
        "user error",
        "configuration that does not fit",
        "A configuration block has a field it does not take, lacks one it needs, or has a value of another form than "
        "the field takes; its objective does not take the model's parameters and a batch, or does not give ℝ[]; or "
        "the data file holds samples of another type. The name of an optimizer block is its algorithm.",
        _MODEL + _LOSS + _OPTIMIZER + _RUN + "  epochs    = 0.5\n}\n",
        _MODEL + _LOSS + _OPTIMIZER + _RUN + "  epochs    = 5\n}\n",
    ),
    CodePage(
        "W0002",
        "warning",
        "user error",
        "data file that is not there yet",
        "The file that a training block reads does not exist, so its samples cannot be compared with the objective. "
        "The path is relative to the folder of the file with the block. Training looks again.",
        _MODEL + _LOSS + _OPTIMIZER + _RUN + '  data      = stream "points.psk.d" |> batch(B = 8)\n}\n',
        _MODEL + _LOSS + _OPTIMIZER + _RUN + "}\n",
    ),
    CodePage(
        "W0003",
        "warning",
        "user error",
        "inference without a generation function",
        "No function of the file generates from the model, so that the block can be checked and not served. A "
        "generation function takes the model's parameters, an index tensor (the context) and keys, and gives the next "
        "index: its result has the bound of the context, and the axes of the context but one. `generate = f` chooses "
        "among several.",
        _CHOICE + _SERVE,
        _CHOICE + _NEXT + _SERVE,
    ),
)
