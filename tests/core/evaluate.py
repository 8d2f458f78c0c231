"""A small evaluator of PSK-Core on numpy arrays, straight from the semantics in `core/prims.py`: operands line up by
the static types of their function, its prefix standing for as many leading axes as its arguments have. It shares no
code with the inliner but the definition of alignment, and says what a program means before and after. It draws nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from presk_rel.core.ein import ein_spec
from presk_rel.core.ir import Apply, Call, Closure, Fold, Function, Grad, Prim, Program, operands
from presk_rel.core.shapes import same
from presk_rel.elab.broadcast import align
from presk_rel.elab.ty import Hyper, Idx, Mask, Params, Real, Shape, TupleOf, Type, field_names, field_type, map_dims
from presk_rel.smt.linear import Linear, constant

TENSOR = Real | Idx | Mask


@dataclass
class FunctionValue:
    fn: str
    dims: dict[str, int]
    captured: tuple[Any, ...]


UNARY = {
    "neg": np.negative,
    "exp": np.exp,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * np.tanh(x),
    "gelu'": lambda x: np.tanh(x) + x / np.cosh(x) ** 2,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "log": np.log,
    "sign": np.sign,
}
PAIRED = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
}


def evaluate(program: Program, name: str, args: tuple[Any, ...], dims: dict[str, int]) -> Any:
    """The value of a function at arguments (arrays, dicts of fields, tuples) and dims."""
    function = program.functions[name]
    scope = _Scope(program, function, dims, _prefix_ranks(function, args))
    for p, arg in zip(function.params, args, strict=True):
        scope.types[p.name], scope.values[p.name] = p.type, arg
    for b in function.bindings:
        scope.values[b.name] = _operation(scope, b.op, b.type)
        scope.types[b.name] = b.type
    return scope.values[function.ret]


class _Scope:
    def __init__(self, program: Program, function: Function, dims: dict[str, int], ranks: dict[str, tuple]) -> None:
        self.program, self.function, self.dims, self.leads = program, function, dims, ranks
        self.values: dict[str, Any] = {}
        self.types: dict[str, Type] = {}

    def size(self, ty: Type) -> tuple[int, ...]:
        assert isinstance(ty, TENSOR)
        lead = self.leads.get(ty.shape.prefix, ()) if ty.shape.prefix else ()
        return (*lead, *(int(a.length.evaluate(self.dims)) for a in ty.shape.axes))

    def lead(self, shape: Shape) -> int:
        return len(self.leads.get(shape.prefix, ())) if shape.prefix else 0


def _prefix_ranks(function: Function, args: tuple[Any, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for p, arg in zip(function.params, args, strict=True):
        if isinstance(p.type, TENSOR) and p.type.shape.prefix:
            cut = arg.ndim - len(p.type.shape.axes)
            assert found.setdefault(p.type.shape.prefix, arg.shape[:cut]) == arg.shape[:cut]
    return found


def _operation(s: _Scope, op: Any, ty: Type) -> Any:
    args = tuple(s.values[v] for v in operands(op))
    match op:
        case Prim():
            return _prim(s, op, args, ty)
        case Call(fn, dim_args):
            return evaluate(s.program, fn, args, _dims(s, dim_args))
        case Closure(fn, dim_args):
            return FunctionValue(fn, _dims(s, dim_args), args)
        case Apply():
            return evaluate(s.program, args[0].fn, (*args[0].captured, *args[1:]), args[0].dims)
        case Fold():
            return _fold(s, op, args)
        case Grad():
            raise NotImplementedError


def _dims(s: _Scope, dim_args: Any) -> dict[str, int]:
    return {name: int(form.evaluate(s.dims)) for name, form in dim_args}


def _fold(s: _Scope, op: Fold, args: tuple[Any, ...]) -> Any:
    n, count = len(op.stacked), int(op.count.evaluate(s.dims))
    acc, before = args[n], []
    for i in reversed(range(count)) if op.reverse else range(count):
        before.append(acc)
        slices = tuple(_map(lambda a, i=i: a[i], v) for v in args[:n])
        acc = evaluate(s.program, op.body, (*slices, acc, *args[n + 1 :]), _dims(s, op.dim_args))
    if not op.scan:
        return acc
    order = before[::-1] if op.reverse else before
    return acc, _zip(lambda *xs: np.stack(xs), *order)


def _map(f: Any, value: Any) -> Any:
    match value:
        case dict():
            return {k: _map(f, v) for k, v in value.items()}
        case tuple():
            return tuple(_map(f, v) for v in value)
        case _:
            return f(value)


def _filled(f: Any, value: Any, ty: Type) -> Any:
    """Of the type `ty`: what is no real has the unit tuple."""
    if isinstance(ty, TupleOf):
        return tuple(_filled(f, v, t) for v, t in zip(value, ty.items, strict=True)) if ty.items else ()
    return _map(f, value)


def _zip(f: Any, *values: Any) -> Any:
    match values[0]:
        case dict():
            return {k: _zip(f, *(v[k] for v in values)) for k in values[0]}
        case tuple():
            return tuple(_zip(f, *vs) for vs in zip(*values, strict=True))
        case _:
            return f(*values)


def _prim(s: _Scope, op: Prim, args: tuple[Any, ...], ty: Type) -> Any:
    types = tuple(s.types[v] for v in op.args)
    match op.op, op.attrs:
        case name, () if name in UNARY:
            return _map(UNARY[name], args[0])
        case name, () if name in PAIRED:
            return _paired(s, PAIRED[name], args, types)
        case "pow", (int() as n,):
            return _map(lambda x: x**n, args[0])
        case "const", (value,):
            return np.asarray(float(value))
        case _:
            return _contraction(s, op, args, ty, types)


def _contraction(s: _Scope, op: Prim, args: tuple[Any, ...], ty: Type, types: tuple[Type, ...]) -> Any:
    match op.op, op.attrs:
        case "dot", ():
            return np.tensordot(args[0], args[1], 1)
        case "dot_vjp_l", ():
            k = args[1].ndim - 1
            return np.tensordot(args[0], args[1], (list(range(args[0].ndim - k, args[0].ndim)), list(range(1, k + 1))))
        case "dot_vjp_r", ():
            k = list(range(args[0].ndim - 1))
            return np.tensordot(args[0], args[1], (k, k))
        case _:
            return _reduction(s, op, args, ty, types)


def _reduction(s: _Scope, op: Prim, args: tuple[Any, ...], ty: Type, types: tuple[Type, ...]) -> Any:
    match op.op, op.attrs:
        case ("mean" | "sum") as name, ():
            return getattr(np, name)(args[0])
        case ("mean" | "sum") as name, (axis,):
            return getattr(np, name)(args[0], axis=_position(s, types[0], axis))
        case "mean_vjp", ():
            return np.full(args[1].shape, args[0] / args[1].size)
        case "mean_vjp", (axis,):
            i = _position(s, types[1], axis)
            return np.broadcast_to(np.expand_dims(args[0], i), args[1].shape) / args[1].shape[i]
        case "broadcast_like", (axis,):
            return np.broadcast_to(np.expand_dims(args[0], _position(s, types[1], axis)), args[1].shape)
        case "broadcast_like", ():
            return np.broadcast_to(_widened(s, args[0], types[0], types[1]), args[1].shape)
        case "sum_to", ():
            return _summed(s, args[0], types[1], types[0])
        case _:
            return _structure(s, op, args, ty)


def _structure(s: _Scope, op: Prim, args: tuple[Any, ...], ty: Type) -> Any:
    match op.op, op.attrs:
        case ("zeros" | "ones") as name, ():
            return getattr(np, name)(s.size(ty))
        case "zeros_like", ():
            return _filled(np.zeros_like, args[0], ty)
        case "ones_like", ():
            return _filled(np.ones_like, args[0], ty)
        case (("field" | "proj"), (part,)):
            return args[0][part]
        case "set_field", (part,):
            return {**args[0], part: args[1]}
        case "set_elem", (part,):
            return (*args[0][:part], args[1], *args[0][part + 1 :])
        case "tuple", ():
            return args
        case "record", ():
            assert isinstance(ty, Params)
            return dict(zip(field_names(s.program.modules, ty.instance), args, strict=True))
        case "stack_params", ():
            return _zip(lambda *xs: np.stack(xs), *args)
        case _:
            return language(s, op, args, ty)


def _position(s: _Scope, ty: Type, axis: Any) -> int:
    assert isinstance(ty, Real | Idx | Mask)
    return s.lead(ty.shape) + [a.name for a in ty.shape.axes].index(axis)


def _where(s: _Scope, small: Shape, large: Shape) -> tuple[int, ...]:
    found = align(small, large, same)
    assert found is not None
    return (*range(s.lead(small)), *(s.lead(large) + i for i in found))


def _widened(s: _Scope, x: Any, small: Type, large: Type) -> Any:
    """`x` with axes of length 1 where only `large` has one."""
    assert isinstance(small, TENSOR) and isinstance(large, TENSOR)
    where = _where(s, small.shape, large.shape)
    order = sorted(range(len(where)), key=lambda i: where[i])
    missing = [i for i in range(s.lead(large.shape) + len(large.shape.axes)) if i not in where]
    return np.expand_dims(np.transpose(x, order), missing)


def _summed(s: _Scope, x: Any, small: Type, large: Type) -> Any:
    assert isinstance(small, TENSOR) and isinstance(large, TENSOR)
    where = _where(s, small.shape, large.shape)
    out = np.sum(x, axis=tuple(i for i in range(x.ndim) if i not in where))
    ranks = sorted(where)
    return np.transpose(out, [ranks.index(i) for i in where])


def _paired(s: _Scope, f: Any, args: tuple[Any, ...], types: tuple[Type, ...]) -> Any:
    a, b = types
    match a, b:
        case TupleOf(xs), TupleOf(ys):
            return tuple(_paired(s, f, pair, ts) for pair, ts in zip(zip(*args, strict=True), zip(xs, ys), strict=True))
        case (Real(), Real()) | (Idx(), Idx()):
            rank = [(t.shape.prefix is not None, len(t.shape.axes)) for t in (a, b)]
            if rank[0] >= rank[1]:
                return f(args[0], _widened(s, args[1], b, a))
            return f(_widened(s, args[0], a, b), args[1])
        case Real(), _:
            return _map(lambda leaf: f(args[0], leaf), args[1])
        case _, Real():
            return _map(lambda leaf: f(leaf, args[1]), args[0])
        case _:
            return _zip(f, *args)


# ----------------------------------------------------------------------------------------- the rest of the language


def language(s: _Scope, op: Prim, args: tuple[Any, ...], ty: Type) -> Any:
    types = tuple(s.types[v] for v in op.args)
    x = args[0] if args else None
    match op.op, op.attrs:
        case "softmax", (axis,):
            return _softmax(s, args, types, _position(s, types[0], axis))
        case "ein", (str() as spec,):
            return _ein(spec, args)
        case "embed", ():
            return x[args[1]]
        case "one_hot", ():
            return np.eye(s.size(ty)[-1])[x]
        case "cross_entropy", ():
            return -np.take_along_axis(np.log(_soft(x, -1)), args[1][..., None], -1)[..., 0]
        case "argmax", ():
            return np.argmax(x, axis=-1)
        case (("merge" | "split"), _):
            return np.reshape(x, s.size(ty))
        case "reshape_like", ():
            return np.reshape(x, np.shape(args[1]))
        case "split_heads", (h, e):
            return np.swapaxes(np.reshape(x, (*x.shape[:-1], h, e)), -2, -3)
        case "merge_heads", (h, e):
            return np.reshape(np.swapaxes(x, -2, -3), (*x.shape[:-3], x.shape[-2], int(h) * int(e)))
        case "positions", ():
            return np.arange(s.size(ty)[0])
        case "causal_mask", ():
            return np.tril(np.ones(s.size(ty), dtype=bool))
        case "concat", (axis,):
            return np.concatenate(args, _position(s, types[0], axis))
        case _:
            return _selection(s, op, args, types)


def _selection(s: _Scope, op: Prim, args: tuple[Any, ...], types: tuple[Type, ...]) -> Any:
    dims = [int(a.evaluate(s.dims)) for a in op.attrs if isinstance(a, Linear)]
    match op.op:
        case "index":
            return np.take(args[0], dims[0], _axis(s, types[0], op.attrs[0]))
        case "slice":
            return np.take(args[0], range(*dims), _axis(s, types[0], op.attrs[0]))
        case "scatter_index" | "slice_vjp":
            out = np.zeros(np.shape(args[1]))
            rows = np.moveaxis(out, _axis(s, types[1], op.attrs[0]), 0)
            whole = op.op == "slice_vjp"
            ct = np.moveaxis(args[0], _axis(s, types[1], op.attrs[0]), 0) if whole else args[0]
            rows[slice(*dims) if whole else dims[0]] = ct
            return out
        case "slice_params":
            return _map(lambda x: x[dims[0]], args[0])
        case "scatter_params":
            return _zip(lambda ct, t: _with(np.zeros_like(t), dims[0], ct), *args)
        case "set_slice":
            return _zip(lambda p, v: _with(p.copy(), dims[0], v), *args)
        case "sum_squares":
            return _total(args[0])
        case "pi":
            return np.asarray(np.pi)
        case "real":
            return np.asarray(args[0], dtype=float)
        case _:
            raise NotImplementedError(op.op)


def _axis(s: _Scope, ty: Type, place: Any) -> int:
    assert isinstance(ty, TENSOR)
    return s.lead(ty.shape) + place if isinstance(place, int) else _position(s, ty, place)


def _with(x: Any, i: int, v: Any) -> Any:
    x[i] = v
    return x


def _total(value: Any) -> Any:
    match value:
        case dict():
            return sum(_total(v) for v in value.values())
        case tuple():
            return sum(_total(v) for v in value)
        case _:
            return np.sum(value**2)


def _soft(x: Any, axis: int, allowed: Any = True) -> Any:
    e = np.where(allowed, np.exp(x), 0)
    return e / np.sum(e, axis=axis, keepdims=True)


def _softmax(s: _Scope, args: tuple[Any, ...], types: tuple[Type, ...], axis: int) -> Any:
    return _soft(args[0], axis, _widened(s, args[1], types[1], types[0]) if len(args) == 2 else True)


def _ein(spec: str, args: tuple[Any, ...]) -> Any:
    parsed = ein_spec(spec)
    assert parsed is not None
    letter = {n: chr(97 + i) for i, n in enumerate(sorted({n for axes in parsed.operands for n in axes}))}
    lists = ["".join(letter[n] for n in axes) for axes in (*parsed.operands, parsed.result)]
    return np.einsum(",".join(lists[:-1]) + "->" + lists[-1], *args)


def sample(program: Program, ty: Type, dims: dict[str, int], rng: np.random.Generator) -> Any:
    """A random value of a type without prefix."""
    ty = map_dims(ty, lambda d: constant(d.evaluate(dims)))
    match ty:
        case Real(shape):
            return rng.uniform(-1, 1, tuple(int(a.length.const) for a in shape.axes))
        case Idx(bound, shape):
            return rng.integers(int(bound.const), size=tuple(int(a.length.const) for a in shape.axes))
        case Mask(shape):
            return rng.uniform(-1, 1, tuple(int(a.length.const) for a in shape.axes)) < 0.7
        case Hyper("nat"):
            return int(rng.integers(1, 9))
        case TupleOf(items):
            return tuple(sample(program, t, dims, rng) for t in items)
        case Params(instance):
            fields = {n: field_type(program.modules, instance, n) for n in field_names(program.modules, instance)}
            return {n: sample(program, t, dims, rng) for n, t in fields.items() if t is not None}
        case _:
            raise NotImplementedError(str(ty))
