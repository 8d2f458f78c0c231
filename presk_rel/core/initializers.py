"""`M.init(key) -> params M` of every module (spec: "Initializers" and "What lowering does").

The key is split once per field in declaration order; a stacked sub-module splits its key once per layer and stacks the
layers' trees. A module without a random initializer splits nothing and does not use Rand.

    fn Linear.init{In Out}(key : key) -> params Linear{In, Out} uses Rand {
      %1 : (key, key) = split_key 2 key
      %2 : key = %1.0
      w : ℝ[In, Out] = xavier_uniform %2
      b : ℝ[Out] = zeros
      %5 : params Linear{In, Out} = record w, b
      return %5
    }
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from presk_rel.core.ir import Binding, Call, Function, Op, Param, Prim
from presk_rel.core.names import Numbered
from presk_rel.core.numbers import decimal
from presk_rel.core.verify_modules import modules_in
from presk_rel.diagnostics import Diagnostic
from presk_rel.elab.ty import (
    Applied,
    Composed,
    Instance,
    Key,
    ModuleDef,
    ParamField,
    Params,
    Stacked,
    TupleOf,
    Type,
    UseField,
)
from presk_rel.smt.linear import Linear, symbol

MAX_LAYERS = 10_000
"""The most layers an initializer is written out for."""

KEY = Key()


def initializers(modules: dict[str, ModuleDef]) -> dict[str, Function]:
    """The initializers of all modules that have one (`initializer_problem`)."""
    random = _users_of(modules, {n for n, m in modules.items() if _draws(m)})
    without = _users_of(modules, {n for n, m in modules.items() if _uncountable(m) is not None})
    built = (_Init(modules, m, n in random).function() for n, m in modules.items() if n not in without)
    return {f.name: f for f in built}


def missing_initializer(modules: dict[str, ModuleDef], name: str) -> Diagnostic | None:
    """E5002 when `name`, `M.init`, is the initializer of a module that cannot have one."""
    module, _, member = name.rpartition(".")
    definition = modules.get(module) if member == "init" else None
    if definition is None:
        return None
    return initializer_problem(modules, Applied(module, tuple(symbol(d) for d in definition.dims)))


def initializer_problem(modules: dict[str, ModuleDef], instance: Instance) -> Diagnostic | None:
    """Why an instance has no initializer (E5002): a stack whose count is not a constant. Asked when one is needed, so
    that such modules can still be checked, differentiated, and run on parameters that are given."""
    bad = {name: count for name, m in modules.items() if (count := _uncountable(m)) is not None}
    affected = _users_of(modules, set(bad))
    hit = [m for m in modules_in(instance) if m in affected]
    count = _count_problem(instance)
    if not hit and count is None:
        return None
    where = next((f"in module {name}" for name in bad), "here") if hit else "here"
    shown = next(iter(bad.values())) if hit else count
    return Diagnostic(
        "E5002",
        f"`{instance}` cannot be initialized: the count of `stack{{{shown}}}` {where} is not a constant of at most "
        f"{MAX_LAYERS}",
        None,
        help="an initializer draws every layer from its own key: give the stack a constant count, or pass the "
        "parameters as an argument",
    )


def _draws(module: ModuleDef) -> bool:
    kinds = {f.init.kind for f in module.fields if isinstance(f, ParamField)}
    return bool(kinds & {"normal", "xavier_uniform"})


def _uncountable(module: ModuleDef) -> Linear | None:
    """The count of a stack that no initializer can be written out for."""
    uses = (f.instance for f in module.fields if isinstance(f, UseField))
    return next((c for i in uses if (c := _count_problem(i)) is not None), None)


def _count_problem(instance: Instance) -> Linear | None:
    match instance:
        case Applied():
            return None
        case Stacked(count, inner):
            return _count_problem(inner) if count.is_constant and count.const <= MAX_LAYERS else count
        case Composed(outer, inner):
            return _count_problem(outer) or _count_problem(inner)
        case _:
            assert_never(instance)


def _users_of(modules: dict[str, ModuleDef], seeds: Iterable[str]) -> set[str]:
    """The seeds, and every module that includes one of them, directly or not."""
    users: dict[str, list[str]] = {}
    for name, module in modules.items():
        for field in module.fields:
            if isinstance(field, UseField):
                for used in modules_in(field.instance):
                    users.setdefault(used, []).append(name)
    found = set(seeds)
    waiting = sorted(found)
    while waiting:
        for user in users.get(waiting.pop(), []):
            if user not in found:
                found.add(user)
                waiting.append(user)
    return found


class _Init:
    """One initializer in the making."""

    def __init__(self, modules: dict[str, ModuleDef], module: ModuleDef, random: bool) -> None:
        self.modules = modules
        self.module = module
        self.random = random
        self.names = Numbered()
        self.key = self.names.new("key")
        self.bindings: list[Binding] = []

    def function(self) -> Function:
        m = self.module
        whole = Params(Applied(m.name, tuple(symbol(d) for d in m.dims)))
        keys = self._split(self.key, len(m.fields)) if m.fields else self.key
        fields: list[str] = []
        for i, field in enumerate(m.fields):
            match field:
                case ParamField():
                    fields.append(self._param(field, keys, i))
                case UseField(name, instance):
                    fields.append(self._tree(instance, self._part(keys, i), name))
                case _:
                    assert_never(field)
        ret = self._emit(whole, Prim("record", (), tuple(fields)))
        uses = ("Rand",) if self.random else ()
        return Function(f"{m.name}.init", m.dims, (Param(self.key, KEY),), whole, tuple(self.bindings), ret, uses)

    def _emit(self, ty: Type, op: Op, want: str | None = None) -> str:
        name = self.names.new(want)
        self.bindings.append(Binding(name, ty, op))
        return name

    def _split(self, key: str, n: int) -> str:
        if not self.random:
            return key
        return self._emit(TupleOf((KEY,) * n), Prim("split_key", (n,), (key,)))

    def _part(self, keys: str, i: int) -> str:
        return self._emit(KEY, Prim("proj", (i,), (keys,))) if self.random else keys

    def _param(self, field: ParamField, keys: str, i: int) -> str:
        match field.init.kind:
            case "zeros" | "ones" as kind:
                return self._emit(field.type, Prim(kind, (), ()), field.name)
            case "normal":
                op = Prim("normal", (decimal(field.init.std or "1"),), (self._part(keys, i),))
            case "xavier_uniform":
                op = Prim("xavier_uniform", (), (self._part(keys, i),))
            case _:
                assert_never(field.init.kind)
        return self._emit(field.type, op, field.name)

    def _tree(self, instance: Instance, key: str, want: str | None = None) -> str:
        ty = Params(instance)
        match instance:
            case Applied(module, args):
                return self._emit(
                    ty, Call(f"{module}.init", tuple(zip(self.modules[module].dims, args, strict=True)), (key,)), want
                )
            case Composed(outer, inner):
                keys = self._split(key, 2)
                parts = (self._tree(outer, self._part(keys, 0)), self._tree(inner, self._part(keys, 1)))
                return self._emit(ty, Prim("record", (), parts), want)
            case Stacked(count, inner):
                return self._emit(ty, Prim("stack_params", (), self._layers(count, inner, key)), want)
            case _:
                assert_never(instance)

    def _layers(self, count: Linear, inner: Instance, key: str) -> tuple[str, ...]:
        n = int(count.const)
        if n == 0:
            return ()
        keys = self._split(key, n)
        return tuple(self._tree(inner, self._part(keys, i)) for i in range(n))
