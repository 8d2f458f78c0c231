"""The example programs: with which constants, which entry shows each, and at which small dims it is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from presk_rel.core.ir import Function, Grad, Jvp, Vjp
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.exec.literals import Node
from presk_rel.session import Session

PATHS = [p for p in sorted((Path(__file__).parents[2] / "examples").rglob("*.psk")) if p.parent.name != "diag"]
SMALL = {"V": 5, "D": 4, "H": 2, "L": 2}
CONSTS = {"gpt.psk": SMALL, "minigpt.psk": SMALL, "train_minigpt.psk": {f"m.{k}": v for k, v in SMALL.items()}}
"""Constants to run with instead."""

SIGNS = [Fraction(1), Fraction(-1)]


@dataclass(frozen=True, slots=True)
class Example:
    """`slow`: optimizing it takes more than a moment."""

    file: str
    entry: str
    dims: dict[str, int]
    args: dict[str, Node] = field(default_factory=dict[str, Node])
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.entry}"


EXAMPLES = (
    Example("autoencoder", "loss_grad", {"B": 2}, slow=True),
    Example("contrastive", "loss_grad", {"D": 2}, slow=True),
    Example("cross_attention", "loss_grad", {"B": 1, "T": 2, "S": 3, "D": 2}, slow=True),
    Example("diffusion", "loss_grad", {"B": 1, "D": 2}, slow=True),
    Example("flow", "loss_grad", {"B": 1}, slow=True),
    Example("gaussian_process", "loss_grad", {"N": 2, "M": 2, "D": 2}, slow=True),
    Example("graph_network", "loss_grad", {"N": 2, "D": 2}, slow=True),
    Example("grouped_query_attention", "loss_grad", {"B": 1, "T": 2}, slow=True),
    Example("gru", "loss_grad", {"B": 1, "D": 2, "H": 2}, slow=True),
    Example("hessian_vector", "along", {"N": 2, "D": 2}),
    Example("huber", "loss_grad", {"N": 2, "D": 2}),
    Example("linear_attention", "loss_grad", {"B": 1, "T": 2, "D": 2}, slow=True),
    Example("logistic_regression", "loss_grad", {"N": 2, "D": 2}, {"y": SIGNS}),
    Example("lora", "loss_grad", {"B": 1, "In": 2, "Out": 2}, slow=True),
    Example("matrix_factorization", "loss_grad", {"People": 3, "Films": 3, "N": 2, "R": 2}),
    Example("meta_learning", "loss_grad", {"N": 2, "D": 2}, slow=True),
    Example("mlp_mixer", "loss_grad", {"B": 1}, slow=True),
    Example("multi_query_attention", "loss_grad", {"B": 1, "T": 2}, slow=True),
    Example("physics_informed", "loss_grad", {"H": 2}, slow=True),
    Example("poisson_regression", "loss_grad", {"N": 2, "D": 2}),
    Example("policy_gradient", "loss_grad", {"N": 2, "D": 2}, {"reward": SIGNS}),
    Example("policy_gradient", "act", {"N": 2, "D": 2}),
    Example("polynomial_fit", "loss_grad", {"N": 2}),
    Example("pullback", "pulled", {"B": 2, "D": 2}),
    Example("q_learning", "loss_grad", {"N": 2, "D": 2}, {"reward": SIGNS}, slow=True),
    Example("q_learning", "greedy", {"N": 2, "D": 2}),
    Example("residual_tower", "loss_grad", {"B": 1, "D": 2}, slow=True),
    Example("rnn", "loss_grad", {"B": 1, "D": 2, "H": 2}),
    Example("rnn", "settled_grad", {"B": 1, "D": 2, "H": 2}),
    Example("rotary", "loss_grad", {"B": 1, "T": 2}, slow=True),
    Example("schedule_constant", "loss_grad", {"B": 2}),
    Example("schedule_cosine", "loss_grad", {"B": 2}, slow=True),
    Example("schedule_linear", "loss_grad", {"B": 2}, slow=True),
    Example("softmax_regression", "loss_grad", {"N": 2, "D": 2}),
    Example("softmax_regression", "hits", {"N": 2, "D": 2}),
    Example("support_vectors", "loss_grad", {"N": 2, "D": 2}, {"y": SIGNS}),
    Example("two_experts", "loss", {"B": 2, "D": 2}, slow=True),
    Example("vae", "loss_grad", {"B": 1, "D": 2, "Z": 2}, slow=True),
    Example("word_vectors", "loss_grad", {"N": 2, "D": 2}),
)
"""Of `examples/field`."""


def shown(path: Path, session: Session) -> Example:
    """The entry that shows the example: in `examples/field` the table says it, elsewhere it is the last that runs."""
    known = next((e for e in EXAMPLES if path.parent.name == "field" and e.file == path.stem), None)
    if known is not None:
        return known
    last = list(_runnable(session))[-1]
    return Example(path.stem, last.name, dict.fromkeys(last.dims, 2))


def gradients(path: Path, session: Session) -> list[Example]:
    """The entries of a file that differentiate, and the one that shows it."""
    first, own = shown(path, session), session.loaded.files[-1].path
    found = [first]
    for f in _runnable(session):
        given = {p.name for p in f.params}
        if f.span.file == own and f.name != first.entry and any(isinstance(b.op, Grad | Vjp | Jvp) for b in f.bindings):
            args = {k: v for k, v in first.args.items() if k in given}
            found.append(Example(path.stem, f.name, {d: first.dims.get(d, 2) for d in f.dims}, args))
    return found


def _runnable(session: Session) -> Iterator[Function]:
    """The functions as written that neither take nor return functions."""
    for written in session.typed.functions:
        f = session.core.functions[written.name]
        if not any(isinstance(t, FunctionType) for t in (f.result, *(p.type for p in f.params))):
            yield f
