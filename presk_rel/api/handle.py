"""Compiled functions as Python callables (`presk_rel.api`)."""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from presk_rel.api.leaves import leaf
from presk_rel.api.program import classes
from presk_rel.api.trees import Tree, nested, part, tree_of
from presk_rel.elab.ty import Params, TupleOf
from presk_rel.exec.torch.bound import Bound, bound, lying, parted
from presk_rel.exec.torch.nodes import operands_of
from presk_rel.exec.torch.parts import on_host
from presk_rel.exec.torch.ready import ready

if TYPE_CHECKING:
    from presk_rel.api.program import Program
    from presk_rel.core.ir import Function
    from presk_rel.exec.inputs import Drawn
    from presk_rel.exec.torch.inductor import Status, Tier
    from presk_rel.exec.torch.run import Compiled, Dtype


@dataclass(slots=True, eq=False)
class Handle:
    """A compiled function. Call it with its parameters by position or name, or bind them and call it without any.

    `handle(x, y)` computes into new tensors. `handle.bind(x=x, y=y)` puts the values where `handle()` reads them from
    then on; `handle()` launches kernels and does nothing else, and gives the same tensors every time: what it computed
    before is overwritten.

    `source` is the generated Python, `kernels` how many kernels a bound call launches, `dims` the numbers it was
    compiled for."""

    program: Program
    function: Function
    dims: Mapping[str, int]
    dtype: Dtype
    device: str
    compiled: Compiled
    drawn: Drawn
    tier: Tier = "auto"
    bound: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """The memory of the parameters that are bound, leaf by leaf."""
    result: Tree = None
    """The value of the last call."""
    _trees: dict[str, Tree] = field(default_factory=dict[str, Tree])
    _places: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _ready: Bound | None = None
    _value: Tree = None
    _advance: tuple[Bound, Tree, list[tuple[Any, Any]]] | None = None

    # ------------------------------------------------------------------------------------------------------ running

    def __call__(self, *args: Tree, **named: Tree) -> Tree:
        """The function's value: a tensor, tuple or dict of tensors of `dtype` on `device` (indices are int64).

        TypeError for an unknown, repeated or missing argument, or one of another kind; ValueError for one of the wrong
        shape, and for an index outside its bound (looked at on the CPU, where it costs 5 µs)."""
        if args or named:
            given = {name: self.leaves(name, value) for name, value in self._named(args, named).items()}
            value = tree_of(self.compiled.emitted.result, self.compiled.function(self._inputs(given)))
        else:
            value = self._again()
        self.result = value  # never returned from here: another thread may have called meanwhile
        return value

    def _again(self) -> Tree:
        """A bound call."""
        if self._ready is None:
            inputs = self._inputs({})
            if self.compiled.emitted.plan is None:
                return tree_of(self.compiled.emitted.result, self.compiled.function(inputs))
            self._ready = ready(self.compiled, inputs)
            self._value = tree_of(self.compiled.emitted.result, self._ready.run())
            return self._value
        runner = self.compiled.runner
        if runner is not None and not runner.settled:
            self._ready = ready(self.compiled, (), self._ready)
        found = self._ready.run()
        return self._value if self._ready.same else tree_of(self.compiled.emitted.result, found)

    def launch(self) -> None:
        """A later bound call as a dispatch mode sees it: inference mode hides what torch launches."""
        if self._ready is not None:
            self._ready.launch()
        else:
            self.compiled.generated(self._inputs({}))

    def _inputs(self, given: Mapping[str, list[Any]]) -> tuple[Any, ...]:
        """All leaves in order: those given, else those bound."""
        inputs: list[Any] = []
        for p in self.function.params:
            if p.name not in given and p.name not in self.bound:
                raise TypeError(f"{self.function.name}: the argument `{p.name}` is missing")
            inputs += given.get(p.name) or self.bound.get(p.name, [])
        return tuple(inputs)

    def bind(self, **named: Tree) -> Handle:
        """Fix arguments, checked and converted once: `handle()` reads them, and another call may leave them out.

        Trees whose leaves lie next to each other in one flat tensor (as `params` and the results of handles do) are
        read where they lie, so that handles share them; everything else is copied into the handle's own memory. Where
        one is refused (TypeError, ValueError) none is bound."""
        given = {name: self.leaves(name, value) for name, value in self._named((), named).items()}
        for name, found in given.items():
            leaves = [x.detach() if hasattr(x, "detach") else x for x in found]
            kept = self.bound.get(name)
            if self._lying(name, leaves):
                moved = kept is None or any(a.data_ptr() != b.data_ptr() for a, b in zip(kept, leaves, strict=True))
                self._moved(name, leaves if kept is None or moved else kept, moved=moved)
            elif kept is None:
                self._moved(name, self._own(name, leaves), moved=True)
            else:
                for k, x in enumerate(leaves):
                    self._write(name, kept, k, x)
        return self

    def _moved(self, name: str, leaves: list[Any], *, moved: bool) -> None:
        self.bound[name] = leaves
        if moved:
            self._ready = self._advance = None

    def _write(self, name: str, kept: list[Any], k: int, x: Any) -> None:
        """A new value in the memory of a parameter's leaf k."""
        if hasattr(kept[k], "copy_"):
            kept[k].copy_(x)
            return
        kept[k] = x
        for held in (self._ready, self._advance[0] if self._advance else None):
            if held is not None:
                held.inputs[self._numbers(name)[k]] = x

    def _numbers(self, name: str) -> list[int]:
        """Which of all inputs are a parameter's."""
        if not self._places:
            for k, i in enumerate(self.compiled.emitted.inputs):
                self._places.setdefault(i.parameter, []).append(k)
        return self._places.get(name, [])

    def _flats(self, name: str) -> list[list[int]]:
        """Which leaves of a parameter are the leaves of its trees."""
        numbers = self._numbers(name)
        return [[numbers.index(i) for i in t] for t in self.compiled.emitted.trees if t and t[0] in numbers]

    def _lying(self, name: str, leaves: list[Any]) -> bool:
        """Whether an argument is parameter trees only, each in one flat tensor already."""
        flats = self._flats(name)
        whole = bool(leaves) and sum(map(len, flats)) == len(leaves)
        return whole and all(lying(_torch(), [leaves[k] for k in flat]) is not None for flat in flats)

    def _own(self, name: str, leaves: list[Any]) -> list[Any]:
        """New memory with these values: one flat tensor for each tree."""
        found = [x.clone() if hasattr(x, "clone") else x for x in leaves]
        for flat in self._flats(name):
            parts = [found[k] for k in flat]
            joined = _torch().cat([x.reshape(-1) for x in parts])
            for k, view in zip(flat, parted(joined, parts), strict=True):
                found[k] = view
        return found

    @property
    def grads(self) -> Tree:
        """The last result: of a gradient, the tree of gradients."""
        return self.result

    @property
    def flats(self) -> tuple[Any, ...]:
        """The flat tensors that the results of a bound call are parts of, one for each tree and other tensor, in order:
        of a gradient, all gradients as one. Empty before the first bound call, and where a program is too long for one
        plan."""
        return self._ready.flats if self._ready is not None else ()

    def advance(self) -> Tree:
        """A bound call, whose results then are the first parameters of their types: one step of an optimizer on its
        parameters and state. Where the plan allows it they are written there to begin with, else copied. TypeError
        where no parameter has the type of a result, ValueError where the function is too long for one plan."""
        if self._advance is None:
            self._advance = self._advancing()
        bound_to, value, copies = self._advance
        bound_to.run()
        with _torch().no_grad():
            for into, source in copies:
                into.copy_(source)
        self.result = value
        return value

    def _advancing(self) -> tuple[Bound, Tree, list[tuple[Any, Any]]]:
        """The call bound so that results are written over parameters, its value, and what is left to copy."""
        emitted, inputs = self.compiled.emitted, self._inputs({})
        if emitted.plan is None or any(on_host(x) for x in operands_of(emitted.result)):
            raise ValueError(f"{self.function.name} has no memory of its own to take its results from")
        pairs, into = self._carried(), dict[int, Any]()
        if self.compiled.runner is None:
            for k, group in enumerate(emitted.plan.groups):
                arena = tuple(pairs[i] for i in group)
                if arena in emitted.plan.arenas and emitted.plan.arenas.index(arena) in emitted.plan.over[k]:
                    flat = lying(_torch(), [inputs[i] for i in arena])
                    into |= {} if flat is None else {k: flat}
            made = bound(emitted, self.compiled.parts.namespace, inputs, None, into)
        else:
            made = ready(self.compiled, inputs)
        results = made.results
        copies: list[tuple[Any, Any]] = []
        for k, group in enumerate(emitted.plan.groups):
            kept = [inputs[pairs[i]] for i in group]
            flat = lying(_torch(), kept)
            if k not in into:
                copies += [(flat, made.flats[k])] if flat is not None else list(zip(kept, (results[i] for i in group)))
        return made, tree_of(emitted.result, results), copies

    def _carried(self) -> dict[int, int]:
        """The input that each result becomes."""
        result = self.function.result
        free, found = list(self.function.params), list[int]()
        for ty in result.items if isinstance(result, TupleOf) else (result,):
            p = next((p for p in free if p.type == ty), None)
            if p is None:
                raise TypeError(f"{self.function.name} has no parameter of type {ty}")
            free.remove(p)
            found += self._numbers(p.name)
        return dict(enumerate(found))

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
        inputs = self.compiled.emitted.inputs
        return self.as_leaves(name, [part(value, name, inputs[k].path) for k in self._numbers(name)])

    def as_leaves(self, name: str, values: list[Any]) -> list[Any]:
        """The leaves of an argument, in order, as generated code takes them."""
        inputs = self.compiled.emitted.inputs
        places, torch = (inputs[k] for k in self._numbers(name)), _torch()
        return [leaf(torch, self.compiled, (name, *i.path), i.operand, x) for i, x in zip(places, values, strict=True)]

    # -------------------------------------------------------------------------------------------------- parameters

    @property
    def params(self) -> dict[str, Tree]:
        """The parameter trees by parameter name, drawn by `M.init`: tensors that are views of one arena per tree
        (`arena`), so that an optimizer can step on that alone."""
        for p in self.function.params:
            if isinstance(p.type, Params) and p.name not in self._trees:
                paths = [i.path for i in self.compiled.emitted.inputs if i.parameter == p.name]
                own = self._own(p.name, self.leaves(p.name, self.example(p.name)))
                self._trees[p.name] = nested(paths, own, self.drawn[p.name])
        return dict(self._trees)

    def arena(self, name: str) -> Any:
        """The flat tensor whose views `params[name]` are."""
        return lying(_torch(), self.leaves(name, self.params[name]))

    def example(self, name: str) -> Tree:
        """The value that `presk run` would synthesize for a parameter, as tensors."""
        from presk_rel.exec.torch.run import at, to_torch

        torch = _torch()
        inputs = [i for i in self.compiled.emitted.inputs if i.parameter == name]
        leaves = [to_torch(torch, self.compiled, at(self.drawn[name], i)) for i in inputs]
        return nested([i.path for i in inputs], leaves, self.drawn[name])

    # ------------------------------------------------------------------------------------------------------- torch

    def to_torch(self) -> Any:
        """An `nn.Module` that owns the parameter trees and takes the other parameters: `module(x, y)`. Its backward
        pass runs presk's own optimized gradient, compiled from the same program, and may be differentiated again.
        TypeError for a function that has no derivative."""
        from presk_rel.api.torch_module import torch_module

        return torch_module(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a handle holds compiled code, which is neither pickled nor copied: compile the entry again")

    # ----------------------------------------------------------------------------------------------------- showing

    @property
    def source(self) -> str:
        """The generated Python; saved to a file, it runs where presk_rel is installed."""
        return self.compiled.emitted.source

    @property
    def status(self) -> Status:
        """The tier of the last call, `emit`, `inductor` or `compile`, and why not what was asked for."""
        return self.compiled.status

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
    tier: Tier = "auto",
) -> Handle:
    """See `api.Program.compile`."""
    from presk_rel.exec.exact.run import check_defined
    from presk_rel.exec.inputs import bind, synthesized
    from presk_rel.exec.torch.run import compile_entry

    session = program.session
    program.session.analysis  # noqa: B018  every error first
    name = session.entry(entry).name
    core = session.optimized(name, dims).program if optimize else session.flat(name)
    found = bind(core, name, {k: _host(v) for k, v in like.items()}, dims)
    check_defined(core, found)
    drawn = synthesized(core, found, seed)
    compiled = compile_entry(core, name, found.env, dtype, device, unroll=unroll, tier=tier, often=True)
    return Handle(
        program, session.entry(name), dict(found.env.dims), dtype, str(compiled.device), compiled, drawn, tier
    )


def _host(value: Any) -> Any:
    if isinstance(value, int | float):
        return np.asarray(value)
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _torch() -> Any:
    return sys.modules["torch"]  # compiled code has imported it, and Dynamo does not trace `import_module`
