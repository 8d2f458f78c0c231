"""One Python function in the making: its lines, its names, and where its dims come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from presk_rel.diagnostics import Span
from presk_rel.elab.ty import Idx, Instance, Mask, Params, Real, TupleOf, Type
from presk_rel.export.context import Context
from presk_rel.export.names import Names
from presk_rel.export.text import PRODUCT, Py, dimension, infix, literal
from presk_rel.smt.linear import Linear
from presk_rel.syntax import ast
from presk_rel.types.tree import Binder

Segment = str | Linear
"""A step of a path: an attribute, or a stack's count, for one of its layers."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tree or a tensor is: from `root` (a module where `inside`, else a state dict) along `path`."""

    root: str
    inside: bool
    path: tuple[Segment, ...]

    @property
    def counts(self) -> tuple[Linear, ...]:
        return tuple(p for p in self.path if isinstance(p, Linear))

    @property
    def before(self) -> list[str]:
        """The path up to the first stack."""
        return [p for p in takewhile(lambda p: isinstance(p, str), self.path) if isinstance(p, str)]

    def attributes(self) -> str:
        """The Python of the module, or of the first stack of modules on the way to it."""
        return ".".join([self.root, *self.before])

    def layer(self, name: str) -> Place:
        """The same in one layer of the outermost stack: the module `name`, or the layer that the variable `name`
        counts of a state dict."""
        n = len(self.before)
        if self.inside:
            return Place(name, True, self.path[n + 1 :])
        return Place(self.root, False, (*self.path[:n], f"{{{name}}}", *self.path[n + 1 :]))


@dataclass(slots=True)
class Scope:
    """`env` has the Python of each binder, `modules` the module that a variable stands for where it is no state dict;
    `nets` the modules in scope by instance; `own` the attribute of each dim of the module around; `sources` says how a
    dim is read off an argument, `dims` which are by now; those in `hidden` no argument shows: keyword parameters."""

    context: Context
    names: Names
    env: dict[int, Py]
    own: dict[str, Py] = field(default_factory=dict[str, Py])
    nets: dict[Instance, str] = field(default_factory=dict[Instance, str])
    sources: dict[str, Py] = field(default_factory=dict[str, Py])
    dims: dict[str, Py] = field(default_factory=dict[str, Py])
    hidden: dict[str, str] = field(default_factory=dict[str, str])
    uses: dict[int, int] = field(default_factory=dict[int, int])
    lines: list[str] = field(default_factory=list[str])
    modules: dict[int, Place] = field(default_factory=dict[int, Place])
    shadow: bool = False
    seen: dict[str, str] = field(default_factory=dict[str, str])

    def inner(self) -> Scope:
        """A function inside this one."""
        return Scope(
            self.context,
            self.names,
            self.env,
            self.own,
            self.nets,
            self.sources,
            self.dims,
            self.hidden,
            self.uses,
            [],
            self.modules,
            False,
            dict(self.seen),
        )

    def bind(self, binder: Binder, *, number: bool = False, top: bool = False) -> str:
        """A variable for a binder; at the top of a function without lambdas it may replace one of its name."""
        wanted = binder.name
        if self.uses.get(binder.id, 0) == 0 and not top:
            name = _unused(self.names.new(wanted))
        elif self.shadow and (known := self.seen.get(wanted)) is not None:
            name = known
        else:
            name = self.names.new(wanted)
        self.env[binder.id] = Py(name, number=number)
        self.seen[wanted] = name
        return name

    def dim(self, form: Linear, source: ast.Expr | None = None, near: Span | None = None) -> Py:
        """A dimension as a Python number; the symbols it needs are read off the arguments first. It is written as
        `source` writes it, or with the constants that are named within `near`."""
        for s in sorted(form.symbols):
            if s not in self.dims:
                self.dims[s] = self._symbol(s)
        written = self.context.written
        found = None if source is None else written.read(source, self.dims)
        if found is not None and found[0] == form:
            return found[1]
        span = source.span if source is not None else near
        return dimension(form, self.dims, lambda value: None if span is None else written.near(span, value))

    def _symbol(self, s: str) -> Py:
        if s in self.sources:
            return Py(self.names.new(s), number=True)
        if s in self.own:
            return self.own[s]
        if s not in self.hidden:
            self.hidden[s] = self.names.new(s)
        return Py(self.hidden[s], number=True)

    def bound_dims(self) -> list[str]:
        """The lines that bind the dims that were used."""
        read = [(s, text) for s, text in self.dims.items() if s in self.sources and text.text not in self._owned()]
        return [f"{text.text} = {self.sources[s].text}" for s, text in read]

    def _owned(self) -> set[str]:
        return {p.text for p in self.own.values()}

    def source(self, text: str, ty: Type) -> None:
        """What an argument says about dims."""
        for length, where in _lengths(self.context, text, ty):
            if len(length.terms) != 1 or length.const != 0:
                continue
            ((s, c),) = length.terms
            if c.denominator != 1 or (s in self.sources and c != 1):
                continue
            read = Py(where, number=True)
            if s not in self.sources or (c == 1 and "//" in self.sources[s].text):
                self.sources[s] = read if c == 1 else infix(read, "//", literal(c), PRODUCT, number=True)


def _unused(name: str) -> str:
    """A name that ruff takes for one that is not meant to be read."""
    return f"_{name}" if name.isascii() and not name.endswith("_") else "_"


def _lengths(context: Context, text: str, ty: Type) -> Iterator[tuple[Linear, str]]:
    match ty:
        case Real(shape) | Idx(_, shape) | Mask(shape):
            for i, axis in enumerate(shape.axes):
                at = i - len(shape.axes) if shape.prefix is not None else i
                yield axis.length, f"{text}.shape[{at}]"
        case TupleOf(items):
            for i, item in enumerate(items):
                yield from _lengths(context, f"{text}[{i}]", item)
        case Params(instance):
            for key, f, around in context.leaf_shapes(instance):
                env = dict(zip(context.program.modules[around.module].dims, around.args, strict=True))
                for i, axis in enumerate(f.type.shape.axes):
                    yield axis.length.substitute(env), f'{text}["{key}"].shape[{i}]'
        case _:
            return
