"""The type checker's entry: a program's files → the typed program (spec: "Typing")."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

from presk_rel.diagnostics import Diagnostics, PreskBug
from presk_rel.elab.config.records import Blocks
from presk_rel.elab.config.resolve import resolve_blocks
from presk_rel.elab.context import Elab, id_of
from presk_rel.elab.cycles import report_missed
from presk_rel.elab.declared import Declared, members
from presk_rel.elab.elaborate import Elaborated, elaborate
from presk_rel.elab.files import Loaded, span_order
from presk_rel.elab.names_protocol import Resolver
from presk_rel.elab.order import order
from presk_rel.elab.paths import paths
from presk_rel.elab.signatures import Signature
from presk_rel.elab.spelled import spelled
from presk_rel.elab.ty import Applied, Composed, Instance, Params, Stacked, UseField
from presk_rel.syntax import ast
from presk_rel.types.check.axes import axis_parameters
from presk_rel.types.check.checker import Program
from presk_rel.types.check.function import check_function
from presk_rel.types.tree import OptimizerSpec, TFn, TypedProgram


def check_program(loaded: Loaded, names: Resolver) -> tuple[TypedProgram | None, Diagnostics]:
    """Elaborates and types a loaded program. None when there is an error, here or in its names (`elab.names` reports
    those); the diagnostics are in source order."""
    found = Diagnostics()
    with _room():
        elaborated = elaborate(loaded.files, loaded.main, names, loaded.overrides, found)
        program = Program(elaborated.elab, elaborated.signatures, check_function)
        typed = _check_bodies(program)
        blocks = resolve_blocks(elaborated.elab, elaborated.signatures)
    key, suffixed = span_order(loaded.files), elaborated.elab.suffixed
    told = [spelled(d, suffixed) for d in found.items] if suffixed else found.items
    diagnostics = Diagnostics(sorted(told, key=lambda d: key(d.span)))
    if diagnostics.has_errors:
        return None, diagnostics
    lost = [s.core for key, s in elaborated.signatures.items() if key not in typed]
    if lost and (names.unresolved or names.duplicates):
        return None, diagnostics
    if lost:
        raise PreskBug("type", f"{lost[0]} was given up without an error")
    return _program(loaded, elaborated, tuple(_emitted(program, typed)), blocks), diagnostics


def _emitted(program: Program, typed: dict[str, TFn]) -> Iterator[TFn]:
    """Every function with those that were made for it before it; of one with axis parameters only those."""
    for key, signature in program.signatures.items():
        yield from program.made.get(key, ())
        if not axis_parameters(signature):
            yield typed[key]


@contextmanager
def _room() -> Generator[None]:
    """Room for expressions nested as deep as the parser allows, about ten calls per level; and no search for cycles of
    garbage, of which trees and types have none: it would take a third of the time."""
    before, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(before, 10_000))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
        if collecting:
            gc.enable()


def _program(loaded: Loaded, elaborated: Elaborated, functions: tuple[TFn, ...], blocks: Blocks) -> TypedProgram:
    elab = elaborated.elab
    constants = {
        d.name: value
        for d in elab.declared.values()
        if isinstance(d.node, ast.Const) and d.file == loaded.main and (value := elab.constants[d.id]) is not None
    }
    return TypedProgram(
        main=loaded.main,
        modules=elab.modules,
        functions=functions,
        constants=constants,
        values={id: value for id, value in elab.constants.items() if value is not None},
        bounds=tuple(elab.bounds),
        optimizers=_optimizers(blocks),
        blocks=blocks,
    )


def _optimizers(blocks: Blocks) -> tuple[OptimizerSpec, ...]:
    """One per training run, runs of the same model together. A block used for further models is called `adamw2`, …"""
    found: list[OptimizerSpec] = []
    for run in blocks.trainings:
        o, model = run.optimizer, Params(run.model)
        spec = OptimizerSpec(o.name, model, o.lr, o.betas, o.eps, o.weight_decay, o.grad_clip, o.schedule, o.warmup)
        used = [s for s in found if s.name.removeprefix(o.name).isdigit() or s.name == o.name]
        if all(s.model != model for s in used):
            found.append(replace(spec, name=f"{o.name}{len(used) + 1}" if used else o.name))
    return tuple(found)


def _check_bodies(program: Program) -> dict[str, TFn]:
    """Every function, callees first, so that what a signature leaves out is known to its callers. Members of a cycle
    have their E2016; what they do not declare stays unknown."""
    elab, signatures = program.elab, program.signatures
    needs = {s: list(_mentions(elab, signatures[s])) for s in signatures}
    done, cyclic = order(list(signatures), lambda s: needs[s])
    for key in cyclic:
        signature = signatures[key]
        if signature.open:
            report_missed(elab, key)
            signature.broken = True
    typed: dict[str, TFn] = {}
    for key in done:
        fn = check_function(program, signatures[key])
        if fn is not None:
            typed[key] = fn
    return typed


# ------------------------------------------------------------------------------------------- functions mentioned


def _mentions(elab: Elab, signature: Signature) -> Iterator[str]:
    """The functions that a body names, directly or through a module."""
    defaults = tuple(p.node.default for p in signature.params if p.node.default is not None)
    for path in paths((signature.node.body, defaults)):
        target = elab.target(path)
        if isinstance(target, Declared) and isinstance(target.node, ast.Fn):
            yield target.id
        elif isinstance(path, ast.Field):
            yield from _selected(elab, path)


def _selected(elab: Elab, path: ast.Field) -> Iterator[str]:
    """`l1.apply`, `MLP{D, 4*D}.apply`: the function of the modules that the base may stand for."""
    for module in _modules_of(elab, path.base):
        found = members(elab.nodes[module]).get(path.name.text)
        if found is not None and isinstance(found[1], ast.Fn):
            yield id_of(found[0])


def _modules_of(elab: Elab, base: ast.Expr) -> Iterator[str]:
    for path in paths(base):
        target = elab.target(path)
        if not isinstance(target, Declared):
            continue
        match target.node:
            case ast.Module():
                yield elab.core[target.id]
            case ast.Use():
                yield from _of_use(elab, target)
            case ast.FnParam() | ast.Model():
                instance = elab.module_params.get(target.id) or elab.models.get(target.id)
                if instance is not None:
                    yield from _of_instance(instance)
            case _:
                continue


def _of_use(elab: Elab, target: Declared) -> Iterator[str]:
    assert target.module is not None
    definition = elab.modules.get(elab.core[id_of(target.module.name)])
    for field in definition.fields if definition is not None else ():
        if field.name == target.name and isinstance(field, UseField):
            yield from _of_instance(field.instance)


def _of_instance(instance: Instance) -> Iterator[str]:
    match instance:
        case Applied(module, _):
            yield module
        case Stacked(_, inner):
            yield from _of_instance(inner)
        case Composed(outer, inner):
            yield from _of_instance(outer)
            yield from _of_instance(inner)
