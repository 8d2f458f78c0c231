"""`optimizer` blocks (spec: "The optimizer"): the name of the block is the algorithm."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Literal, cast

from presk_rel.elab.config.block import read_block
from presk_rel.elab.config.forms import Called
from presk_rel.elab.config.records import Optimizer
from presk_rel.elab.context import Elab
from presk_rel.syntax import ast

ALGORITHMS = ("adamw",)

_Plain = Literal["betas", "eps", "weight_decay", "grad_clip"]
_PLAIN: tuple[_Plain, ...] = ("betas", "eps", "weight_decay", "grad_clip")


def read_optimizer(elab: Elab, node: ast.Config) -> Optimizer | None:
    """The block's hyperparameters; None after E2010."""
    block = read_block(elab, node)
    if node.name.text not in ALGORITHMS:
        elab.error(
            "E2010",
            f"there is no optimizer algorithm `{node.name.text}`",
            node.name.span,
            help=f"the name of an optimizer block is its algorithm: {', '.join(ALGORITHMS)}",
        )
        return None
    if not block.whole:
        return None
    values = {name: field.value for name, field in block.fields.items()}
    optimizer = Optimizer(node.name.text, cast(Fraction, values["lr"]))
    for name in _PLAIN:
        if name in values:
            optimizer = replace(optimizer, **{name: values[name]})
    schedule = values.get("schedule")
    if isinstance(schedule, Called):
        warmup = schedule.int_("warmup") if "warmup" in schedule.args else 0
        kind = cast(Literal["constant", "linear", "cosine"], schedule.name)
        optimizer = replace(optimizer, schedule=kind, warmup=warmup)
    return optimizer
