"""A tiny interpreter of flat Core on real tensors, over mpmath, for the tests of the optimizer only.

A tensor is a pair of its lengths and a dict from index tuples to numbers; a tree is a dict by field, a tuple a tuple.
`Undefined` is raised where an operation has no value: a division by zero, a logarithm or root outside its domain.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath as mp

from presk_rel.core.expand import expanded
from presk_rel.core.ir import Function, Prim, Program
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Hyper, Params, Real, Shape, TupleOf, Type, field_names, leaves

Tensor = tuple[tuple[int, ...], dict[tuple[int, ...], Any]]
Value = Any


class Undefined(Exception):
    """The program has no value at these inputs."""


def evaluate(program: Program, name: str, dims: dict[str, int], args: list[Value]) -> Value:
    """The result of a function."""
    return environment(program, program.functions[name], dims, args)[program.functions[name].ret]


def environment(program: Program, f: Function, dims: dict[str, int], args: list[Value]) -> dict[str, Value]:
    """All values a function computes, by name, composites written out."""
    f = expanded(Program(program.modules, {f.name: f})).functions[f.name]
    types: dict[str, Type] = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    env = {p.name: a for p, a in zip(f.params, args, strict=True)}
    for b in f.bindings:
        assert isinstance(b.op, Prim)
        use = Use(program, b.op, [types[v] for v in b.op.args], b.type, dims)
        env[b.name] = use.value([env[v] for v in b.op.args])
    return env


def random_value(program: Program, ty: Type, dims: dict[str, int], draw: Callable[[], Any]) -> Value:
    """A value of a type, its entries drawn."""
    match ty:
        case Real(shape):
            lengths = sizes(shape, dims)
            return lengths, {i: draw() for i in product(*map(range, lengths))}
        case TupleOf(items):
            return tuple(random_value(program, t, dims, draw) for t in items)
        case Params(instance):
            assert all("." not in path for path, _ in leaves(program.modules, instance))
            return {n: random_value(program, t, dims, draw) for n, t in leaves(program.modules, instance)}
        case _:
            return mp.mpf(2)


def entries(value: Value) -> list[Any]:
    """All numbers of a value, in order."""
    match value:
        case dict():
            return [x for v in value.values() for x in entries(v)]
        case (tuple() as lengths, dict() as cells) if all(isinstance(n, int) for n in lengths):
            return list(cells.values())
        case tuple():
            return [x for v in value for x in entries(v)]
        case _:
            return [value]


def sizes(shape: Shape, dims: dict[str, int]) -> tuple[int, ...]:
    return tuple(int(a.length.evaluate(dims)) for a in shape.axes)


def checked(x: Any) -> Any:
    if isinstance(x, mp.mpc) or not mp.isfinite(x):
        raise Undefined
    return x


def _phi(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def _divide(x: Any, y: Any) -> Any:
    if y == 0:
        raise Undefined
    return x / y


def _logarithm(x: Any) -> Any:
    if x <= 0:
        raise Undefined
    return mp.log(x)


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "gelu": lambda x: x * mp.ncdf(x),
    "gelu'": lambda x: mp.ncdf(x) + x * _phi(x),
    "normal_pdf": _phi,
    "relu": lambda x: max(x, mp.mpf(0)),
    "exp": mp.exp,
    "tanh": mp.tanh,
    "sqrt": mp.sqrt,
    "abs": abs,
    "log": _logarithm,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "sin": mp.sin,
    "cos": mp.cos,
    "heaviside": lambda x: mp.mpf(x > 0),
    "sign": mp.sign,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _divide,
    "max": max,
    "min": min,
}


class Use:
    """One operation with the types of its operands and result."""

    def __init__(self, program: Program, op: Prim, types: list[Type], ty: Type, dims: dict[str, int]) -> None:
        self.program, self.op, self.types, self.type, self.dims = program, op, types, ty, dims

    def value(self, args: list[Value]) -> Value:
        op, attrs = self.op.op, self.op.attrs
        match op:
            case _ if op in UNARY:
                return _each(lambda x: checked(UNARY[op](x)), args[0])
            case "pow":
                return _each(lambda x: x ** attrs[0], args[0])
            case _ if op in BINARY:
                return self.binary(BINARY[op], *args)
            case "const":
                c = mp.mpf(attrs[0].numerator) / attrs[0].denominator
                return ((), {(): c}) if isinstance(self.type, Real) else c
            case "real":
                return ((), {(): args[0]})
            case "zeros" | "zeros_like":
                return self.filled(self.type, 0)
            case "ones" | "ones_like":
                return self.filled(self.type, 1)
            case "sum" | "mean":
                return self.reduce(args[0], mean=op == "mean")
            case "sum_to" | "broadcast_like" | "mean_vjp":
                return self.along(args[0])
            case "dot" | "dot_vjp_l" | "dot_vjp_r":
                return self.contract(*args)
            case "ein":
                return self.einstein(str(attrs[0]), args)
            case _:
                return self.structure(args)

    def structure(self, args: list[Value]) -> Value:
        match self.op.op, self.op.attrs, args:
            case (("field" | "proj"), (key,), [whole]):
                return whole[key]
            case "set_field", (key,), [whole, part]:
                return whole | {key: part}
            case "set_elem", (int() as i,), [whole, part]:
                return (*whole[:i], part, *whole[i + 1 :])
            case "tuple", _, _:
                return tuple(args)
            case "record", _, _ if isinstance(self.type, Params):
                return dict(zip(field_names(self.program.modules, self.type.instance), args, strict=True))
            case _:
                raise NotImplementedError(self.op.op)

    def filled(self, ty: Type, x: int) -> Value:
        return random_value(self.program, ty, self.dims, lambda: mp.mpf(x))

    def shape(self, i: int) -> Shape:
        ty = self.types[i]
        assert isinstance(ty, Real), ty
        return ty.shape

    def binary(self, f: Callable[[Any, Any], Any], x: Value, y: Value) -> Value:
        match self.types:
            case [Real(s), Real(t)]:
                large, small = (0, 1) if len(s.axes) >= len(t.axes) else (1, 0)
                where = _places(self.shape(small), self.shape(large))
                lengths = (x, y)[large][0]
                pick = [lambda i: i, lambda i: tuple(i[w] for w in where)]
                left, right = (pick[0], pick[1]) if large == 0 else (pick[1], pick[0])
                return lengths, {i: checked(f(x[1][left(i)], y[1][right(i)])) for i in product(*map(range, lengths))}
            case [Hyper(), Hyper()]:
                return f(x, y)
            case [Real(), _]:
                return _each(lambda b: f(x[1][()], b), y)
            case [_, Real()]:
                return _each(lambda a: f(a, y[1][()]), x)
            case _:
                return _both(f, x, y)

    def reduce(self, x: Tensor, *, mean: bool) -> Tensor:
        lengths, cells = x
        axes = [k for k, a in enumerate(self.shape(0).axes) if not self.op.attrs or a.name == self.op.attrs[0]]
        kept = [k for k in range(len(lengths)) if k not in axes]
        out = {i: mp.mpf(0) for i in product(*(range(lengths[k]) for k in kept))}
        for i, value in cells.items():
            out[tuple(i[k] for k in kept)] += value
        count = mp.fprod(lengths[k] for k in axes) if mean else mp.mpf(1)
        return tuple(lengths[k] for k in kept), {i: _divide(v, count) for i, v in out.items()}

    def along(self, x: Tensor) -> Tensor:
        other = sizes(self.shape(1), self.dims)
        if self.op.op == "sum_to":
            where = _places(self.shape(1), self.shape(0))
            out = {i: mp.mpf(0) for i in product(*map(range, other))}
            for i, value in x[1].items():
                out[tuple(i[w] for w in where)] += value
            return other, out
        if self.op.attrs:
            axis = next(k for k, a in enumerate(self.shape(1).axes) if a.name == self.op.attrs[0])
            where = tuple(k for k in range(len(other)) if k != axis)
        else:
            where = _places(self.shape(0), self.shape(1))
        missing = [n for k, n in enumerate(other) if k not in where]
        count = mp.fprod(missing) if self.op.op == "mean_vjp" else mp.mpf(1)
        return other, {i: _divide(x[1][tuple(i[w] for w in where)], count) for i in product(*map(range, other))}

    def einstein(self, text: str, args: list[Tensor]) -> Tensor:
        """The sum over all values of the names that the result lacks."""
        operands, _, result = text.partition("->")
        lists = [part.split() for part in operands.split(",")]
        lengths = {n: k for names, (own, _) in zip(lists, args, strict=True) for n, k in zip(names, own, strict=True)}
        out = tuple(lengths[n] for n in result.split())
        parts: dict[tuple[int, ...], list[Any]] = {i: [] for i in product(*map(range, out))}
        for point in product(*map(range, lengths.values())):
            at = dict(zip(lengths, point, strict=True))
            entry = mp.fprod(x[1][tuple(at[n] for n in names)] for names, x in zip(lists, args, strict=True))
            parts[tuple(at[n] for n in result.split())].append(entry)
        return out, {i: mp.fsum(found) for i, found in parts.items()}

    def contract(self, a: Tensor, b: Tensor) -> Tensor:
        """`dot` over one axis; `dot_vjp_l` over the last axes of both; `dot_vjp_r` over the first axes of both."""
        (m, x), (n, y) = a, b
        if self.op.op == "dot":
            kept, lengths, shared = (m[:-1], n[1:]), (*m[:-1], *n[1:]), m[-1:]
            at = lambda f, g, s: ((*f, *s), (*s, *g))  # noqa: E731
        elif self.op.op == "dot_vjp_l":
            cut = len(m) - (len(n) - 1)
            kept, lengths, shared = (m[:cut], n[:1]), (*m[:cut], *n[:1]), m[cut:]
            at = lambda f, g, s: ((*f, *s), (*g, *s))  # noqa: E731
        else:
            cut = len(m) - 1
            kept, lengths, shared = (m[cut:], n[cut:]), (*m[cut:], *n[cut:]), m[:cut]
            at = lambda f, g, s: ((*s, *f), (*s, *g))  # noqa: E731
        cells: dict[tuple[int, ...], Any] = {}
        for f in product(*map(range, kept[0])):
            for g in product(*map(range, kept[1])):
                pairs = (at(f, g, s) for s in product(*map(range, shared)))
                cells[*f, *g] = mp.fsum(x[i] * y[j] for i, j in pairs)
        return lengths, cells


def _places(small: Shape, large: Shape) -> tuple[int, ...]:
    where = align(small, large, lambda a, b: a == b)
    assert where is not None, (small, large)
    return where


def _is_tensor(value: Value) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict) and _lengths(value[0])


def _lengths(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(n, int) for n in value)


def _each(f: Callable[[Any], Any], value: Value) -> Value:
    if _is_tensor(value):
        return value[0], {i: f(x) for i, x in value[1].items()}
    if isinstance(value, dict):
        return {k: _each(f, v) for k, v in value.items()}
    return tuple(_each(f, v) for v in value) if isinstance(value, tuple) else f(value)


def _both(f: Callable[[Any, Any], Any], x: Value, y: Value) -> Value:
    if _is_tensor(x):
        return x[0], {i: f(v, y[1][i]) for i, v in x[1].items()}
    if isinstance(x, dict):
        return {k: _both(f, v, y[k]) for k, v in x.items()}
    return tuple(_both(f, v, w) for v, w in zip(x, y, strict=True))
