"""A compiled function as an `nn.Module` whose backward pass is presk's own gradient (`api`, `Handle.to_torch`).

The function and its pullback are one program (`core.pullback`), optimized together, so that a loss and its gradient
share the forward pass and nothing is computed twice.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from presk_rel.api.halves import Halves, halves
from presk_rel.api.trees import tree_of
from presk_rel.core.pullback import with_pullback
from presk_rel.core.verify import verify
from presk_rel.elab.ty import SCALAR_REAL, Idx, Mask, Params, Real
from presk_rel.exec.torch.nodes import operands_of
from presk_rel.exec.torch.parts import on_host
from presk_rel.export.names import MODULE, Names

if TYPE_CHECKING:
    from presk_rel.api.handle import Handle

torch: Any = import_module("torch")
nn: Any = torch.nn
once_differentiable: Any = torch.autograd.function.once_differentiable


def torch_module(handle: Handle) -> Any:
    """See `Handle.to_torch`."""
    from presk_rel.api.program import Program

    session = handle.program.session
    found = with_pullback(session.core, handle.function.name)
    if found is None:
        raise TypeError(f"{handle.function.name} has no derivative: there are no reals in its result or its parameters")
    verify(found.program, "pullback")
    program = Program(session.with_core(found.program))
    shown = [p.name for p in handle.function.params if isinstance(p.type, Real | Idx | Mask)]
    like = {n: handle.example(n) for n in shown} if handle.compiled.emitted.env.prefixes else {}
    pull = program.compile(found.name, handle.dims, like=like, dtype=handle.dtype, device=handle.device)
    return PreskModule(handle, pull, found.parameters)


class Tree(nn.Module):
    """A parameter tree: every field a parameter, or a tree; a name that `nn.Module` has already gets a `_`."""

    def __init__(self, values: dict[str, Any]) -> None:
        nn.Module.__init__(self)
        names = Names(set(MODULE))
        self.fields: dict[str, str] = {}
        for name, value in values.items():
            attribute = self.fields[name] = names.new(name)
            if isinstance(value, dict):
                self.add_module(attribute, Tree(cast("dict[str, Any]", value)))
            else:
                self.register_parameter(attribute, nn.Parameter(value.detach().clone()))

    def tree(self) -> dict[str, Any]:
        """The tensors by field, as presk takes them."""
        parts = {name: getattr(self, attribute) for name, attribute in self.fields.items()}
        return {n: v.tree() if isinstance(v, Tree) else v for n, v in parts.items()}


class PreskModule(nn.Module):
    """`module(x, y)`: the function at its own parameters."""

    def __init__(self, handle: Handle, pull: Handle, derived: tuple[str, ...]) -> None:
        nn.Module.__init__(self)
        self.handle, self.pull, self.derived = handle, pull, derived
        self.halves = None if handle.function.result == SCALAR_REAL else _halves(handle, pull)
        self.slopes = sum(1 for i in handle.compiled.emitted.inputs if i.parameter in derived and _is_real(i))
        names = Names(set(MODULE) | {"handle", "pull", "derived", "trees", "halves", "slopes"})
        self.trees: dict[str, str] = {}
        for p in handle.function.params:
            if isinstance(p.type, Params):
                self.trees[p.name] = names.new(p.name)
                self.add_module(self.trees[p.name], Tree(handle.params[p.name]))

    def forward(self, *args: Any, **named: Any) -> Any:
        """The function's value; the parameters that are no trees are given by position or name."""
        rest = [p.name for p in self.handle.function.params if p.name not in self.trees]
        given = {**dict(zip(rest, args)), **named}
        given.update({name: getattr(self, attribute).tree() for name, attribute in self.trees.items()})
        inputs: list[Any] = []
        for p in self.handle.function.params:
            if p.name not in given:
                raise TypeError(f"{self.handle.function.name}: the argument `{p.name}` is missing")
            inputs += self.handle.leaves(p.name, given[p.name])
        returned: Any = Call.apply(self, *inputs)
        leaves = cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else (returned,)
        return tree_of(self.handle.compiled.emitted.result, leaves)


def _halves(handle: Handle, pull: Handle) -> Halves:
    emitted = pull.compiled.emitted
    cotangents = [i.operand.name for i in emitted.inputs[len(handle.compiled.emitted.inputs) :]]
    results = sum(1 for x in operands_of(handle.compiled.emitted.result) if not on_host(x))
    return halves(emitted.source, pull.compiled.parts.namespace, cotangents, results)


class Call(torch.autograd.Function):
    """One call, with presk's pullback as its backward pass.

    Of a scalar the gradient is computed with the value, and scaled by what comes back. Of anything else the value keeps
    what the pullback needs, which then runs on the cotangents: zeros for those of results that nothing was made of."""

    @staticmethod
    def forward(ctx: Any, module: PreskModule, *inputs: Any) -> Any:
        ctx.module = module
        compiled = module.handle.compiled
        if not any(ctx.needs_input_grad):
            return compiled.generated(inputs)
        if module.halves is None:
            one = torch.ones((), dtype=compiled.dtype, device=compiled.device)
            value, *slopes = module.pull.compiled.generated((*inputs, one))
            ctx.save_for_backward(*slopes)
            return value
        found = _forward(ctx, module, module.halves, inputs)
        tensors = [x for x in found if isinstance(x, torch.Tensor)]
        ctx.mark_non_differentiable(*(x for x in tensors if not x.is_floating_point()))
        ctx.real = [(k, x.shape) for k, x in enumerate(found) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cts: Any) -> Any:
        module: PreskModule = ctx.module
        compiled = module.handle.compiled
        if module.halves is None:
            slopes = [s * cts[0] for s in ctx.saved_tensors]
        else:
            options = {"dtype": compiled.dtype, "device": compiled.device}
            given = [torch.zeros(s, **options) if cts[k] is None else cts[k] for k, s in ctx.real]
            saved = iter(ctx.saved_tensors)
            slopes = module.halves.backward(tuple(next(saved) if x is None else x for x in ctx.kept), given)
        found = iter(slopes)
        derived = [i.parameter in module.derived and _is_real(i) for i in compiled.emitted.inputs]
        return (None, *(next(found) if d else None for d in derived))


def _forward(ctx: Any, module: PreskModule, both: Halves, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results; what the other half needs is kept in `ctx`, tensors by autograd's own means."""
    places = module.pull.compiled.emitted.inputs[len(inputs) :]

    def run(*given: Any) -> tuple[Any, ...]:
        found, kept = both.forward(*given)
        ctx.save_for_backward(*(x for x in kept if isinstance(x, torch.Tensor)))
        ctx.kept = [None if isinstance(x, torch.Tensor) else x for x in kept]
        return (*found, *(None for _ in range(module.slopes)))

    whole = module.pull.compiled.parts.entry((*inputs, *(None for _ in places)), run)
    return whole[: len(list(operands_of(module.handle.compiled.emitted.result)))]


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf.operand.type, Real)
