"""The module part of the check of a Core program: parameter trees are finite, and instances fit their modules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import assert_never

from presk_rel.core.acyclic import cycle
from presk_rel.core.ir import Program
from presk_rel.core.shapes import forms_of_instance, instances_in, symbols_in
from presk_rel.elab.ty import Applied, Composed, Field, Init, Instance, ModuleDef, ParamField, Stacked, Type, UseField

_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def module_findings(program: Program) -> Iterator[tuple[str, str]]:
    """Where and what is wrong with the modules and bounds of a program."""
    for name, module in program.modules.items():
        where = f"module {module.name}"
        if name != module.name:
            yield where, f"is listed as {name}"
        for text in _module_problems(program.modules, module):
            yield where, text
    loop = cycle({name: _used(m) for name, m in program.modules.items()})
    if loop:
        yield f"module {loop[0]}", f"includes itself: {' → '.join([*loop, loop[0]])}"


def _module_problems(modules: Mapping[str, ModuleDef], module: ModuleDef) -> Iterator[str]:
    if len(set(module.dims)) != len(module.dims):
        yield f"declares a dim twice: {' '.join(module.dims)}"
    if not 0 <= module.explicit <= len(module.dims):
        yield f"has {len(module.dims)} dims, {module.explicit} of them explicit"
    names = [f.name for f in module.fields]
    if len(set(names)) != len(names):
        yield f"has two fields of one name among {', '.join(names)}"
    for field in module.fields:
        yield from _field_problems(modules, module, field)


def _field_problems(modules: Mapping[str, ModuleDef], module: ModuleDef, field: Field) -> Iterator[str]:
    match field:
        case ParamField(name, ty, init):
            mentioned = symbols_in(ty)
            if ty.shape.prefix is not None:
                yield f"the parameter {name} has an open shape"
            if not _initializer(init):
                yield f"the initializer of {name} is {init}"
        case UseField(name, instance):
            mentioned = {s for form in forms_of_instance(instance) for s in form.symbols}
            problem = bad_instance(modules, instance)
            if problem is not None:
                yield f"the sub-module {name}: {problem}"
        case _:
            assert_never(field)
    undeclared = sorted(mentioned - set(module.dims))
    if undeclared:
        yield f"the field {name} mentions {undeclared[0]}, which is no dim of the module"


def _initializer(init: Init) -> bool:
    if init.kind == "normal":
        return init.std is not None and _DECIMAL.fullmatch(init.std) is not None
    return init.std is None


def _used(module: ModuleDef) -> list[str]:
    return [m for f in module.fields if isinstance(f, UseField) for m in modules_in(f.instance)]


def modules_in(instance: Instance) -> Iterator[str]:
    """The modules an instance names."""
    match instance:
        case Applied(module):
            yield module
        case Stacked(_, inner):
            yield from modules_in(inner)
        case Composed(outer, inner):
            yield from modules_in(outer)
            yield from modules_in(inner)
        case _:
            assert_never(instance)


def instance_problem(modules: Mapping[str, ModuleDef], ty: Type) -> str | None:
    """What is wrong with the module instances of a type."""
    return next((p for i in instances_in(ty) if (p := bad_instance(modules, i)) is not None), None)


def bad_instance(modules: Mapping[str, ModuleDef], instance: Instance) -> str | None:
    """Why an instance denotes no parameter tree: an unknown module, or not as many arguments as the module has dims."""
    match instance:
        case Applied(module, args):
            if module not in modules:
                return f"{module} is no module"
            if len(args) != len(modules[module].dims):
                return f"{module} has {len(modules[module].dims)} dims, not {len(args)}"
            return None
        case Stacked(_, inner):
            return bad_instance(modules, inner)
        case Composed(outer, inner):
            return bad_instance(modules, outer) or bad_instance(modules, inner)
        case _:
            assert_never(instance)
