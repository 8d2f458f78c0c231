"""`presk check --summary`: what a program declares, with the effects and classes that the rules derive."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presk_rel.core.ir import Function
    from presk_rel.elab.config.records import InferenceRun, Optimizer, TrainingRun
    from presk_rel.session import Session

CLASSES = {"Cinf": "C∞", "C0plus": "C⁰⁺", "Disc": "Disc"}


def summary_document(program: Session) -> dict[str, Any]:
    from presk_rel.elab.ty import Applied, leaves
    from presk_rel.smt.linear import symbol

    core, analysis = program.core, program.analysis
    modules: list[dict[str, Any]] = []
    for name, definition in core.modules.items():
        instance = Applied(name, tuple(symbol(d) for d in definition.dims))
        params = [{"path": path, "type": str(ty)} for path, ty in leaves(core.modules, instance)]
        modules.append({"name": str(instance), "params": params})
    functions = [
        {
            "name": f.name,
            "signature": signature(f),
            "effects": list(analysis.effects.get(f.name, ())),
            "regularity": {p.name: analysis.regularity(f.name, p.name) for p in f.params},
        }
        for f in core.functions.values()
        if ".lambda" not in f.name
    ]
    if program.path.endswith(".core"):
        return {"constants": {}, "modules": modules, "functions": functions, "training": [], "inference": []}
    blocks = program.typed.blocks
    return {
        "constants": dict(program.typed.constants),
        "modules": modules,
        "functions": functions,
        "training": [_training(run) for run in blocks.trainings],
        "inference": [_inference(run) for run in blocks.inferences],
    }


def _training(run: TrainingRun) -> dict[str, Any]:
    data, checkpoint = run.data, run.checkpoint
    return {
        "name": run.name,
        "model": str(run.model),
        "objective": run.objective,
        "takes_key": run.takes_key,
        "batch": str(run.batch),
        "sample": str(run.sample),
        "dims": dict(run.dims),
        "optimizer": _optimizer(run.optimizer),
        "data": None
        if data is None
        else {"path": data.path, "seed": data.seed, "batch": data.batch, "take": data.take, "samples": data.samples},
        "epochs": run.epochs,
        "checkpoint": None if checkpoint is None else {"steps": checkpoint.steps, "path": checkpoint.path},
        "settings": dict(run.settings),
    }


def _optimizer(o: Optimizer) -> dict[str, Any]:
    """Numbers exactly, as text: decimals, since that is how they are written."""
    return {
        "name": o.name,
        "lr": _decimal(o.lr),
        "betas": [_decimal(b) for b in o.betas],
        "eps": _decimal(o.eps),
        "weight_decay": _decimal(o.weight_decay),
        "grad_clip": None if o.grad_clip is None else _decimal(o.grad_clip),
        "schedule": o.schedule,
        "warmup": o.warmup,
    }


def _decimal(number: Fraction) -> str:
    """A decimal fraction in full."""
    places = 0
    while 10**places % number.denominator:
        places += 1
    digits = str(number.numerator * 10**places // number.denominator).rjust(places + 1, "0")
    return digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"


def _inference(run: InferenceRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "model": str(run.model),
        "generate": run.generate,
        "settings": dict(run.settings),
    }


def signature(f: Function) -> str:
    dims = "{" + " ".join(f.dims) + "}" if f.dims else ""
    params = ", ".join(f"{p.name} : {p.type}" for p in f.params)
    uses = f" uses {', '.join(f.uses)}" if f.uses else ""
    return f"{f.name}{dims}({params}) -> {f.result}{uses}"


def summary_text(document: dict[str, Any]) -> str:
    lines = ["-- constants --", *(f"{name} = {value}" for name, value in document["constants"].items()), ""]
    lines.append("-- modules --")
    for module in document["modules"]:
        lines += [module["name"], *(f"  {p['path']} : {p['type']}" for p in module["params"])]
    lines += ["", "-- functions --"]
    for f in document["functions"]:
        lines.append(f["signature"])
        effects = f"  effects: {', '.join(f['effects'])}" if f["effects"] else ""
        classes = "  regularity: " + ", ".join(f"{CLASSES[k]} in {p}" for p, k in f["regularity"].items())
        lines += [line for line in (effects, classes if f["regularity"] else "") if line]
    lines += ["", "-- training --", *(line for run in document["training"] for line in _training_text(run))]
    lines += ["", "-- inference --", *(line for run in document["inference"] for line in _inference_text(run))]
    return "\n".join(lines)


def _training_text(run: dict[str, Any]) -> Iterator[str]:
    yield f"{run['name']}: {run['objective']} over params {run['model']}"
    yield f"  batch: {run['batch']}" + (" after a key" if run["takes_key"] else "")
    yield f"  sample: {run['sample']}"
    if run["dims"]:
        yield "  dims: " + ", ".join(f"{name} = {value}" for name, value in run["dims"].items())
    yield f"  optimizer: {_optimizer_text(run['optimizer'])}"
    if run["data"] is not None:
        yield f"  data: {_data_text(run['data'])}"
    yield f"  epochs: {run['epochs']}"
    if run["checkpoint"] is not None:
        yield f'  checkpoint: every {run["checkpoint"]["steps"]} steps to "{run["checkpoint"]["path"]}"'
    yield from (f"  {name}: {value}" for name, value in run["settings"].items())


def _optimizer_text(o: dict[str, Any]) -> str:
    clip = "" if o["grad_clip"] is None else f", grad_clip = {o['grad_clip']}"
    warmup = "" if o["schedule"] == "constant" else f"warmup = {o['warmup']}"
    return (
        f"{o['name']}(lr = {o['lr']}, betas = ({', '.join(o['betas'])}), eps = {o['eps']}, "
        f"weight_decay = {o['weight_decay']}{clip}, schedule = {o['schedule']}({warmup}))"
    )


def _data_text(data: dict[str, Any]) -> str:
    seed = "" if data["seed"] is None else f" |> shuffle(seed = {data['seed']})"
    take = "" if data["take"] is None else f" |> take(n = {data['take']})"
    there = "not there yet" if data["samples"] is None else f"{data['samples']} samples"
    return f'stream "{data["path"]}"{seed} |> batch(B = {data["batch"]}){take} ({there})'


def _inference_text(run: dict[str, Any]) -> Iterator[str]:
    generate = "no generation function" if run["generate"] is None else f"generates by {run['generate']}"
    yield f"{run['name']}: params {run['model']}, {generate}"
    yield from (f"  {name}: {value}" for name, value in run["settings"].items())
