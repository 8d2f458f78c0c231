"""What configuration blocks resolve to (spec: "Configuration blocks")."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from presk_rel.diagnostics.record import record
from presk_rel.elab.ty import Instance, Type

Schedule = Literal["constant", "linear", "cosine"]


@record
class Optimizer:
    """The `optimizer` block `name`, with the hyperparameters as exact numbers and the spec's defaults filled in."""

    name: str
    lr: Fraction
    betas: tuple[Fraction, Fraction] = (Fraction(9, 10), Fraction(999, 1000))
    eps: Fraction = Fraction(1, 10**8)
    weight_decay: Fraction = Fraction(0)
    grad_clip: Fraction | None = None
    schedule: Schedule = "constant"
    warmup: int = 0


@record
class DataPipeline:
    """`stream "path" |> shuffle(seed = …) |> batch(B = …) |> take(n = …)`. `path` as written, relative to the file.
    `samples`: how many the file holds, None when it is not there yet."""

    path: str
    batch: int
    seed: int | None = None
    take: int | None = None
    samples: int | None = None


@record
class Checkpoint:
    """Every `steps` steps, into the folder `path`."""

    steps: int
    path: str


@record
class TrainingRun:
    """A `training` block resolved. `objective` is the function's Core name; `takes_key`: it has a per-step key between
    the parameter tree and the batch. `sample` is `batch` without the axis of that name. `dims` are the dimensions that
    the batch size and the data file fix. `settings` are the fields that are only recorded, as source text."""

    name: str
    model: Instance
    objective: str
    takes_key: bool
    batch: Type
    sample: Type
    optimizer: Optimizer
    data: DataPipeline | None
    dims: tuple[tuple[str, int], ...]
    epochs: int
    checkpoint: Checkpoint | None
    settings: tuple[tuple[str, str], ...]


@record
class InferenceRun:
    """An `inference` block resolved. `generate` is the Core name of its generation function, None without one (W0003).
    `settings` are the fields that are only recorded, as source text."""

    name: str
    model: Instance
    generate: str | None
    settings: tuple[tuple[str, str], ...]


@record
class Blocks:
    """The resolved blocks of the main file, in order."""

    trainings: tuple[TrainingRun, ...] = ()
    inferences: tuple[InferenceRun, ...] = ()
