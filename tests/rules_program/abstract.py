"""Classes by running the program on abstract values: an independent account of regularity.

An abstract real says, for each source (a leaf of a parameter of the function in question), the worst class on any path
from it. Calls are run anew each time, so nothing is summarised and function values are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from presk_rel.core.ir import Apply, Call, Closure, Fold, Function, Grad, Op, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import TupleOf, Type

Real = dict[object, int]
"""Source → 0 (Cinf), 1 (C0plus), 2 (Disc)."""

NUMBER = {"Cinf": 0, "C0plus": 1, "Disc": 2}
DERIVED = (0, 2, 2)


@dataclass(frozen=True)
class Value:
    """A function value with what it captured; `derived` if it is a gradient."""

    fn: str
    captured: tuple[object, ...]
    derived: bool = False


@dataclass(frozen=True)
class Unknown:
    """A function value that a parameter brings; what it gives is discontinuous in everything."""

    source: object


def classes(program: Program, function: Function) -> dict[str, int]:
    """The class of the result in each parameter."""
    arguments = [_source(p.type, p.name, ()) for p in function.params]
    result = _run(program, function, arguments)
    worst = {p.name: 0 for p in function.params}
    for real in _reals(result):
        for (name, _), number in real.items():  # type: ignore[misc]
            worst[name] = max(worst[name], number)
    return worst


def _source(ty: Type, name: object, path: tuple[int, ...]) -> object:
    match ty:
        case TupleOf(items):
            return tuple(_source(t, name, (*path, i)) for i, t in enumerate(items))
        case FunctionType():
            return Unknown((name, path))
        case _:
            return {(name, path): 0}


def _reals(value: object) -> Iterator[Real]:
    """All sources in a value; what a function value captured counts as it is."""
    match value:
        case dict():
            yield value  # type: ignore[misc]
        case tuple():
            for item in value:  # type: ignore[misc]
                yield from _reals(item)
        case Value(captured=captured):
            yield from _reals(captured)
        case Unknown(source):
            yield {source: 0}
        case _:
            raise AssertionError(value)


def _worst(reals: Iterator[Real], at_least: int = 0) -> Real:
    out: Real = {}
    for real in reals:
        for source, number in real.items():
            out[source] = max(out.get(source, 0), number, at_least)
    return out


def _run(program: Program, function: Function, arguments: list[object]) -> object:
    env = {p.name: a for p, a in zip(function.params, arguments, strict=True)}
    for binding in function.bindings:
        env[binding.name] = _operation(program, binding.op, env)
    return env[function.ret]


def _operation(program: Program, op: Op, env: dict[str, object]) -> object:
    match op:
        case Prim():
            return _prim(op, [env[a] for a in op.args])
        case Call(fn, _, args):
            return _run(program, program.functions[fn], [env[a] for a in args])
        case Closure(fn, _, captured):
            return Value(fn, tuple(env[c] for c in captured))
        case Grad(v):
            inner = env[v]
            return inner if isinstance(inner, Unknown) else Value(inner.fn, inner.captured, True)  # type: ignore[attr-defined]
        case Apply(v, args):
            return _apply(program, env[v], [env[a] for a in args])
        case Fold():
            return _fold(program, op, env)


def _prim(op: Prim, args: list[object]) -> object:
    match op.op:
        case "tuple":
            return tuple(args)
        case "proj":
            return args[0][op.attrs[0]]  # type: ignore[index]
        case "set_elem":
            return tuple(args[1] if i == op.attrs[0] else x for i, x in enumerate(args[0]))  # type: ignore[arg-type]
        case "add" if isinstance(args[0], tuple):
            return tuple(_worst(_reals(pair)) for pair in zip(*args, strict=True))  # type: ignore[arg-type]
        case _:
            row = PRIMS[op.op].regularity
            kinds = [NUMBER[row[min(i, len(row) - 1)]] for i in range(len(args))]
            return _worst(_worst(_reals(a), kind) for a, kind in zip(args, kinds, strict=True))


def _apply(program: Program, value: object, args: list[object]) -> object:
    if isinstance(value, Unknown):
        return _worst(_reals((value, *args)), 2)
    assert isinstance(value, Value)
    function = program.functions[value.fn]
    given = [*value.captured, *args]
    if not value.derived:
        return _run(program, function, given)
    marked = [_marked(p.type, g, ("mark", i), ()) for i, (p, g) in enumerate(zip(function.params, given, strict=True))]
    out: Real = {}
    for source, number in _worst(_reals(_run(program, function, marked))).items():
        through = _worst(iter([_at(given, source)])) if _is_mark(source) else {source: 0}
        for outer, before in through.items():
            out[outer] = max(out.get(outer, 0), before, DERIVED[number])
    return out


def _marked(ty: Type, value: object, name: object, path: tuple[int, ...]) -> object:
    """`value` with a source of its own for every real in it; function values stay what they are."""
    match ty:
        case TupleOf(items):
            return tuple(_marked(t, value[i], name, (*path, i)) for i, t in enumerate(items))  # type: ignore[index]
        case FunctionType():
            return value
        case _:
            return {(name, path): 0}


def _is_mark(source: object) -> bool:
    return isinstance(source[0], tuple) and source[0][0] == "mark"  # type: ignore[index]


def _at(given: list[object], source: object) -> Real:
    (_, index), path = source  # type: ignore[misc]
    value = given[index]
    for i in path:
        value = value[i]  # type: ignore[index]
    return value  # type: ignore[return-value]


def _fold(program: Program, op: Fold, env: dict[str, object]) -> object:
    acc = env[op.acc]
    extras = [env[e] for e in op.extras]
    for _ in range(16):
        after = _run(program, program.functions[op.body], [acc, *extras])
        acc = tuple(_worst(_reals(pair)) for pair in zip(acc, after, strict=True))  # type: ignore[arg-type]
    return (acc, acc) if op.scan else acc
