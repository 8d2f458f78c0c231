"""A compiled function as an `nn.Module` whose backward pass is presk's own gradient (`api`, `Handle.to_torch`).

The function and its pullback are one program (`core.pullback`), optimized together, so that a loss and its gradient
share the forward pass: of a scalar the gradient is computed with the value and scaled by what comes back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from presk_rel.api.trees import tree_of
from presk_rel.core.pullback import with_pullback
from presk_rel.core.verify import verify
from presk_rel.elab.ty import SCALAR_REAL, Idx, Mask, Params, Real
from presk_rel.export.names import MODULE, Names

if TYPE_CHECKING:
    from presk_rel.api.handle import Handle

torch: Any = import_module("torch")
nn: Any = torch.nn


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
    pull = program.compile(found.name, handle.dims, like=like, dtype=handle.dtype, device=handle.device)  # type: ignore[arg-type]
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
        names = Names(set(MODULE) | {"handle", "pull", "derived", "trees"})
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


class Call(torch.autograd.Function):
    """One call, with presk's pullback as its backward pass."""

    @staticmethod
    def forward(ctx: Any, module: PreskModule, *inputs: Any) -> Any:
        ctx.module = module
        ctx.others = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        tensors = [x if isinstance(x, torch.Tensor) else torch.empty(0) for x in inputs]
        if module.handle.function.result != SCALAR_REAL:
            ctx.save_for_backward(*tensors)
            return module.handle.compiled.generated(inputs)
        one = torch.ones((), dtype=module.handle.compiled.dtype, device=module.handle.compiled.device)
        value, *slopes = module.pull.compiled.generated((*inputs, one))
        ctx.save_for_backward(*slopes)
        return value

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> Any:
        module: PreskModule = ctx.module
        if module.handle.function.result == SCALAR_REAL:
            slopes = [s * cts[0] for s in ctx.saved_tensors]
        else:
            inputs = [x if o is None else o for x, o in zip(ctx.saved_tensors, ctx.others, strict=True)]
            results = len(cts)
            real = [c for c in cts if c is not None]
            slopes = list(module.pull.compiled.generated((*inputs, *real))[results:])
        found = iter(slopes)
        derived = [i.parameter in module.derived and _is_real(i) for i in module.handle.compiled.emitted.inputs]
        return (None, *(next(found) if d else None for d in derived))


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf.operand.type, Real)
