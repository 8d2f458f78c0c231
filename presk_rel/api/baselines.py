"""The exported PyTorch of an entry as something to call: what `bench` compares with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.elab.ty import Applied, Instance, Params, map_instance
from presk_rel.smt.linear import constant

if TYPE_CHECKING:
    from presk_rel.api.handle import Handle
    from presk_rel.api.program import Program
    from presk_rel.core.ir import Param
    from presk_rel.export.torch_file import Exported

_ON_META = re.compile(r"on_meta\(lambda: (\w+)\([^()]*\)\)")


@dataclass(slots=True)
class Setting:
    """The exported file at a handle's inputs: modules at its dims, and its values, trees as state dicts."""

    exported: Exported
    handle: Handle
    namespace: dict[str, Any]
    owners: dict[str, Any] = field(default_factory=dict[str, Any])
    states: dict[int, Any] = field(default_factory=dict[int, Any])
    """The parameters of a module that owns them, by the module's id."""

    @property
    def owner(self) -> Instance | None:
        """The module whose function it is."""
        name = self.handle.function.name
        found = self.exported.context.by_name.get(name)
        if found is None or found.theta is None or name not in self.exported.context.nodes:
            return None
        return found.theta.instance

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the Python function: those of a module's own are the module's."""
        return self.handle.function.params[self.owner is not None :]

    @property
    def function(self) -> Any:
        owner, context = self.owner, self.exported.context
        if owner is not None:
            module, tree = self.module(owner), self.handle.example(self.handle.function.params[0].name)
            module.load_state_dict(self.exported.state(self.closed(owner), tree))
            method = context.method(context.by_name[self.handle.function.name])
            return module if method == "forward" else getattr(module, method)
        name = context.functions.get(self.handle.function.name)
        if name is None:
            text = f"`{self.handle.function.name}` is no function of the exported file that can be timed alone"
            raise PreskError([Diagnostic("E9001", text, None)], exit_status=3)
        return self.namespace[name]

    @property
    def keywords(self) -> dict[str, int]:
        """The dims that the function takes by name."""
        name = self.handle.function.name
        return {text: self.handle.dims[dim] for dim, text in self.exported.keywords(name).items()}

    def closed(self, instance: Instance) -> Instance:
        values = {d: constant(n) for d, n in self.handle.dims.items()}
        return map_instance(instance, lambda d: d.substitute(values))

    def module(self, instance: Instance) -> Any:
        """A module of the file at the handle's dims, in its dtype and on its device."""
        text = self.exported.constructor(self.closed(instance))
        compiled = self.handle.compiled
        return eval(text, self.namespace).to(dtype=compiled.dtype, device=compiled.device)

    def values(self) -> list[Any]:
        """The arguments that are no modules."""
        found: list[Any] = []
        for p in self.params:
            value = self.handle.example(p.name)
            if isinstance(p.type, Params):
                value = self.exported.state(self.closed(p.type.instance), value)
            found.append(value)
        return found

    def owned(self) -> list[Any]:
        """As `values`, every state dict being the parameters of a module, which `owners` has by class. Where the file
        makes such a module inside a function, it takes this one."""
        found = self.values()
        for k, p in enumerate(self.params):
            if isinstance(p.type, Params) and isinstance(p.type.instance, Applied):
                module = self.module(p.type.instance)
                module.load_state_dict(found[k])
                self.owners[type(module).__name__] = module
                self.namespace[f"_owner_{type(module).__name__}"] = module
                found[k] = self.states[id(module)] = dict(module.named_parameters())
        return found

    def functional(self) -> list[Any]:
        """As `values`, with the modules of `owned` only as what is called, not what owns the parameters."""
        self.owned()
        return self.values()

    def arguments(self, values: list[Any]) -> list[Any]:
        """All arguments in the order of the Python function."""
        rest = iter(values)
        out: list[Any] = []
        for instance in self.exported.parameters(self.handle.function.name):
            if instance is None:
                out.append(next(rest))
                continue
            made = self.module(instance)
            out.append(self.owners.get(type(made).__name__, made))
        return out


def eager(program: Program, handle: Handle) -> Callable[[], Any]:
    """What a PyTorch user writes: modules that own their parameters, `.backward()` for `grad`."""
    torch: Any = import_module("torch")
    exported = program.session.exported()
    source = exported.source.replace("torch.func.functional_call(", "_call(").replace("torch.func.grad(", "_grad(")
    setting = Setting(exported, handle, _loaded(source))
    values = setting.owned()
    states = setting.states

    def call(net: Any, state: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        if state is states.get(id(net)):
            return net(*args, **(kwargs or {}))
        return torch.func.functional_call(net, state, args, kwargs)

    setting.namespace.update(_call=call, _grad=_backward())
    function, arguments, keywords = setting.function, setting.arguments(values), setting.keywords
    differentiates = "_grad(" in source

    def run() -> Any:
        with torch.set_grad_enabled(differentiates):
            return function(*arguments, **keywords)

    return run


def compiled(program: Program, handle: Handle, mode: str | None = None) -> Callable[[], Any]:
    """`torch.compile(fullgraph=True)` of the exported function as it is, in one of its modes."""
    torch: Any = import_module("torch")
    exported = program.session.exported()
    setting = Setting(exported, handle, _loaded(exported.source))
    function, keywords = torch.compile(setting.function, fullgraph=True, mode=mode), setting.keywords
    arguments = setting.arguments(setting.functional())
    return lambda: function(*arguments, **keywords)


def jitted(program: Program, handle: Handle) -> Callable[[], Any]:
    """`jax.jit` of the exported function, as torch traces it (`api.jax_baseline`)."""
    from presk_rel.api.jax_baseline import jitted

    exported = program.session.exported()
    return jitted(Setting(exported, handle, _loaded(exported.source)))


def _loaded(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "exported"}
    source = _ON_META.sub(r"_owner_\1", source)
    exec(compile(source, "<exported>", "exec"), namespace)
    return namespace


def _backward() -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """The gradient of a function by `.backward()`; inside another derivative by `torch.func.grad`, which can be
    differentiated."""
    torch: Any = import_module("torch")
    under_way: list[Any] = []

    def of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def gradient(tree: Any) -> Any:
            if under_way or any(torch._C._functorch.is_functorch_wrapped_tensor(x) for x in _leaves(tree)):
                return torch.func.grad(f)(tree)
            for x in _leaves(tree):
                x.requires_grad_().grad = None
            under_way.append(f)
            try:
                f(tree).backward()
            finally:
                under_way.pop()
            return _grads(tree)

        return gradient

    return of


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [x for v in cast("dict[str, Any]", tree).values() for x in _leaves(v)]
    return [x for v in cast("tuple[Any, ...]", tree) for x in _leaves(v)] if isinstance(tree, tuple) else [tree]


def _grads(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _grads(v) for k, v in cast("dict[str, Any]", tree).items()}
    return tuple(_grads(v) for v in cast("tuple[Any, ...]", tree)) if isinstance(tree, tuple) else tree.grad
