"""What a generated body reads, by operand: for its value, or for its shape only.

Shape-only reads of a value nothing else needs are redirected to a value of the same type that is computed anyway. Equal
types have equal shapes in one function: dims and the prefix are fixed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from presk_rel.ad.interned import TypeNumbers
from presk_rel.core.ir import Binding, Call, Function, Prim, Var, callees, operands
from presk_rel.core.prims import PRIMS


@dataclass(frozen=True, slots=True)
class Demand:
    """The components of a result tuple that are read; `every` when it is read whole."""

    components: frozenset[int]
    every: bool = False

    @staticmethod
    def whole() -> Demand:
        return Demand(frozenset(), True)

    def __or__(self, other: Demand) -> Demand:
        return Demand(self.components | other.components, self.every or other.every)


@dataclass(slots=True)
class _Liveness:
    """`live` names are computed; `demands` says what is read of the results of calls of narrowable functions."""

    binding: dict[Var, Binding]
    narrowable: set[str]
    live: set[Var] = field(default_factory=set[Var])
    demands: dict[Var, Demand] = field(default_factory=dict[Var, Demand])

    def mark(self, v: Var) -> list[Var]:
        """`v` and everything it reads for its value is live; what was not before."""
        stack, new = [v], list[Var]()
        while stack:
            name = stack.pop()
            if name in self.live:
                continue
            self.live.add(name)
            new.append(name)
            binding = self.binding.get(name)
            if binding is not None:
                stack.extend(self._reads(binding))
        return new

    def mark_whole(self, v: Var) -> list[Var]:
        """`v` is live for its shape, which is that of the whole of it; what was not before."""
        if self._narrowable(v):
            self.demands[v] = Demand.whole()
        return self.mark(v)

    def _reads(self, b: Binding) -> Iterator[Var]:
        for i, v in enumerate(operands(b.op)):
            if _shape_only(b, i):
                continue
            if self._narrowable(v):
                one = _component(b)
                self.demands[v] = self.demands.get(v, one) | one
            yield v

    def _narrowable(self, v: Var) -> bool:
        made = self.binding.get(v)
        return made is not None and isinstance(made.op, Call) and made.op.fn in self.narrowable


def _component(b: Binding) -> Demand:
    """What `b` reads of a tuple it reads."""
    match b.op:
        case Prim("proj", (int(i),), _):
            return Demand(frozenset({i}))
        case _:
            return Demand.whole()


def _shape_only(b: Binding, i: int) -> bool:
    return isinstance(b.op, Prim) and i in PRIMS[b.op.op].shape_only


def live_bindings(
    function: Function, narrowable: set[str], number: TypeNumbers
) -> tuple[tuple[Binding, ...], dict[str, Demand]]:
    """The bindings that are read, templates redirected, and what is read of each function in `narrowable` or called."""
    state = _Liveness({b.name: b for b in function.bindings}, narrowable)
    state.mark_whole(function.ret)
    templates = _templates(function, state, number)
    kept = tuple(_redirected(b, templates) for b in function.bindings if b.name in state.live)
    return kept, _read(kept, state)


def _templates(function: Function, state: _Liveness, number: TypeNumbers) -> dict[tuple[Var, int], Var]:
    """Where each shape-only operand reads instead. A value read anyway comes first, then a parameter; else the template
    itself must be computed, which may make it the template of a later one."""
    if not any(isinstance(b.op, Prim) and PRIMS[b.op.op].shape_only for b in function.bindings):
        return {}
    types = {p.name: number(p.type) for p in function.params} | {b.name: number(b.type) for b in function.bindings}
    position = {b.name: i for i, b in enumerate(function.bindings)}
    unread = {types[p.name]: p.name for p in reversed(function.params)}
    read = {types[p.name]: p.name for p in reversed(function.params) if p.name in state.live}
    redirect: dict[tuple[Var, int], Var] = {}
    waiting = [b.name for b in reversed(function.bindings) if b.name in state.live]
    while waiting:
        b = state.binding[waiting.pop()]
        for i, t in enumerate(operands(b.op)):
            if t in state.live or t not in position or not _shape_only(b, i):  # a parameter costs nothing
                continue
            other = read.get(types[t]) or unread.get(types[t])
            if other is not None and position.get(other, -1) < position[b.name]:
                redirect[b.name, i] = other
                continue
            waiting.extend(v for v in state.mark_whole(t) if v in position)
            read[types[t]] = t
        read.setdefault(types[b.name], b.name)
    return redirect


def _redirected(b: Binding, templates: dict[tuple[Var, int], Var]) -> Binding:
    if not isinstance(b.op, Prim) or not PRIMS[b.op.op].shape_only:
        return b
    return replace(b, op=replace(b.op, args=tuple(templates.get((b.name, i), v) for i, v in enumerate(b.op.args))))


def _read(kept: tuple[Binding, ...], state: _Liveness) -> dict[str, Demand]:
    out: dict[str, Demand] = {}
    for b in kept:
        for fn in callees(b.op):
            one = state.demands[b.name] if isinstance(b.op, Call) and fn in state.narrowable else Demand.whole()
            out[fn] = out[fn] | one if fn in out else one
    return out
