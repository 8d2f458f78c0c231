"""`inference` blocks and their generation functions.

A generation function gives one more index:

    fn next(θ : params M, ctx : idx[V][batch: B, seq: T], key : key) -> idx[V][batch: B] uses Rand = …

Its result has the context's bound and the context's axes but one. Keys may follow the context, and whatever else it
takes must have defaults.
"""

from __future__ import annotations

from presk_rel.elab.config.block import Block, read_block
from presk_rel.elab.config.records import InferenceRun
from presk_rel.elab.config.references import function_of, model_of, types_of
from presk_rel.elab.context import Elab
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Idx, Instance, Key, Params, Shape
from presk_rel.syntax import ast

SETTINGS = ("weights", "precision", "target", "batching", "cache")

_TAKES = "a generation function takes θ : params {0}, an index tensor, and keys, and gives the next index: idx[V][…]"


def read_inference(elab: Elab, signatures: dict[str, Signature], node: ast.Config) -> InferenceRun | None:
    """The block resolved. None after E2010 or an error in what it names; W0003 without a generation function."""
    block = read_block(elab, node)
    model = model_of(elab, block)
    named = function_of(elab, signatures, block, "generate")
    if model is None or not block.whole:
        return None
    if "generate" in block.fields:
        if named is None or not _check(elab, block, named, model):
            return None
        return InferenceRun(node.name.text, model, named.core, block.settings(SETTINGS))
    first = next((s for s in signatures.values() if s.file == node.span.file and generates(s, model)), None)
    if first is None:
        elab.diagnostics.warning(
            "W0003", "no function of this file generates from the model", node.name.span, help=_TAKES.format(model)
        )
    return InferenceRun(node.name.text, model, None if first is None else first.core, block.settings(SETTINGS))


def _check(elab: Elab, block: Block, signature: Signature, model: Instance) -> bool:
    if types_of(signature) is None or generates(signature, model):
        return types_of(signature) is not None
    elab.error(
        "E2010",
        f"`{signature.node.name.text}` is no generation function for {model}",
        block.fields["generate"].span,
        help=_TAKES.format(model),
    )
    return False


def generates(signature: Signature, model: Instance) -> bool:
    """Whether a function is a generation function for the model."""
    types = types_of(signature)
    if signature.owner is not None or types is None or len(types) < len(signature.params) or len(types) < 2:
        return False
    context, result = types[1], signature.result
    if types[0] != Params(model) or not isinstance(context, Idx) or not isinstance(result, Idx):
        return False
    rest = list(zip(types, signature.params, strict=True))[2:]
    if any(p.node.default is None and not isinstance(t, Key) for t, p in rest):
        return False
    return result.bound == context.bound and _one_less(context.shape, result.shape)


def _one_less(context: Shape, result: Shape) -> bool:
    axes = context.axes
    left = (axes[:i] + axes[i + 1 :] for i in range(len(axes)))
    return context.prefix == result.prefix and any(rest == result.axes for rest in left)
