"""The fields of blocks that name a model or a function."""

from __future__ import annotations

from presk_rel.elab.config.block import Block
from presk_rel.elab.context import Elab
from presk_rel.elab.declared import Declared
from presk_rel.elab.instances import instance_at
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import Instance, ModuleValue, Type
from presk_rel.syntax import ast


def model_of(elab: Elab, block: Block) -> Instance | None:
    """The instance that `model` names; None after an error."""
    field = block.fields.get("model")
    return None if field is None else instance_at(elab, field.expr, field.span)


def function_of(elab: Elab, signatures: dict[str, Signature], block: Block, name: str) -> Signature | None:
    """The top-level function of the same file that the field `name` names; E2010 if it is something else."""
    field = block.fields.get(name)
    if field is None:
        return None
    target = elab.target(field.expr)
    if isinstance(target, Declared) and isinstance(target.node, ast.Fn):
        if target.module is None and target.file == field.span.file:
            return signatures.get(target.id)
    if target is not None or not elab.unresolved(field.expr):
        elab.error("E2010", f"`{name}` takes the name of a top-level function of this file", field.span)
    return None


def types_of(signature: Signature) -> tuple[Type, ...] | None:
    """The types of the parameters; None if one of them has an error, which has been reported."""
    known = tuple(p.type for p in signature.params if p.type is not None and not isinstance(p.type, ModuleValue))
    return None if signature.broken or any(p.broken for p in signature.params) else known
