"""A small interpreter of PSK-Core over mpmath, written for these tests only (independent of `exec/`). Axes line up by
the *static* types of the bindings. Values are those of `tests.ad.interpreter_values`."""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.core.expand import expanded
from presk_rel.core.ir import Apply, Call, Closure, Fold, Grad, Jvp, Op, Prim, Program, Vjp
from presk_rel.elab.ty import TupleOf, Type
from presk_rel.smt.linear import Linear
from tests.ad.interpreter_axes import AXES
from tests.ad.interpreter_prims import PRIMITIVES, Use
from tests.ad.interpreter_values import Value, asarray, prefix_of, random_value, stack, tree

_ROWS = PRIMITIVES | AXES


@dataclass(frozen=True)
class FunctionValue:
    fn: str
    dims: dict[str, int]
    captured: tuple[Value, ...]


def evaluate(program: Program, name: str, dims: dict[str, int], args: list[Value]) -> Value:
    """The value of a function at concrete dims and arguments."""
    program = expanded(program)
    f = program.functions[name]
    types: dict[str, Type] = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    lead = prefix_of([p.type for p in f.params], args)
    env: dict[str, Value] = {p.name: a for p, a in zip(f.params, args, strict=True)}
    for b in f.bindings:
        env[b.name] = _operation(program, b.op, b.type, dims, env, types, lead)
    return env[f.ret]


def _dims(dim_args: tuple[tuple[str, Linear], ...], dims: dict[str, int]) -> dict[str, int]:
    return {d: int(form.evaluate(dims)) for d, form in dim_args}


def _operation(
    program: Program,
    op: Op,
    ty: Type,
    dims: dict[str, int],
    env: dict[str, Value],
    types: dict[str, Type],
    lead: tuple[int, ...],
) -> Value:
    match op:
        case Prim(name, attrs, args):
            use = Use(program, attrs, [env[v] for v in args], [types[v] for v in args], ty, dims, lead)
            return _ROWS[name](use)
        case Call(fn, dim_args, args):
            return evaluate(program, fn, _dims(dim_args, dims), [env[v] for v in args])
        case Closure(fn, dim_args, captured):
            return FunctionValue(fn, _dims(dim_args, dims), tuple(env[v] for v in captured))
        case Apply(fn, args):
            value = env[fn]
            return evaluate(program, value.fn, value.dims, [*value.captured, *(env[v] for v in args)])
        case Fold():
            return _fold(program, op, ty, dims, env, lead)
        case Grad() | Vjp() | Jvp():
            raise AssertionError("a derivative is left")


def _fold(
    program: Program, op: Fold, ty: Type, dims: dict[str, int], env: dict[str, Value], lead: tuple[int, ...]
) -> Value:
    count, acc, seen = int(op.count.evaluate(dims)), env[op.acc], []
    for i in reversed(range(count)) if op.reverse else range(count):
        seen.append(acc)
        slices = [tree(lambda a, i=i: asarray(a[i]), env[v]) for v in op.stacked]
        acc = evaluate(program, op.body, _dims(op.dim_args, dims), [*slices, acc, *(env[v] for v in op.extras)])
    if not op.scan:
        return acc
    if not seen:
        assert isinstance(ty, TupleOf)
        return acc, random_value(program, ty.items[1], dims, lead, lambda: 0)
    return acc, stack(seen[::-1] if op.reverse else seen)
