"""Exported files as modules, and values of the exact executor as their arguments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from presk_rel.elab.ty import Instance, Params, Real, Stacked, TupleOf, Type, field_names, field_type
from presk_rel.exec.torch.run import doubles
from presk_rel.exec.values import (
    HyperValue,
    IndexTensor,
    KeyValue,
    Leaf,
    MaskTensor,
    Rounded,
    Tensor,
    TupleValue,
    Value,
    map_leaves,
    take,
)
from presk_rel.export.torch_file import Exported
from presk_rel.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"


def exported(path: Path, folder: Path, consts: dict[str, int]) -> tuple[Session, ModuleType, Exported]:
    """The session and its export, loaded as a module; ruff has nothing to say of it."""
    session = Session(str(path), consts)
    made = session.exported()
    source = made.source
    file = folder / "exported.py"
    file.write_text(source, encoding="utf-8")
    found = subprocess.run(
        [str(Path(sys.executable).parent / "ruff"), "check", "--isolated", "--quiet", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout
    module = ModuleType("exported")
    exec(compile(source, str(file), "exec"), module.__dict__)
    return session, module, made


def argument(made: Exported, ty: Type, value: Value) -> Any:
    """A value as the exported file takes it: trees are state dicts."""
    return _argument(made, ty, map_leaves(_plain, value))


def _plain(leaf: Leaf) -> Value:
    if isinstance(leaf, Tensor) and isinstance(leaf.data, Rounded):
        return Tensor(leaf.axes, leaf.data.text.astype(np.float64))
    return leaf


def _argument(made: Exported, ty: Type, value: Value) -> Any:
    match ty, value:
        case Params(instance), _:
            return dict(state(made, instance, value, ""))
        case TupleOf(items), TupleValue(parts):
            return tuple(_argument(made, t, v) for t, v in zip(items, parts, strict=True))
        case _, Tensor(_, data):
            return torch.from_numpy(doubles(data))
        case _, IndexTensor(_, _, data) | MaskTensor(_, data):
            return torch.from_numpy(np.array(data))
        case _, HyperValue(kind, number):
            return int(number) if kind in ("nat", "int") else float(number)
        case _, KeyValue(key):
            return key
        case _:
            raise TypeError(type(value))


def state(made: Exported, instance: Instance, value: Any, front: str) -> Any:
    """The entries of a state dict: layer by layer where modules are stacked."""
    modules = made.context.program.modules
    if isinstance(instance, Stacked):
        for i in range(int(instance.count.const)):
            yield from state(made, instance.inner, take(value, i), f"{front}{i}.")
        return
    for name in field_names(modules, instance):
        ty, key = field_type(modules, instance, name), f"{front}{made.context.field_path(instance, name)}"
        if isinstance(ty, Real):
            yield key, _argument(made, ty, value.fields[name])
        elif isinstance(ty, Params):
            yield from state(made, ty.instance, value.fields[name], f"{key}.")


def furthest(found: Any, expected: Any) -> float:
    """The largest difference, normalised by the largest expected entry."""
    pairs = list(zip(flat(found), flat(expected), strict=True))
    scale = max((float(e.double().abs().max()) for _, e in pairs if e.numel()), default=0.0) or 1.0
    return max((float((f.double() - e.double()).abs().max()) for f, e in pairs if e.numel()), default=0.0) / scale


def flat(value: Any) -> list[Any]:
    match value:
        case dict():
            return [t for k in sorted(value) for t in flat(value[k])]
        case tuple():
            return [t for v in value for t in flat(v)]
        case _:
            return [value.detach()]
