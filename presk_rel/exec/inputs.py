"""The arguments of an entry: given ones checked against its types, dims solved from them, missing ones synthesized.

`bind` says what the dims are and what was given; `synthesize` makes the rest from the seed: one key per parameter, in
order, by splitting `keys.master(seed)`; a tuple splits its key once more per component, and so does a parameter tree
per field, as `M.init` does. Values hold *host data* (`exec.values.HostReals`): every number is exact.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

import numpy as np

from presk_rel.core.ir import Function, Program
from presk_rel.elab.ty import (
    Applied,
    Composed,
    Hyper,
    Idx,
    Init,
    Instance,
    Key,
    Mask,
    ModuleDef,
    ParamField,
    Params,
    Real,
    Shape,
    Stacked,
    TupleOf,
    Type,
    field_type,
)
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.exec import keys
from presk_rel.exec.convert import convert, facts
from presk_rel.exec.literals import Node
from presk_rel.exec.memory import memory_limit, written_size
from presk_rel.exec.shapes import MAX_LENGTH, Env, Fact, axes, bind_prefixes, fail, length, solve
from presk_rel.exec.values import (
    HostReals,
    IndexTensor,
    KeyValue,
    MaskTensor,
    RunAxes,
    StackValue,
    Tensor,
    TreeValue,
    TupleValue,
    Value,
    shape_of,
    stack,
)

MAX_LAYERS = 1_000_000
DRAWN = 64
"""Bytes that an entry takes while it is drawn."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An entry with its dims bound. `given[i]` is parameter i's argument, or None when it is to be synthesized."""

    fn: Function
    env: Env
    given: tuple[Value | None, ...]


def entry_function(program: Program, entry: str) -> Function:
    """E7018 (exit status 2) when there is none."""
    name = unicodedata.normalize("NFC", entry)
    found = program.functions.get(name)
    if found is None:
        close = difflib.get_close_matches(name, list(program.functions), 3)
        hint = f"did you mean {', '.join(f'`{c}`' for c in close)}?" if close else None
        fail("E7018", f"the program has no function `{entry}`", None, help=hint, exit_status=2)
    return found


def executable(fn: Function) -> None:
    """E7019 (exit status 3) when a parameter or the result is a function value."""
    for name, ty in [*((f"`{p.name}`", p.type) for p in fn.params), ("the result", fn.result)]:
        if _has_function(ty):
            message = f"`{fn.name}` cannot be run: {name} : {ty} is a function value"
            fail("E7019", message, None, help="run a function that applies it", exit_status=3)


def _has_function(ty: Type) -> bool:
    return isinstance(ty, FunctionType) or (isinstance(ty, TupleOf) and any(_has_function(t) for t in ty.items))


def bind(program: Program, entry: str, given: Mapping[str, Node], dims: Mapping[str, int]) -> Bound:
    """Check the given arguments and dims of `entry` and solve for its dims."""
    fn = entry_function(program, entry)
    _known_names(fn, given, dims)
    values = [None if p.name not in given else convert(program, p.name, p.type, given[p.name]) for p in fn.params]
    known: list[Fact] = []
    for p, v in zip(fn.params, values, strict=True):
        if v is not None:
            known += facts(program.modules, p.type, v, f"`{p.name}`")
    solved = solve(known, dims)
    missing = [d for d in fn.dims if d not in solved]
    if missing:
        wanted = " ".join(f"--dim {d}=N" for d in missing)
        names = ", ".join(f"`{d}`" for d in missing)
        what = "dimension has" if len(missing) == 1 else "dimensions have"
        hint = f"give {wanted}, or arguments that say it"
        fail("E7016", f"the {what} no value for `{entry}`: {names}", None, help=hint)
    _within_bounds(program, solved)
    pairs = [(p.type, v) for p, v in zip(fn.params, values, strict=True) if v is not None]
    prefixes = bind_prefixes([t for t, _ in pairs], [v for _, v in pairs], entry, typed=False)
    env = Env(solved, prefixes)
    for p, v in zip(fn.params, values, strict=True):
        _check_type(program.modules, p.type, env, f"`{p.name}`")
        if v is not None:
            _check_indices(p.type, v, env, f"`{p.name}`")
    return Bound(fn, env, tuple(values))


def _known_names(fn: Function, given: Mapping[str, Node], dims: Mapping[str, int]) -> None:
    params, symbols = [p.name for p in fn.params], set(fn.dims)
    for name in given:
        if name not in params:
            fail("E7010", f"`{fn.name}` has no parameter `{name}`; it has {_listed(params)}", None)
    for name in dims:
        if name not in symbols:
            fail("E7010", f"`{fn.name}` has no dimension `{name}`; it has {_listed(list(fn.dims))}", None)
        if not 0 <= dims[name] <= MAX_LENGTH:
            fail("E7017", f"--dim {name}={dims[name]}: a dimension is a natural of at most 2^62", None)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names) if names else "none"


def _within_bounds(program: Program, dims: Mapping[str, int]) -> None:
    for symbol, form in program.bounds:
        if symbol not in dims or not form.symbols <= set(dims):
            continue
        limit = form.evaluate(dims)
        if dims[symbol] > limit:
            fail("E7017", f"dimension `{symbol}` is {dims[symbol]}, but `dim {symbol} <= {form}` is declared", None)


def _check_type(modules: dict[str, ModuleDef], ty: Type, env: Env, where: str) -> None:
    """Every dimension of the type is a natural (E7017), and the type has a value (E7003)."""
    match ty:
        case Real(shape) | Mask(shape):
            axes(shape, env, where)
        case Idx(bound, shape):
            entries = shape_of(axes(shape, env, where))
            if length(bound, env, where) == 0 and 0 not in entries:
                fail("E7003", f"{where} : {ty} has no value: there is no index below 0", None)
        case TupleOf(items):
            for i, item in enumerate(items):
                _check_type(modules, item, env, f"{where}.{i}")
        case _:
            return


def _check_indices(ty: Type, value: Value, env: Env, where: str) -> None:
    match ty, value:
        case Idx(bound, _), IndexTensor(_, _, data):
            limit = length(bound, env, where)
            if data.size and (int(data.min()) < 0 or int(data.max()) >= limit):
                bad = int(data.min()) if int(data.min()) < 0 else int(data.max())
                fail("E7013", f"{where} holds the index {bad}, which is not below {bound} = {limit}", None)
        case TupleOf(items), TupleValue(parts):
            for i, (t, v) in enumerate(zip(items, parts, strict=True)):
                _check_indices(t, v, env, f"{where}.{i}")
        case _:
            return


# ----------------------------------------------------------------------------------------------------------- synthesis


@dataclass(slots=True)
class Drawn:
    """The arguments of an entry by name, each drawn when it is first asked for: a normal draw takes 8 µs."""

    program: Program
    bound: Bound
    seed: int
    _made: dict[str, Value] = field(default_factory=dict[str, Value])

    def __getitem__(self, name: str) -> Value:
        """E7014 for an argument that no seed can give."""
        if name not in self._made:
            params = self.bound.fn.params
            k = [p.name for p in params].index(name)
            key = keys.split(keys.master(self.seed), len(params))[k]
            given = self.bound.given[k]
            ty = params[k].type
            made = drawn(self.program.modules, ty, self.bound.env, key, f"`{name}`") if given is None else given
            self._made[name] = made
        return self._made[name]


def synthesized(program: Program, bound: Bound, seed: int) -> Drawn:
    """The arguments of the entry. E7020 for a seed that is none."""
    if not 0 <= seed < keys.SEED_LIMIT:
        fail("E7020", f"a seed is a natural below 2^64, not {seed}", None, exit_status=2)
    return Drawn(program, bound, seed)


def synthesize(program: Program, bound: Bound, seed: int) -> tuple[Value, ...]:
    """All arguments of the entry. E7014 for a missing one that no seed can give."""
    made = synthesized(program, bound, seed)
    return tuple(made[p.name] for p in bound.fn.params)


def require(bound: Bound, given: Mapping[str, Node]) -> None:
    """E7014 for a parameter that is not `given`, and that no seed can give."""
    for p in bound.fn.params:
        if p.name not in given and isinstance(p.type, Hyper):
            _needed(p.type, f"`{p.name}`")


def _needed(ty: Type, where: str) -> NoReturn:
    fail("E7014", f"{where} : {ty} has to be given", None, help=f"--arg {where.strip('`')}=VALUE")


def prepare(
    program: Program, entry: str, given: Mapping[str, Node], dims: Mapping[str, int], seed: int
) -> tuple[Bound, tuple[Value, ...]]:
    """`bind`, then `synthesize`."""
    bound = bind(program, entry, given, dims)
    return bound, synthesize(program, bound, seed)


def drawn(modules: dict[str, ModuleDef], ty: Type, env: Env, key: bytes, where: str) -> Value:
    """A value of a type, from a key."""
    match ty:
        case Real(shape):
            run = axes(shape, env, where)
            return Tensor(run, keys.standard_normal(key, _size(run, where)).reshape(shape_of(run)))
        case Idx(bound, shape):
            run, limit = axes(shape, env, where), length(bound, env, where)
            data = keys.below(key, _size(run, where), limit).reshape(shape_of(run))
            return IndexTensor(limit, run, data)
        case Mask(shape):
            run = axes(shape, env, where)
            return MaskTensor(run, np.ones(shape_of(run), dtype=np.bool_))
        case Key(shape):
            return _keys(shape_of(axes(shape, env, where)), key, where)
        case TupleOf(items):
            own = keys.split(key, len(items))
            parts = [drawn(modules, t, env, k, f"{where}.{i}") for i, (t, k) in enumerate(zip(items, own, strict=True))]
            return TupleValue(tuple(parts))
        case Params(instance):
            return initial(modules, instance, env, key, where)
        case _:
            return _needed(ty, where)


def _keys(lengths: tuple[int, ...], key: bytes, where: str) -> Value:
    """A key, or the stack of a fold's keys: split once per layer."""
    if not lengths:
        return KeyValue(key)
    if lengths[0] > MAX_LAYERS:
        fail("E7006", f"{where} has {lengths[0]:,} keys; at most {MAX_LAYERS:,} are drawn", None, exit_status=3)
    return StackValue(tuple(_keys(lengths[1:], k, where) for k in keys.split(key, lengths[0])))


def _size(run: RunAxes, where: str) -> int:
    """The entries of a tensor to be drawn. E7006 (exit status 3) where they do not fit in memory."""
    entries = int(np.prod(shape_of(run), dtype=object))
    needed, limit = entries * DRAWN, memory_limit()
    if needed > limit:
        text = (
            f"drawing the {entries:,} entries of {where} takes {written_size(needed)}, of {written_size(limit)} allowed"
        )
        fail("E7006", text, None, help="take smaller dimensions", exit_status=3)
    return entries


def initial(modules: dict[str, ModuleDef], instance: Instance, env: Env, key: bytes, where: str) -> Value:
    """What `M.init(key)` gives: the key is split once per field, in declaration order; a stack splits its key once per
    layer, a composition once per part."""
    match instance:
        case Applied(module):
            fields = modules[module].fields
            own = keys.split(key, len(fields))
            made: dict[str, Value] = {}
            for f, k in zip(fields, own, strict=True):
                ty = field_type(modules, instance, f.name)
                if isinstance(f, ParamField) and isinstance(ty, Real):
                    made[f.name] = _leaf(f.init, ty.shape, env, k, where)
                elif isinstance(ty, Params):
                    made[f.name] = initial(modules, ty.instance, env, k, where)
            return TreeValue(made)
        case Stacked(count, inner):
            total = length(count, env, where)
            if total > MAX_LAYERS:
                fail("E7006", f"{where} has {total:,} layers; at most {MAX_LAYERS:,} are drawn", None, exit_status=3)
            own = keys.split(key, total)
            layers = [initial(modules, inner, env, k, where) for k in own]
            return stack(layers, layers[0] if layers else initial(modules, inner, env, key, where))
        case Composed(outer, inner):
            first, second = keys.split(key, 2)
            return TreeValue(
                {
                    "outer": initial(modules, outer, env, first, where),
                    "inner": initial(modules, inner, env, second, where),
                }
            )


def _leaf(init: Init, shape: Shape, env: Env, key: bytes, where: str) -> Tensor:
    run = axes(shape, env, where)
    if init.kind in ("normal", "xavier_uniform"):
        _size(run, where)
    return Tensor(run, initializer(init.kind, init.std, shape_of(run), key))


def initializer(kind: str, std: str | None, shape: tuple[int, ...], key: bytes) -> HostReals:
    """The draws of an initializer (spec: "Initializers"), of `shape`; zeros and ones repeat one entry."""
    match kind:
        case "normal":
            return keys.normal(key, int(np.prod(shape, dtype=object)), Fraction(std or "1")).reshape(shape)
        case "xavier_uniform":
            return keys.xavier_uniform(key, shape).reshape(shape)
        case "ones":
            return np.broadcast_to(np.float64(1.0), shape)
        case _:
            return np.broadcast_to(np.float64(0.0), shape)
