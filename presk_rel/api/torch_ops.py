"""Functions of presk as operators of torch, which `torch.compile` takes for one step each (`fullgraph` too).

    presk::value    the results
    presk::both     a scalar and its gradient; its backward scales that
    presk::slopes   the gradient of anything else, from inputs and cotangents

Keys are passed as numbers, hyperparameters as text. What is compiled is what stands around them: inside runs
presk's own code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from itertools import count, islice
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from presk_rel.exec import keys
from presk_rel.exec.torch.nodes import operands_of
from presk_rel.exec.torch.operand import Operand
from presk_rel.exec.torch.parts import on_host

if TYPE_CHECKING:
    from presk_rel.api.torch_module import Level

torch: Any = import_module("torch")
library: Any = import_module("torch.library")

LEVELS: WeakValueDictionary[int, Level] = WeakValueDictionary()
"""The functions by the number that operators know them by."""
_NUMBERS = count()
HALF = 2**63
"""Where the integers of torch end; seeds go twice as far."""


def registered(level: Level) -> int:
    number = next(_NUMBERS)
    LEVELS[number] = level
    return number


def traced(level: Level, inputs: tuple[Any, ...], *, differentiated: bool) -> tuple[Any, ...]:
    """The results of a call that is traced. TypeError where one of them is a key or a hyperparameter."""
    if any(on_host(x) for x in operands_of(level.handle.compiled.emitted.result)):
        raise TypeError("torch.compile takes functions whose results are tensors, not keys or hyperparameters")
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    others = [_text(x) for x in inputs if not isinstance(x, torch.Tensor)]
    seeds = [n for x in inputs if isinstance(x, int | bytes) for n in ((_signed(x),) if isinstance(x, int) else x)]
    operator = torch.ops.presk.both if differentiated else torch.ops.presk.value
    return tuple(operator(level.number, tensors, others, seeds)[: level.results])


def _text(value: Any) -> str:
    """Of a hyperparameter; "s", "l" and "k" stand for a key, whose seed or bytes are passed as numbers, which may be
    others at every call; "l" of a seed from 2⁶³ on."""
    if isinstance(value, int):
        return "l" if value >= HALF else "s"
    return "k" if isinstance(value, bytes) else str(value)


def _signed(seed: int) -> int:
    """As torch's operators can take it. Negative seeds are refused when the operator runs."""
    if seed >= keys.SEED_LIMIT:
        raise ValueError(f"a seed is a natural below 2^64, not {seed}")
    return seed - keys.SEED_LIMIT if seed >= HALF else seed


def _inputs(level: Level, tensors: Sequence[Any], others: Sequence[str], seeds: Sequence[int]) -> tuple[Any, ...]:
    """Tensors and the rest in the order of the function's inputs. Keys are computed from seeds here."""
    numbers = iter(seeds)
    given, rest = iter(tensors), iter([_value(x, numbers) for x in others])
    hosts = (on_host(i.operand) for i in level.handle.compiled.emitted.inputs)
    return tuple(next(rest) if host else next(given) for host in hosts)


def _value(text: str, numbers: Iterator[int]) -> Any:
    match text:
        case "s":
            return keys.master(next(numbers))
        case "l":
            return keys.master(next(numbers) + keys.SEED_LIMIT)
        case "k":
            return bytes(islice(numbers, 32))
        case _:
            return Fraction(text)


def _fresh(found: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    """Results in memory of their own, as operators have to give them."""
    taken = {x.untyped_storage().data_ptr() for x in tensors}
    made: list[Any] = []
    for x in found:
        at = x.untyped_storage().data_ptr()
        made.append(x.clone() if at in taken else x)
        taken.add(at)
    return made


def _value_of(level: int, tensors: Any, others: Any, seeds: Any) -> list[Any]:
    one = LEVELS[level]
    return _fresh(one.value(_inputs(one, tensors, others, seeds)), tensors)


def _both_of(level: int, tensors: Any, others: Any, seeds: Any) -> list[Any]:
    one = LEVELS[level]
    inputs = _inputs(one, tensors, others, seeds)
    return _fresh(one.value_and_kept(inputs) if one.is_scalar else one.value(inputs), tensors)


def _slopes_of(level: int, tensors: Any, cts: Any, others: Any, seeds: Any) -> list[Any]:
    one = LEVELS[level]
    return _fresh(one.slopes(_inputs(one, tensors, others, seeds), tuple(cts), ()), [*tensors, *cts])


def _like_value(level: int, tensors: Any, others: Any, seeds: Any) -> list[Any]:
    return [_like(LEVELS[level], x) for x in operands_of(LEVELS[level].handle.compiled.emitted.result)]


def _like_both(level: int, tensors: Any, others: Any, seeds: Any) -> list[Any]:
    one = LEVELS[level]
    return [
        *_like_value(level, tensors, others, seeds),
        *(_like_slopes(level, tensors, (), others, seeds) if one.is_scalar else ()),
    ]


def _like_slopes(level: int, tensors: Any, cts: Any, others: Any, seeds: Any) -> list[Any]:
    one = LEVELS[level]
    inputs = (i.operand for i in one.handle.compiled.emitted.inputs)
    return [_like(one, x) for x, derived in zip(inputs, one.derived, strict=True) if derived]


def _like(level: Level, x: Operand) -> Any:
    from presk_rel.exec.torch.emit import taken
    from presk_rel.exec.torch.layouts import Array

    compiled = level.handle.compiled
    shape = taken(x, str(compiled.dtype).removeprefix("torch."))
    assert isinstance(shape, Array)
    return torch.empty(shape.sizes, dtype=getattr(torch, shape.dtype), device=compiled.device)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Any]) -> None:
    level, tensors, others, seeds = inputs
    one = LEVELS[level]
    ctx.level, ctx.others, ctx.seeds = level, others, seeds
    ctx.shapes = [x.shape for x, real in zip(output, one.real) if real]
    ctx.save_for_backward(*(output[one.results :] if one.is_scalar else tensors))


def _backward(ctx: Any, cts: Sequence[Any]) -> tuple[Any, ...]:
    one = LEVELS[ctx.level]
    if one.is_scalar:
        found = [s * cts[0] for s in ctx.saved_tensors]
    else:
        places = [k for k, real in enumerate(one.real) if real]
        given = [one.filled(cts[k], s) for k, s in zip(places, ctx.shapes, strict=True)]
        found = torch.ops.presk.slopes(ctx.level, list(ctx.saved_tensors), given, ctx.others, ctx.seeds)
    rest = iter(found)
    hosts = [on_host(i.operand) for i in one.handle.compiled.emitted.inputs]
    derived = [d for d, host in zip(one.derived, hosts, strict=True) if not host]
    none: list[Any] = [
        None if x else [] for x in (ctx.others, ctx.seeds)
    ]  # torch: an empty list is one, another a leaf
    return (None, [next(rest) if d else None for d in derived], *none)


def _register() -> None:
    made: dict[str, tuple[Any, Any]] = {
        "value": (_value_of, _like_value),
        "both": (_both_of, _like_both),
        "slopes": (_slopes_of, _like_slopes),
    }
    tensors = "Tensor[] tensors"
    for name, (run, like) in made.items():
        given = f"int level, {tensors}, {'Tensor[] cts, ' if name == 'slopes' else ''}str[] others, SymInt[] seeds"
        operator = library.custom_op(f"presk::{name}", run, mutates_args=(), schema=f"({given}) -> Tensor[]")
        operator.register_fake(like)
        if name == "both":
            operator.register_autograd(_backward, setup_context=_setup)


_register()
