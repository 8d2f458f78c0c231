"""`training` blocks against their objective and their data (spec: "The training run block against its objective")."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from presk_rel.diagnostics import Label, Span
from presk_rel.diagnostics.record import record
from presk_rel.elab.config.block import Block, read_block
from presk_rel.elab.config.data_file import BadDataFile, DataHeader, read_header
from presk_rel.elab.config.forms import Called
from presk_rel.elab.config.records import DataPipeline, Optimizer, TrainingRun
from presk_rel.elab.config.references import function_of, model_of, types_of
from presk_rel.elab.config.samples import Matching, batch_lengths, not_a_batch, sample_of
from presk_rel.elab.context import Elab
from presk_rel.elab.signatures import Signature
from presk_rel.elab.ty import SCALAR_REAL, Instance, Key, Params, Type
from presk_rel.syntax import ast

SETTINGS = ("parallel", "precision")
"""Fields that pass the schema and are not read."""


@record
class _Objective:
    """What the objective takes: the batch, after a per-step key if `takes_key`."""

    core: str
    takes_key: bool
    batch: Type


def read_training(
    elab: Elab, signatures: dict[str, Signature], optimizers: Mapping[str, Optimizer | None], node: ast.Config
) -> TrainingRun | None:
    """The block resolved. None after E2010 or an error in what it names; W0002 while its data file is missing."""
    block = read_block(elab, node)
    model = model_of(elab, block)
    signature = function_of(elab, signatures, block, "objective")
    optimizer = _optimizer(elab, optimizers, block)
    objective = None if model is None or signature is None else _objective(elab, block, signature, model)
    if objective is None or model is None or not block.whole:
        return None
    matching = Matching()
    data = _data(elab, block, objective, matching)
    _bounds(elab, block, matching)
    epochs = block.fields.get("epochs")
    if optimizer is None:
        return None
    return TrainingRun(
        name=node.name.text,
        model=model,
        objective=objective.core,
        takes_key=objective.takes_key,
        batch=objective.batch,
        sample=sample_of(objective.batch),
        optimizer=optimizer,
        data=data,
        dims=tuple(sorted(matching.values.items())),
        epochs=epochs.value if epochs is not None and isinstance(epochs.value, int) else 1,
        checkpoint=block.checkpoint,
        settings=block.settings(SETTINGS),
    )


def _optimizer(elab: Elab, optimizers: Mapping[str, Optimizer | None], block: Block) -> Optimizer | None:
    """The block that is meant; one that is not there is reported with the names (E1001)."""
    field = block.fields.get("optimizer")
    if field is None:
        return None
    if isinstance(field.expr, ast.Name):
        return optimizers.get(field.expr.text)
    return elab.error("E2010", "`optimizer` takes the name of an optimizer block of this file", field.span)


# ------------------------------------------------------------------------------------------------------- objective


def _objective(elab: Elab, block: Block, signature: Signature, model: Instance) -> _Objective | None:
    types = types_of(signature)
    if types is None:
        return None
    span = block.fields["objective"].span

    def refuse(what: str) -> None:
        elab.diagnostics.error(
            "E2010",
            f"`{signature.node.name.text}` is no objective for {model}: {what}",
            span,
            labels=(Label(signature.node.name.span, f"`{signature.node.name.text}` is declared here"),),
            help=f"an objective takes θ : params {model}, then maybe a key, then the batch, and gives ℝ[]; "
            "what else it takes must have defaults",
        )

    if len(types) < len(signature.params):
        return refuse("it takes a module or an axis")
    if not types or types[0] != Params(model):
        return refuse(f"its first parameter is {types[0] if types else 'missing'}, not params {model}")
    takes_key = len(types) > 1 and isinstance(types[1], Key)
    at = 2 if takes_key else 1
    if len(types) <= at:
        return refuse("it takes no batch")
    needed = [p.name for p in signature.params[at + 1 :] if p.node.default is None]
    if needed:
        return refuse(f"its parameter `{needed[0]}` has no default")
    problem = not_a_batch(types[at])
    if problem is not None:
        return refuse(problem)
    if signature.result is not None and signature.result != SCALAR_REAL:
        return refuse(f"its result is {signature.result}, not ℝ[]")
    return _Objective(signature.core, takes_key, types[at])


# ------------------------------------------------------------------------------------------------------------ data


def _data(elab: Elab, block: Block, objective: _Objective, matching: Matching) -> DataPipeline | None:
    field = block.fields.get("data")
    if field is None or not isinstance(field.value, tuple):
        return None
    steps = {step.name: step for step in field.value if isinstance(step, Called)}
    pipeline = DataPipeline(
        path=steps["stream"].text("0"),
        batch=steps["batch"].int_("B"),
        seed=steps["shuffle"].int_("seed") if "shuffle" in steps else None,
        take=steps["take"].int_("n") if "take" in steps else None,
    )
    for length in batch_lengths(objective.batch):
        if not matching.equal(length, pipeline.batch):
            elab.error("E2010", f"the axis batch has length {length}, and B is {pipeline.batch} here", field.span)
    span = _path_span(field.expr)
    header = _header(elab, pipeline.path, span)
    if header is None:
        return pipeline
    ours = sample_of(objective.batch)
    problem = matching.match(ours, header.sample)
    if problem is not None:
        elab.error(
            "E2010",
            f"the samples of {pipeline.path} are {header.sample}, and the objective takes {ours}: {problem}",
            span,
        )
    return replace(pipeline, samples=header.samples)


def _header(elab: Elab, path: str, span: Span) -> DataHeader | None:
    """The header of the file at `path`, relative to the main file, in which the block stands; None after W0002 or
    E2010. What imported files would train on is not looked at."""
    if span.file != elab.main:
        return None
    try:
        header = read_header(os.path.join(os.path.dirname(span.file), path))
    except BadDataFile as error:
        return elab.error("E2010", f"{path} is no data file: {error}", span)
    if header is None:
        elab.diagnostics.warning(
            "W0002",
            f"there is no file {path} yet: its samples are not checked",
            span,
            help="the path is relative to the folder of this file",
        )
    return header


def _path_span(expr: ast.Expr) -> Span:
    """Where the string of `stream "path" |> …` stands."""
    while isinstance(expr, ast.Binary):
        expr = expr.left
    if isinstance(expr, ast.Call) and expr.args and isinstance(expr.args[0], ast.Positional):
        return expr.args[0].span
    return expr.span


def _bounds(elab: Elab, block: Block, matching: Matching) -> None:
    """`dim T <= N` holds for what is bound."""
    for name, form in elab.bounds:
        limit = matching.now(form)
        if name in matching.values and limit.is_constant and matching.values[name] > limit.const:
            field = block.fields["data"]
            elab.error("E2010", f"the data makes {name} = {matching.values[name]}, and {name} <= {limit}", field.span)
