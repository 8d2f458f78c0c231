"""What people write who come from Python or PyTorch, and how Presk says it: one row each, for the help of errors."""

from __future__ import annotations

from typing import Final

WORDS: Final = {
    "def": "a function is written fn f(x : ℝ[a: A]) -> ℝ[] = …",
    "class": "a module is written module M{D : dim} { param … use … fn apply(…) = … }",
    "from": 'a file is imported by import "path.psk" as m, and its names are m.f',
    "return": "there is no `return`: the value of a body is its last line",
    "if": "there is no `if`: relu, max, min, clamp and masks choose, since a program is one expression of tensors",
    "for": "there is no loop: a tensor is worked on as a whole, and stack{N}(M) applies a module N times",
    "while": "there is no loop: stack{N}(M) applies a module N times",
    "lambda": "a function value is written λ x. e (or \\x. e)",
    "not": "a mask has no negation; the comparisons are ==, <=, >=, < and >",
    "and": "masks have no `and`",
    "or": "masks have no `or`",
}
"""Words that begin something else elsewhere: of a syntax error at them or just behind them."""

DOUBLED: Final = {
    "*": "a power is written x^n",
    "/": "a comment is written -- …; the quotient of two int or nat is whole already",
    "=": "equality is written ==",
    "&": "masks have no `and`",
}
"""Operators of two characters elsewhere: of a syntax error at the second."""

NAMES: Final = {
    "self": "the parameters and sub-modules of a module are in scope in its functions: write l1.apply(x), w",
    "transpose": "axes are known by their names: ein[b, a](x) puts them in this order, and · and ein need none",
    "permute": "axes are known by their names: ein[b, a](x) puts them in this order, and · and ein need none",
    "reshape": "write split(axis a, m: M, n: N, x) or merge(axis a, axis b, x)",
    "view": "write split(axis a, m: M, n: N, x) or merge(axis a, axis b, x)",
    "flatten": "write merge(axis a, axis b, x)",
    "squeeze": "an axis of length 1 goes by an index: x[a: 0]",
    "unsqueeze": "there are no axes to be added: shapes are aligned by their last axes or their names",
    "einsum": "write ein[i, k](a * b), with the axes of a and b named",
    "cat": "write concat(axis a, x, y)",
    "concatenate": "write concat(axis a, x, y)",
    "dot": "write x · w (or x @ w)",
    "mm": "write x · w (or x @ w)",
    "bmm": "write ein[b, i, k](x * y), with the axes named",
    "pow": "a power is written x^n",
    "log_softmax": "write log(softmax(axis a, x)); cross_entropy(logits, y) has it inside",
    "nll_loss": "write cross_entropy(logits, y), which takes logits",
    "mse_loss": "write mean((x - y)^2)",
    "square": "write x^2",
    "var": "write mean(axis a, (x - m)^2) with m = mean(axis a, x)",
    "std": "write sqrt(mean(axis a, (x - m)^2)) with m = mean(axis a, x)",
    "layer_norm": "it is a module: see module LayerNorm in examples/minigpt.psk",
    "LayerNorm": "it is a module: see module LayerNorm in examples/minigpt.psk",
    "where": "softmax takes a mask as softmax(axis a, x, where = m); reals are chosen by max, min and clamp",
    "silu": "write x * sigmoid(x)",
    "float": "a real scalar is ℝ[]; a hyperparameter is f64",
    "Tensor": "a real tensor is ℝ[a: A], one of indices idx[N][a: A], a mask bool[a: A]",
    "tensor": "a real tensor is ℝ[a: A], one of indices idx[N][a: A], a mask bool[a: A]",
    "R": "a real tensor is ℝ[a: A], in ASCII Real[a: A]",
    "torch": "a program knows no Python: its functions are its own and the builtins",
    "np": "a program knows no Python: its functions are its own and the builtins",
    "None": "there is no None: a parameter may have a default, f(x : ℝ[], y : f64 = 0.5)",
    "grad_fn": "write grad(λ θ. loss(θ, x))(θ)",
}
"""Unknown names; `examples/minigpt.psk` ships with the package's source."""

FIELDS: Final = {
    "learning_rate": "lr",
    "epoch": "epochs",
    "loss": "objective",
    "dataset": "data",
    "batch_size": 'data = stream "…" |> batch(B = n)',
    "net": "model",
    "clip": "grad_clip",
    "warmup": "schedule = cosine(warmup = n)",
    "max_batch": "batching = dynamic(max_batch = n, timeout = 5ms)",
}
"""Fields of configuration blocks."""
