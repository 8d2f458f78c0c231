"""Programs that compute something else than one that is given: one change in one of its functions, the entry, the body
of a fold or a kernel. All are well-typed, so that nothing but what they compute can be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from presk_rel.core.ir import Binding, Fold, Function, Op, Prim, Program, callees, operands
from presk_rel.core.prims import PRIMS
from presk_rel.core.verify import problems
from presk_rel.elab.ty import Type
from presk_rel.smt.linear import Linear, constant

SWAPPED = {
    "add": "sub",
    "sub": "add",
    "mul": "div",
    "div": "mul",
    "neg": "exp",
    "tanh": "exp",
    "exp": "tanh",
    "sigmoid": "tanh",
    "gelu": "relu",
    "relu": "gelu",
    "sqrt": "exp",
    "log": "exp",
    "abs": "exp",
    "zeros": "ones",
    "ones": "zeros",
    "sum": "mean",
    "mean": "sum",
    "mean_vjp": "broadcast_like",
    "broadcast_like": "mean_vjp",
    "dot_vjp_l": "dot",
    "dot": "dot_vjp_l",
    "max": "min",
    "gelu_vjp": "relu_vjp",
    "relu_vjp": "gelu_vjp",
    "tanh_vjp": "sigmoid_vjp",
    "sigmoid_vjp": "tanh_vjp",
    "softmax_vjp": "log_softmax_vjp",
    "layer_norm_vjp": "layer_norm",
    "log_softmax_vjp": "softmax_vjp",
}
"""Another operation on the same operands."""

COMMUTE = ("add", "mul", "max", "min", "eq", "ein")


def wrong_programs(program: Program, names: list[str]) -> Iterator[Program]:
    """All changes of some functions."""
    for name in names:
        for f in changed(program.functions[name]):
            other = replace(program, functions={**program.functions, name: f})
            if not problems(other):
                yield other


def reached(program: Program, entry: str) -> list[str]:
    """The entry, and what it folds or calls."""
    found = [entry]
    for name in found:
        new = (c for b in program.functions[name].bindings for c in callees(b.op))
        found += [c for c in dict.fromkeys(new) if c not in found]
    return found


def changed(f: Function) -> Iterator[Function]:
    """The function with one binding changed whose value is read, or with another value of its type as result."""
    read = {v for b in f.bindings for k, v in enumerate(operands(b.op)) if k not in shape_only(b.op)} | {f.ret}
    types = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    for i, b in enumerate(f.bindings):
        for op in other_operations(b, types) if b.name in read else ():
            yield replace(f, bindings=(*f.bindings[:i], replace(b, op=op), *f.bindings[i + 1 :]))
    yield from (replace(f, ret=name) for name, ty in types.items() if name != f.ret and ty == types[f.ret])


def shape_only(op: Op) -> tuple[int, ...]:
    return PRIMS[op.op].shape_only if isinstance(op, Prim) else ()


def other_operations(b: Binding, types: dict[str, Type]) -> Iterator[Op]:
    match b.op:
        case Prim(op, attrs, args):
            if op in SWAPPED:
                yield replace(b.op, op=SWAPPED[op])
            yield from (replace(b.op, args=swapped) for swapped in exchanged(b.op, types))
            yield from (replace(b.op, attrs=(other, *attrs[1:])) for other in other_attributes(op, attrs[:1]))
            if op == "sum_to" and types[args[0]] == b.type:
                yield Prim("exp", (), args[:1])
        case Fold():
            yield replace(b.op, reverse=not b.op.reverse)
            acc = types[b.op.acc]
            yield from (replace(b.op, acc=x) for x in earlier(b, types) if x != b.op.acc and types[x] == acc)
            yield from (replace(b.op, extras=x) for x in pairs(b.op.extras, types))
            yield from (replace(b.op, stacked=x) for x in pairs(b.op.stacked, types))
        case _:
            return


def earlier(b: Binding, types: dict[str, Type]) -> list[str]:
    names = list(types)
    return names[: names.index(b.name)]


def exchanged(op: Prim, types: dict[str, Type]) -> Iterator[tuple[str, ...]]:
    """The operands with two of one type exchanged, where that makes a difference."""
    if op.op not in COMMUTE:
        whole = tuple(a for k, a in enumerate(op.args) if k not in shape_only(op))
        if whole == op.args:
            yield from pairs(op.args, types)


def pairs(args: tuple[str, ...], types: dict[str, Type]) -> Iterator[tuple[str, ...]]:
    for k in range(len(args) - 1):
        a, b = args[k], args[k + 1]
        if a != b and types[a] == types[b]:
            yield (*args[:k], b, a, *args[k + 2 :])


def other_attributes(op: str, first: tuple[object, ...]) -> Iterator[Fraction | int | Linear | str]:
    match op, first:
        case "const", (Fraction() as c,):
            yield c + Fraction(1, 10**40)
        case "pow", (int() as n,):
            yield n + 1
        case "proj", (int() as n,):
            yield from (k for k in (n - 1, n + 1) if k >= 0)
        case "slice_params", (Linear() as i,):
            yield from (i + constant(d) for d in (-1, 1))
        case "ein", (str() as spec,):
            left, _, right = spec.partition("->")
            x, *rest = left.split(",")
            names = x.split()
            if rest and len(names) > 1:
                turned = " ".join([*names[:-2], names[-1], names[-2]])
                yield f"{', '.join([turned, *(r.strip() for r in rest)])} -> {right.strip()}"
        case _:
            return
