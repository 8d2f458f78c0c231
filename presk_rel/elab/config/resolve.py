"""All configuration blocks of a program. Those of imported files are checked for their fields and references too, but
only the main file's are what a command runs."""

from __future__ import annotations

from presk_rel.elab.config.inference import read_inference
from presk_rel.elab.config.optimizer import read_optimizer
from presk_rel.elab.config.records import Blocks, InferenceRun, Optimizer, TrainingRun
from presk_rel.elab.config.training import read_training
from presk_rel.elab.context import Elab
from presk_rel.elab.signatures import Signature
from presk_rel.syntax import ast


def resolve_blocks(elab: Elab, signatures: dict[str, Signature]) -> Blocks:
    """Called when the types of all functions are known. Errors go to `elab.diagnostics`."""
    trainings: list[TrainingRun] = []
    inferences: list[InferenceRun] = []
    for file in elab.files:
        configs = [d for d in file.decls if isinstance(d, ast.Config)]
        optimizers: dict[str, Optimizer | None] = {
            c.name.text: read_optimizer(elab, c) for c in configs if c.kind == "optimizer"
        }
        for config in configs:
            run = _run(elab, signatures, optimizers, config)
            if isinstance(run, TrainingRun) and file.path == elab.main:
                trainings.append(run)
            if isinstance(run, InferenceRun) and file.path == elab.main:
                inferences.append(run)
    return Blocks(tuple(trainings), tuple(inferences))


def _run(
    elab: Elab, signatures: dict[str, Signature], optimizers: dict[str, Optimizer | None], config: ast.Config
) -> TrainingRun | InferenceRun | None:
    match config.kind:
        case "optimizer":
            return None
        case "training":
            return read_training(elab, signatures, optimizers, config)
        case "inference":
            return read_inference(elab, signatures, config)
