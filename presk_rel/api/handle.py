"""Compiled functions as Python callables (`presk_rel.api`)."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from presk_rel.api.program import classes
from presk_rel.elab.ty import Hyper, Idx, Key, Mask, Params, TupleOf
from presk_rel.exec import keys
from presk_rel.exec.torch.nodes import Branch, Node, Single
from presk_rel.exec.torch.operand import Operand
from presk_rel.exec.values import TreeValue, TupleValue, Value

if TYPE_CHECKING:
    from presk_rel.api.program import Program
    from presk_rel.core.ir import Function
    from presk_rel.exec.torch.run import Compiled, Dtype

Tree = Any
"""A tensor, a tuple of trees, or a dict of trees by field."""


@dataclass(slots=True, eq=False)
class Handle:
    """A compiled function. Call it with its parameters by position or name; those that were bound may be left out.

    `source` is the generated Python, `kernels` how many kernels a call runs, `dims` the numbers it was compiled for."""

    program: Program
    function: Function
    dims: Mapping[str, int]
    dtype: str
    device: str
    compiled: Compiled
    drawn: Mapping[str, Value]
    bound: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    result: Tree = None
    """The value of the last call."""
    _arenas: dict[str, Any] = field(default_factory=dict[str, Any])
    _trees: dict[str, Tree] = field(default_factory=dict[str, Tree])

    # ------------------------------------------------------------------------------------------------------ running

    def __call__(self, *args: Tree, **named: Tree) -> Tree:
        """The function's value: a tensor, tuple or dict of tensors of `dtype` on `device` (indices are int64).

        TypeError for an unknown, repeated or missing argument; ValueError for one of the wrong shape."""
        given = self._named(args, named)
        inputs: list[Any] = []
        for p in self.function.params:
            if p.name in given:
                inputs += self.leaves(p.name, given[p.name])
            elif p.name in self.bound:
                inputs += self.bound[p.name]
            else:
                raise TypeError(f"{self.function.name}: the argument `{p.name}` is missing")
        with _torch().no_grad():
            returned = self.compiled.generated(tuple(inputs))
        self.result = tree_of(self.compiled.emitted.result, returned)
        return self.result

    def bind(self, **named: Tree) -> Handle:
        """Fix arguments, checked and converted once; a later call may leave them out. Tensors that have the right dtype
        and device already are not copied, so writing to them is seen by the next call."""
        for name, value in self._named((), named).items():
            self.bound[name] = self.leaves(name, value)
        return self

    @property
    def grads(self) -> Tree:
        """The last result: of a gradient, the tree of gradients."""
        return self.result

    def _named(self, args: tuple[Tree, ...], named: dict[str, Tree]) -> dict[str, Tree]:
        names = [p.name for p in self.function.params]
        if len(args) > len(names):
            raise TypeError(f"{self.function.name} takes {len(names)} arguments, not {len(args)}")
        given = dict(zip(names, args))
        for name, value in named.items():
            if name not in names:
                raise TypeError(f"{self.function.name} has no parameter `{name}`; it has {', '.join(names)}")
            if name in given:
                raise TypeError(f"{self.function.name}: `{name}` is given twice")
            given[name] = value
        return given

    def leaves(self, name: str, value: Tree) -> list[Any]:
        """The tensors of an argument as generated code takes them."""
        found: list[Any] = []
        for i in self.compiled.emitted.inputs:
            if i.parameter == name:
                found.append(self._leaf(".".join((name, *i.path)), i.operand, part(value, name, i.path)))
        return found

    def _leaf(self, where: str, operand: Operand, value: Any) -> Any:
        match operand.type:
            case Hyper():
                return Fraction(value)
            case Key():
                return keys.master(value) if isinstance(value, int) else value
            case Idx():
                dtype = _torch().int64
            case Mask():
                dtype = _torch().bool
            case _:
                dtype = self.compiled.dtype
        tensor = _torch().as_tensor(value).to(dtype=dtype, device=self.compiled.device)
        if tuple(tensor.shape) != operand.sizes:
            raise ValueError(f"`{where}` : {operand.type} has shape {list(operand.sizes)}, not {list(tensor.shape)}")
        return tensor

    # -------------------------------------------------------------------------------------------------- parameters

    @property
    def params(self) -> dict[str, Tree]:
        """The parameter trees by parameter name, drawn by `M.init`: tensors that are views of one arena per tree
        (`arena`), so that an optimizer can step on that alone."""
        for p in self.function.params:
            if isinstance(p.type, Params) and p.name not in self._trees:
                self._trees[p.name] = self._tree(p.name)
        return dict(self._trees)

    def arena(self, name: str) -> Any:
        """The flat tensor whose views `params[name]` are."""
        self.params  # noqa: B018  makes the arenas
        return self._arenas[name]

    def example(self, name: str) -> Tree:
        """The value that `presk run` would synthesize for a parameter, as tensors."""
        from presk_rel.exec.torch.run import at, to_torch

        torch = _torch()
        inputs = [i for i in self.compiled.emitted.inputs if i.parameter == name]
        leaves = [to_torch(torch, self.compiled, at(self.drawn[name], i)) for i in inputs]
        return nested([i.path for i in inputs], leaves, self.drawn[name])

    def _tree(self, name: str) -> Tree:
        torch = _torch()
        inputs = [i for i in self.compiled.emitted.inputs if i.parameter == name]
        tree = self.example(name)
        leaves = [part(tree, name, i.path) for i in inputs]
        arena = torch.cat([x.reshape(-1) for x in leaves]) if leaves else torch.empty(0)
        views, start = list[Any](), 0
        for x in leaves:
            views.append(arena[start : start + x.numel()].view(x.shape))
            start += x.numel()
        self._arenas[name] = arena
        return nested([i.path for i in inputs], views, self.drawn[name])

    # ------------------------------------------------------------------------------------------------------- torch

    def to_torch(self) -> Any:
        """An `nn.Module` that owns the parameter trees and takes the other parameters: `module(x, y)`. Its backward
        pass runs presk's own optimized gradient, compiled from the same program. TypeError for a function that has no
        derivative."""
        from presk_rel.api.torch_module import torch_module

        return torch_module(self)

    # ----------------------------------------------------------------------------------------------------- showing

    @property
    def source(self) -> str:
        """The generated Python; saved to a file, it runs where presk_rel is installed."""
        return self.compiled.emitted.source

    @property
    def kernels(self) -> int:
        return self.compiled.emitted.kernels

    @property
    def signature(self) -> str:
        return self.program.signature(self.function.name)

    @property
    def regularity(self) -> dict[str, str]:
        """The class of the result in each parameter."""
        return self.program.regularity(self.function.name)

    def __repr__(self) -> str:
        dims = ", ".join(f"{d} = {n}" for d, n in self.dims.items())
        return (
            f"{self.signature}\n  {classes(self.regularity)}\n"
            f"  {self.kernels} kernels in {self.dtype} on {self.device}{f', {dims}' if dims else ''}"
        )

    def _repr_html_(self) -> str:
        text, dims = html.escape(self.signature), ", ".join(f"{d} = {n}" for d, n in self.dims.items())
        rows = [
            ("regularity", classes(self.regularity)),
            ("kernels", f"{self.kernels} in {self.dtype} on {self.device}"),
            ("dims", dims or "none"),
        ]
        cells = "".join(f"<tr><th>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
        source = f"<details><summary>source</summary><pre>{html.escape(self.source)}</pre></details>"
        return f"<code>{text}</code><table>{cells}</table>{source}"


def compile_handle(
    program: Program,
    entry: str,
    dims: dict[str, int],
    like: dict[str, Any],
    dtype: Dtype,
    device: str,
    seed: int,
    optimize: bool,
    unroll: bool,
) -> Handle:
    """See `api.Program.compile`."""
    from presk_rel.exec.inputs import bind, synthesize
    from presk_rel.exec.torch.run import compile_entry

    session = program.session
    program.session.analysis  # noqa: B018  every error first
    name = session.entry(entry).name
    core = session.optimized(name, dims).program if optimize else session.flat(name)
    found = bind(core, name, {k: _host(v) for k, v in like.items()}, dims)
    values = synthesize(core, found, seed) if _drawable(found.fn) else ()
    compiled = compile_entry(core, name, found.env, dtype, device, unroll=unroll)
    drawn = dict(zip((p.name for p in found.fn.params), values, strict=False))
    return Handle(program, session.entry(name), dict(found.env.dims), dtype, device, compiled, drawn)


def _host(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _drawable(fn: Function) -> bool:
    """Whether every parameter can be synthesized: a hyperparameter has to be given."""
    return not any(isinstance(p.type, Hyper) for p in fn.params)


def _torch() -> Any:
    return import_module("torch")


# ------------------------------------------------------------------------------------------------------------- trees


def part(value: Tree, name: str, path: tuple[str, ...]) -> Any:
    """A leaf of a tree. A dict may also be flat, its keys paths (`l1.w`), as a state dict is."""
    whole = ".".join(path)
    found: Any = value
    try:
        if isinstance(value, dict) and whole in value:
            return cast("dict[str, Any]", value)[whole]
        for step in path:
            found = found[int(step) if isinstance(found, tuple | list) else step]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TypeError(f"`{name}` has no part `{whole}`") from error
    return found


def tree_of(node: Node, returned: tuple[Any, ...]) -> Tree:
    """Returned leaves as a tree."""
    match node:
        case Single(operand):
            return returned[int(operand.name)]
        case Branch(TupleOf(), parts):
            return tuple(tree_of(v, returned) for _, v in parts)
        case Branch(_, parts):
            return {k: tree_of(v, returned) for k, v in parts}


def nested(paths: list[tuple[str, ...]], leaves: list[Any], like: Value) -> Tree:
    """Leaves by path as a tree of the form of a value."""
    table = dict(zip(paths, leaves, strict=True))

    def build(value: Value, path: tuple[str, ...]) -> Tree:
        match value:
            case TreeValue(fields):
                return {n: build(v, (*path, n)) for n, v in fields.items()}
            case TupleValue(items):
                return tuple(build(v, (*path, str(i))) for i, v in enumerate(items))
            case _:
                return table[path]

    return build(like, ())
