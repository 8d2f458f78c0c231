"""Dimensions at run time: from symbols to numbers, and from static types to shapes (spec: "Dimensions are runtime
values").

An `Env` is the environment of one function activation: its dims, and for each prefix of its types (`...`, or a
`{S : Shape}` parameter) the axes it stands for. Alignment of operands never reads run-time lengths: it is decided on
the static shapes (`elab.broadcast`), and the environment only says how many axes a prefix has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import NoReturn

from presk_rel.core.ir import Function, Program
from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError, Span
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import (
    Applied,
    Composed,
    Idx,
    Instance,
    Mask,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
    map_dims,
)
from presk_rel.exec.values import IndexTensor, MaskTensor, RunAxes, Tensor, TupleValue, Value, shape_of
from presk_rel.smt.linear import Linear, constant

MAX_LENGTH = 2**62
MAX_AXES = 60
"""numpy's arrays have at most 64, and rows put some beside an operand's own."""
MAX_ENTRIES = 2**57
"""Of one tensor, lengths of 0 counted as 1: beyond this numpy has no array, not even one without memory."""


@dataclass(frozen=True, slots=True)
class Env:
    dims: Mapping[str, int]
    prefixes: Mapping[str, RunAxes]

    def rank(self, shape: Shape) -> int:
        """The number of axes the shape's prefix stands for and of those before it; 0 when it has none."""
        return 0 if shape.prefix is None else len(shape.front) + len(self.prefixes.get(shape.prefix, ()))


def fail(code: str, message: str, span: Span | None, *, help: str | None = None, exit_status: int = 1) -> NoReturn:
    raise PreskError([Diagnostic(code, message, span, help=help)], exit_status)


def length(form: Linear, env: Env, where: str, span: Span | None = None) -> int:
    """The natural number a dimension denotes. E7016 for an unbound symbol, E7017 for a value that is no natural."""
    missing = sorted(form.symbols - set(env.dims))
    if missing:
        name = missing[0]
        fail("E7016", f"dimension `{name}` has no value in {where}", span, help=f"bind it with --dim {name}=N")
    value = form.evaluate(env.dims)
    if value.denominator != 1 or value < 0 or value > MAX_LENGTH:
        at = ", ".join(f"{s} = {env.dims[s]}" for s in sorted(form.symbols))
        what = "no natural number" if value.denominator != 1 or value < 0 else "beyond 2^62"
        fail("E7017", f"the dimension {form} is {value} for {at or 'every value'} in {where}: {what}", span)
    return value.numerator


def int_of(form: Linear, env: Env, where: str, span: Span | None = None) -> int:
    """The integer a form denotes; it may be negative. E7016, E7017 as `length`."""
    known = form.symbols <= set(env.dims)
    value = form.evaluate(env.dims) if known else None
    if value is not None and value < 0 and value.denominator == 1:
        return int(value)
    return length(form, env, where, span)


def axes(shape: Shape, env: Env, where: str, span: Span | None = None) -> RunAxes:
    """The run-time axes of a static shape."""
    lead = env.prefixes.get(shape.prefix, ()) if shape.prefix is not None else ()
    front, rest = ([(a.name, length(a.length, env, where, span)) for a in x] for x in (shape.front, shape.axes))
    run = (*front, *lead, *rest)
    if len(run) > MAX_AXES:
        fail(
            "E7006", f"a tensor of {len(run)} axes, in {where}: executors hold at most {MAX_AXES}", span, exit_status=3
        )
    if prod(max(n, 1) for _, n in run) > MAX_ENTRIES:
        sizes = " · ".join(f"{n:,}" for _, n in run)
        fail("E7006", f"a tensor of {sizes} entries, in {where}, is beyond 2^57", span, exit_status=3)
    return run


def close(ty: Type, env: Env, where: str) -> Type:
    """The type with every dimension evaluated; prefixes stay."""
    return map_dims(ty, lambda d: constant(length(d, env, where)))


def close_instance(instance: Instance, env: Env, where: str) -> Instance:
    match instance:
        case Applied(module, args):
            return Applied(module, tuple(constant(length(a, env, where)) for a in args))
        case Stacked(n, inner):
            return Stacked(constant(length(n, env, where)), close_instance(inner, env, where))
        case Composed(outer, inner):
            return Composed(close_instance(outer, env, where), close_instance(inner, env, where))


def shapes_of(ty: Type) -> Iterable[Shape]:
    """The shapes written in a type, through tuples."""
    match ty:
        case Real(shape) | Mask(shape) | Idx(_, shape):
            yield shape
        case TupleOf(items):
            for item in items:
                yield from shapes_of(item)
        case _:
            return


def bind_prefixes(
    types: Iterable[Type], values: Iterable[Value], where: str, *, typed: bool = True
) -> dict[str, RunAxes]:
    """What each prefix of a function's parameter types stands for, from the arguments: the axes in front of those the
    type names. The first argument that shows a prefix gives its names. Two arguments that disagree are E7015, or, when
    the call was `typed`, a bug."""
    found: dict[str, RunAxes] = {}
    pending = list(zip(types, values, strict=True))
    while pending:
        ty, value = pending.pop(0)
        match ty, value:
            case ((Real(shape) | Mask(shape) | Idx(_, shape)), (Tensor() | IndexTensor() | MaskTensor())):
                _bind_prefix(shape, value.axes, found, where, typed)
            case TupleOf(items), TupleValue(parts) if len(items) == len(parts):
                pending += zip(items, parts, strict=True)
            case _:
                continue
    return found


def _bind_prefix(shape: Shape, run: RunAxes, found: dict[str, RunAxes], where: str, typed: bool) -> None:
    if shape.prefix is None:
        return
    lead = run[len(shape.front) : len(run) - len(shape.axes)]
    known = found.setdefault(shape.prefix, lead)
    if shape_of(known) == shape_of(lead):
        return
    message = f"`{shape.prefix}` stands for {list(shape_of(known))} and for {list(shape_of(lead))} in `{where}`"
    if typed:
        raise PreskBug("exec", message)
    fail("E7015", message, None)


def alignment(small: Shape, large: Shape, where: str) -> tuple[int, ...]:
    """`elab.broadcast.align` of two shapes that the type checker has aligned. Equal forms decide; where the checker
    used a fact beyond them, names and positions do."""
    found = align(small, large, lambda a, b: a == b)
    if found is None:
        found = align(small, large, lambda _a, _b: True)
    if found is None:
        raise PreskBug("exec", f"[{small}] does not broadcast into [{large}] in {where}")
    return found


def axis_index(shape: Shape, name: str, where: str) -> int:
    """The position of a named axis among `shape.axes`."""
    for i, a in enumerate(shape.axes):
        if a.name == name:
            return i
    raise PreskBug("exec", f"no axis {name} in [{shape}] in {where}")


def function(program: Program, name: str) -> Function:
    found = program.functions.get(name)
    if found is None:
        raise PreskBug("exec", f"no function {name}")
    return found


# ---------------------------------------------------------------------------------------------- dims of an entry


@dataclass(frozen=True, slots=True)
class Fact:
    """`form` is known to be `value`; `source` says why, in the user's words."""

    form: Linear
    value: int
    source: str


def solve(facts: list[Fact], given: Mapping[str, int]) -> dict[str, int]:
    """The dims that the facts determine, starting from `given` (`--dim`). E7015 when they contradict each other."""
    dims = dict(given)
    sources = {name: f"--dim {name}={n}" for name, n in given.items()}
    pending = list(facts)
    while True:
        ready = next((f for f in pending if len(f.form.symbols - set(dims)) <= 1), None)
        if ready is None:
            return dims
        pending.remove(ready)
        _use(ready, dims, sources)


def _use(fact: Fact, dims: dict[str, int], sources: dict[str, str]) -> None:
    unknown = sorted(fact.form.symbols - set(dims))
    known = fact.form.substitute({s: constant(n) for s, n in dims.items()})
    if not unknown:
        if known.const != fact.value:
            _contradiction(fact, sources, f"it is {known.const}")
        return
    name = unknown[0]
    solution = (fact.value - known.const) / known.coefficient(name)
    if solution.denominator != 1 or solution < 0:
        _contradiction(fact, sources, f"no natural {name} makes it so")
    dims[name] = solution.numerator
    sources[name] = fact.source


def _contradiction(fact: Fact, sources: dict[str, str], why: str) -> NoReturn:
    because = "; ".join(f"`{s}` comes from {sources[s]}" for s in sorted(fact.form.symbols) if s in sources)
    fail("E7015", f"{fact.source} makes {fact.form} = {fact.value}, but {why}", None, help=because or None)


def facts_of(ty: Type, value: Value, source: str) -> list[Fact]:
    """What an argument's shape says about the dims of its parameter's type. Shapes must already have the right rank."""
    match ty, value:
        case ((Real(shape) | Mask(shape) | Idx(_, shape)), (Tensor() | IndexTensor() | MaskTensor())):
            run = value.axes[len(value.axes) - len(shape.axes) :]
            after = [
                Fact(a.length, n, f"axis {i} of {source}")
                for i, (a, (_, n)) in enumerate(zip(shape.axes, run, strict=True))
            ]
            ahead = zip(shape.front, value.axes, strict=False)
            return [Fact(a.length, n, f"axis {i} of {source}") for i, (a, (_, n)) in enumerate(ahead)] + after
        case TupleOf(items), TupleValue(parts):
            pairs = zip(items, parts, strict=True)
            return [f for i, (t, v) in enumerate(pairs) for f in facts_of(t, v, f"{source}.{i}")]
        case _:
            return []
