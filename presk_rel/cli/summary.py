"""`presk check --summary`: what a program declares, with the effects and classes that the rules derive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presk_rel.core.ir import Function
    from presk_rel.pipeline import Session

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
    constants = dict(program.typed.constants) if not program.path.endswith(".core") else {}
    return {"constants": constants, "modules": modules, "functions": functions, "training": [], "inference": []}


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
    lines += ["", "-- training --", "", "-- inference --"]
    return "\n".join(lines)
