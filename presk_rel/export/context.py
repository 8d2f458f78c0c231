"""What the whole exported file knows: Python's names for modules, fields, functions and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from presk_rel.diagnostics import Diagnostic, PreskError, Span
from presk_rel.elab.ty import Applied, Composed, Instance, ModuleDef, ParamField, Params, Stacked, UseField
from presk_rel.export.helpers import HELPERS, NEEDS
from presk_rel.export.names import MODULE, Names
from presk_rel.export.written import Written
from presk_rel.syntax import ast
from presk_rel.types.tree import TFn, TypedProgram


def unsupported(what: str, span: Span | None) -> PreskError:
    message = f"{what}: the PyTorch export does not support this in this version"
    return PreskError([Diagnostic("E9001", message, span)], exit_status=3)


@dataclass(slots=True)
class ClassNames:
    """A module's Python names: the class, its dims and fields as attributes, its functions as methods."""

    name: str
    dims: dict[str, str]
    fields: dict[str, str]
    methods: dict[str, str]


@dataclass(slots=True)
class Context:
    """`nodes` has the syntax of every function by Core name: those that the checker made for a stack of stacks have
    none, and are written where they are called."""

    program: TypedProgram
    nodes: Mapping[str, ast.Fn]
    names: Names = field(default_factory=Names)
    classes: dict[str, ClassNames] = field(default_factory=dict[str, ClassNames])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    written: Written = field(default_factory=Written)
    used: set[str] = field(default_factory=set[str])
    by_name: dict[str, TFn] = field(default_factory=dict[str, TFn])
    hidden: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """The dims that no argument of a function shows, with the keyword parameter for each."""

    def __post_init__(self) -> None:
        self.names.taken |= set(HELPERS)
        self.by_name = {fn.name: fn for fn in self.program.functions}
        for module in self.program.modules.values():
            self.classes[module.name] = self._class(module)
        for fn in self.program.functions:
            if self.owner(fn) is None and fn.name in self.nodes:
                self.functions[fn.name] = self.names.new(fn.name)

    def _class(self, module: ModuleDef) -> ClassNames:
        inside = Names(set(self.names.taken) | MODULE)
        methods = {"apply": "forward"}
        found = ClassNames(self.names.new(module.name), {}, {}, methods)
        for dim in module.dims:
            found.dims[dim] = inside.new(dim)
        for f in module.fields:
            found.fields[f.name] = inside.new(f.name)
        for fn in self.program.functions:
            if self.owner(fn) == module.name and fn.name in self.nodes and self.member(fn) != "apply":
                methods[self.member(fn)] = inside.new(self.member(fn))
        return found

    def owner(self, fn: TFn) -> str | None:
        """The module whose function it is."""
        if fn.theta is None or not isinstance(fn.theta.instance, Applied):
            return None
        return fn.theta.instance.module

    def member(self, fn: TFn) -> str:
        """The function's name in its module; one with axis parameters has a name for each choice of axes."""
        owner = self.owner(fn)
        assert owner is not None
        return fn.name.removeprefix(f"{owner}.")

    def method(self, fn: TFn) -> str:
        owner = self.owner(fn)
        assert owner is not None
        return self.classes[owner].methods[self.member(fn)]

    def helper(self, name: str) -> str:
        self.used |= {name, *NEEDS.get(name, ())}
        return name

    def trains(self, fn: TFn) -> bool:
        """Whether the function takes `training`."""
        return "Rand" in fn.uses

    # ---------------------------------------------------------------------------------------------- parameter trees

    def field_path(self, instance: Instance, name: str) -> str:
        """The attribute of a field of a tree."""
        match instance:
            case Applied(module):
                return self.classes[module].fields[name]
            case Stacked(_, inner):
                return self.field_path(inner, name)
            case Composed():
                return name

    def leaf_shapes(self, instance: Instance) -> list[tuple[str, ParamField, Applied]]:
        """The tensors of a tree that no stack repeats: their keys in a state dict, with the instance around them."""
        found: list[tuple[str, ParamField, Applied]] = []
        pending: list[tuple[str, Instance]] = [("", instance)]
        while pending:
            front, inst = pending.pop(0)
            match inst:
                case Applied(module):
                    for f in self.program.modules[module].fields:
                        key = front + self.classes[module].fields[f.name]
                        if isinstance(f, ParamField):
                            found.append((key, f, inst))
                        else:
                            pending.append((f"{key}.", self._use(f, inst)))
                case Composed(outer, inner):
                    pending += [(f"{front}outer.", outer), (f"{front}inner.", inner)]
                case Stacked():
                    continue
        return found

    def _use(self, f: UseField, inst: Applied) -> Instance:
        from presk_rel.elab.ty import field_type

        found = field_type(self.program.modules, inst, f.name)
        assert isinstance(found, Params)
        return found.instance
