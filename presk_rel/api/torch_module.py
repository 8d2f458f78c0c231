"""A compiled function as an `nn.Module` whose backward pass is presk's own gradient (`api`, `Handle.to_torch`).

The function and its pullback are one program (`core.pullback`), optimized together, so that a loss and its gradient
share the forward pass and nothing is computed twice. The pullback is a function as well: its own pullback, compiled
when something asks for it, is the second derivative, and so on.

    Call    the function of its inputs; its backward is
    Back    the slopes of its inputs and cotangents; its backward, and what either has of forward mode, is `Back` of the
            pullback

Both say what autograd, `torch.func` and `torch.vmap` ask: nothing is kept but what is returned and saved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

from presk_rel.api.halves import Halves, halves
from presk_rel.api.leaves import transformed
from presk_rel.api.torch_ops import registered, traced
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

_DTYPES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16"}


def torch_module(handle: Handle) -> Any:
    """See `Handle.to_torch`."""
    return PreskModule(Level(handle))


class Level:
    """A compiled function of `inputs` leaves and `results` leaves, and its pullback. Copies of a module share it."""

    def __init__(self, handle: Handle) -> None:
        session = handle.program.session
        found = with_pullback(session.core, handle.function.name)
        if found is None:
            name = handle.function.name
            raise TypeError(f"{name} has no derivative: there are no reals in its result or its parameters")
        self.handle, self.found, self.number = handle, found, registered(self)
        self.is_scalar = handle.function.result == SCALAR_REAL
        emitted = handle.compiled.emitted
        self.result = emitted.result
        self.inputs, self.results = len(emitted.inputs), len(list(operands_of(emitted.result)))
        self.derived = [i.parameter in found.parameters and isinstance(i.operand.type, Real) for i in emitted.inputs]
        self.real = [isinstance(x.type, Real) for x in operands_of(emitted.result)]

    @cached_property
    def pull(self) -> Handle:
        """The function with its pullback, compiled as the function is."""
        from presk_rel.api.program import Program

        handle = self.handle
        verify(self.found.program, "pullback")
        program = Program(handle.program.session.with_core(self.found.program))
        shown = [p.name for p in handle.function.params if isinstance(p.type, Real | Idx | Mask)]
        like = {n: handle.example(n) for n in shown} if handle.compiled.emitted.env.prefixes else {}
        options: dict[str, Any] = {"dtype": handle.dtype, "device": handle.device, "tier": handle.tier}
        return program.compile(self.found.name, handle.dims, like=like, **options)

    @cached_property
    def halves(self) -> Halves | None:
        """The pullback in two; None for a scalar, whose gradient is computed with the value."""
        if self.is_scalar:
            return None
        emitted = self.pull.compiled.emitted
        cotangents = [i.operand.name for i in emitted.inputs[self.inputs :]]
        results = sum(1 for x in operands_of(self.handle.compiled.emitted.result) if not on_host(x))
        return halves(emitted.source, self.pull.compiled.parts.namespace, cotangents, results)

    @cached_property
    def above(self) -> Level:
        """The pullback as a function of inputs and cotangents. TypeError where it has no derivative."""
        return Level(self.pull)

    def value(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.handle.compiled.called(inputs)

    def value_and_kept(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results, and after them what `slopes` needs."""
        both = self.halves
        if both is None:
            compiled = self.handle.compiled
            one = torch.ones((), dtype=compiled.dtype, device=compiled.device)
            return self.pull.compiled.called((*inputs, one))
        kept: list[Any] = []

        def run(*given: Any) -> tuple[Any, ...]:
            found, after = both.forward(*given)
            kept.extend(after)
            return (*found, *(None for _ in range(sum(self.derived))))

        nothing = (None for _ in self.pull.compiled.emitted.inputs[self.inputs :])
        whole = self.pull.compiled.parts.entry((*inputs, *nothing), run)
        return (*whole[: self.results], *kept)

    def slopes(self, inputs: tuple[Any, ...], cts: tuple[Any, ...], kept: tuple[Any, ...]) -> tuple[Any, ...]:
        """One for each real input that has a derivative."""
        if not kept:
            return self.pull.compiled.called((*inputs, *cts))[self.results :]
        if self.halves is None:
            return tuple(s * cts[0] for s in kept) if transformed(torch) else tuple(torch._foreach_mul(kept, cts[0]))
        return tuple(self.halves.backward(kept, cts))

    def zeros(self, shape: Any) -> Any:
        compiled = self.handle.compiled
        return torch.zeros(shape, dtype=compiled.dtype, device=compiled.device)

    def filled(self, ct: Any, shape: Any) -> Any:
        """A cotangent: zeros for that of a result that nothing was made of."""
        return self.zeros(shape) if ct is None else ct

    def __deepcopy__(self, memo: Any) -> Level:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a module of presk holds compiled code, which cannot be pickled: save `module.state_dict()`, "
            "and load it into a new `handle.to_torch()`"
        )


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

    def extra_repr(self) -> str:
        return "\n".join(f"({n}): {tuple(p.shape)}" for n, p in self.named_parameters(recurse=False))


class PreskModule(nn.Module):
    """`module(x, y)`: the function at its own parameters. Moved to another dtype or device (`module.double()`), it is
    compiled for that at the next call."""

    def __init__(self, level: Level) -> None:
        nn.Module.__init__(self)
        self.levels = {_place(level.handle): level}
        self.level = level
        names = Names(set(MODULE) | {"handle", "level", "levels", "trees", "places"})
        self.trees: dict[str, str] = {}
        for p in level.handle.function.params:
            if isinstance(p.type, Params):
                self.trees[p.name] = names.new(p.name)
                self.add_module(self.trees[p.name], Tree(level.handle.params[p.name]))
        inputs = level.handle.compiled.emitted.inputs
        self.places = {n: [self._place(a, i.path) for i in inputs if i.parameter == n] for n, a in self.trees.items()}

    def _place(self, attribute: str, path: tuple[str, ...]) -> tuple[Any, str]:
        """The module that has a leaf of a tree, and under which name."""
        module = getattr(self, attribute)
        for name in path[:-1]:
            module = getattr(module, module.fields[name])
        return module, module.fields[path[-1]]

    @property
    def handle(self) -> Handle:
        """What runs."""
        return self.level.handle

    def forward(self, *args: Any, **named: Any) -> Any:
        """The function's value; the parameters that are no trees are given by position or name."""
        handle = self.handle
        rest = [p.name for p in handle.function.params if p.name not in self.trees]
        if len(args) > len(rest):
            raise TypeError(f"{handle.function.name} takes {len(rest)} arguments besides its trees, not {len(args)}")
        given = {**dict(zip(rest, args)), **named}
        inputs: list[Any] = []
        for p in handle.function.params:
            if p.name in self.trees:
                inputs += handle.as_leaves(p.name, [getattr(m, name) for m, name in self.places[p.name]])
            elif p.name in given:
                inputs += handle.leaves(p.name, given[p.name])
            else:
                raise TypeError(f"{handle.function.name}: the argument `{p.name}` is missing")
        return tree_of(handle.compiled.emitted.result, _called(self.level, tuple(inputs)))

    def extra_repr(self) -> str:
        return self.handle.signature

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Whatever moves parameters (`to`, `double`, `cuda`)."""
        first = next(self.parameters(), None)
        if first is None:
            return nn.Module._apply(self, fn, recurse)
        with torch.no_grad():
            dtype = str(fn(first.detach().new_empty(0)).dtype).removeprefix("torch.")  # before anything is moved
        if dtype not in _DTYPES:
            raise TypeError(f"presk runs in float64, float32 and bfloat16, not in {dtype}")
        moved = nn.Module._apply(self, fn, recurse)
        self._moved(_DTYPES[dtype], str(next(self.parameters()).device))
        return moved

    def _moved(self, dtype: str, device: str) -> None:
        if (dtype, device) not in self.levels:
            handle = self.handle
            shown = [p.name for p in handle.function.params if isinstance(p.type, Real | Idx | Mask)]
            like = {n: handle.example(n) for n in shown} if handle.compiled.emitted.env.prefixes else {}
            options: dict[str, Any] = {"dtype": dtype, "device": device, "tier": handle.tier}
            other = handle.program.compile(handle.function.name, handle.dims, like=like, **options)
            self.levels[dtype, device] = Level(other)
        self.level = self.levels[dtype, device]


def _place(handle: Handle) -> tuple[str, str]:
    return handle.dtype, str(handle.compiled.device)


def _called(level: Level, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results; through autograd where something may be differentiated."""
    differentiated = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
    if torch.compiler.is_compiling():
        return traced(level, inputs, differentiated=differentiated)
    if not differentiated:
        return level.value(inputs)
    return (Transformed if transformed(torch) else Call).apply(level, *inputs)[: level.results]


def _returned(level: Level, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results and what is kept: inputs and results by their numbers among these."""
    whole = level.value_and_kept(inputs)
    found = tuple(x.view_as(x) if any(x is y for y in inputs) else x for x in whole[: level.results])
    known = {id(x): _Known(k) for k, x in enumerate((*inputs, *whole[: level.results]))}
    return (*found, *(known.get(id(x), x) for x in whole[level.results :]))


def _keep(ctx: Any, level: Level, given: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    found, rest = output[: level.results], output[level.results :]
    kept = [(*given, *found)[x.number] if isinstance(x, _Known) else x for x in rest]
    open_ends = {id(x) for x, real in zip(found, level.real, strict=True) if real}
    ctx.mark_non_differentiable(*(x for x in output if isinstance(x, torch.Tensor) and id(x) not in open_ends))
    ctx.level, ctx.shapes = level, [x.shape for x, real in zip(found, level.real, strict=True) if real]
    ctx.count = len(output)
    _save(ctx, (*given, *kept))


class Call(torch.autograd.Function):
    """One call: the results, and what its backward pass keeps."""

    @staticmethod
    def forward(ctx: Any, level: Level, *inputs: Any) -> tuple[Any, ...]:
        output = _returned(level, inputs)
        _keep(ctx, level, inputs, output)
        return output

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        level: Level = ctx.level
        found = iter(_pushed(level, _saved(ctx)[: level.inputs], tangents[1:]))
        real = (next(found) if r else None for r in level.real)
        return (*real, *(None for _ in range(ctx.count - level.results)))

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        level, saved = ctx.level, _saved(ctx)
        places = [k for k, real in enumerate(level.real) if real]
        given = tuple(level.filled(cts[k], s) for k, s in zip(places, ctx.shapes, strict=True))
        found = _slopes(level, saved[: level.inputs], given, saved[level.inputs :])
        return (None, *_spread(found, level.derived))


class Transformed(torch.autograd.Function):
    """`Call` in the form that `torch.func` and `torch.vmap` ask for, which takes 60 µs more."""

    generate_vmap_rule = True

    @staticmethod
    def forward(level: Level, *inputs: Any) -> tuple[Any, ...]:
        return _returned(level, inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        _keep(ctx, inputs[0], inputs[1:], output)

    jvp = Call.jvp
    backward = Call.backward


class Back(torch.autograd.Function):
    """The slopes of a level, as a function of its inputs and cotangents; `kept` only saves work."""

    generate_vmap_rule = True

    @staticmethod
    def forward(level: Level, cotangents: int, *given: Any) -> tuple[Any, ...]:
        middle = level.inputs + cotangents
        return level.slopes(given[: level.inputs], given[level.inputs : middle], given[middle:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        level, cotangents, *given = inputs
        ctx.level, ctx.rest = level, len(given) - level.inputs - cotangents
        ctx.shapes = [x.shape for x in output]
        _save(ctx, tuple(given[: level.inputs + cotangents]))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        given = _saved(ctx)
        found = _pushed(ctx.level.above, given, tangents[2 : 2 + len(given)])
        return tuple(found[len(found) - len(ctx.shapes) :])

    @staticmethod
    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        above: Level = ctx.level.above
        given = _saved(ctx)
        values = [above.zeros(given[k].shape) for k in range(ctx.level.inputs, len(given))]  # a cotangent's own shape
        slopes = (above.filled(ct, s) for ct, s in zip(cts, ctx.shapes, strict=True))
        found = _slopes(above, given, (*values, *slopes), ())
        return (None, None, *_spread(found, above.derived), *(None for _ in range(ctx.rest)))


@dataclass(frozen=True, slots=True)
class _Known:
    """Something kept that is an input or a result, by its number among these."""

    number: int


def _slopes(level: Level, inputs: Any, cts: Any, kept: Any) -> tuple[Any, ...]:
    """As a step that can be differentiated again, where autograd asks for it."""
    if not torch.is_grad_enabled():
        return level.slopes(tuple(inputs), tuple(cts), tuple(kept))
    return Back.apply(level, len(cts), *inputs, *cts, *kept)


def _pushed(level: Level, inputs: Any, tangents: Any) -> tuple[Any, ...]:
    """The change of each real result as the inputs change: slopes are linear in the cotangents, so that the slope of
    slopes · change in these is it."""
    shapes = [i.operand.sizes for i in level.handle.compiled.emitted.inputs]
    changes = [level.filled(t, s) for t, s, d in zip(tangents, shapes, level.derived, strict=True) if d]
    cts = [level.zeros(x.sizes) for x, r in zip(operands_of(level.result), level.real, strict=True) if r]
    found = _slopes(level.above, (*inputs, *cts), (*cts, *changes), ())
    return found[len(changes) :]


def _spread(found: Any, derived: list[bool]) -> tuple[Any, ...]:
    rest = iter(found)
    return tuple(next(rest) if d else None for d in derived)


def _save(ctx: Any, values: tuple[Any, ...]) -> None:
    """Tensors by autograd's own means, the rest (keys, hyperparameters, lists of a loop) as it is."""
    ctx.others = [None if isinstance(x, torch.Tensor) else (x,) for x in values]
    tensors = [x for x in values if isinstance(x, torch.Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def _saved(ctx: Any) -> tuple[Any, ...]:
    tensors = iter(ctx.saved_tensors)
    return tuple(next(tensors) if x is None else x[0] for x in ctx.others)
