"""Dead code after differentiation: what a differentiation generated loses what nothing reads (spec: "Dead code after
differentiation").

Forward values no sweep needs go; a `.vjp` returns the cotangents its callers read, in their order, and no others; what
is read for its shape only is read elsewhere where that saves computing it. Bindings keep their names. Functions that a
caller outside the generated ones may read (`.grad`) keep their result whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from presk_rel.ad.graph import callees_first
from presk_rel.ad.interned import TypeNumbers
from presk_rel.ad.liveness import Demand, live_bindings
from presk_rel.ad.operators import KINDS
from presk_rel.ad.simplify import simplify
from presk_rel.core.ir import Binding, Call, Closure, Function, Prim, Program, Var
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import TupleOf

Kind = Literal["grad", "pullback", "pushforward", "vjp", "jvp", "helper", "fwd", "bwd"]


@dataclass(frozen=True, slots=True)
class Generated:
    """A function that differentiation wrote, and the one it was written for. In a `.vjp`, `copies` are the bindings
    that copy the forward body; `origin` says which binding of the primal a copy is of, and which one the call of
    another `.vjp` is the adjoint of."""

    name: str
    primal: str
    kind: Kind
    copies: frozenset[Var] = frozenset()
    origin: dict[Var, Var] = field(default_factory=dict[Var, Var], compare=False)


def prune(program: Program, made: Iterable[Generated], narrow: frozenset[Kind]) -> tuple[Program, list[Generated]]:
    """The program with the functions in `made` pruned (others untouched), and those of `made` still reached. Of the
    generated functions those of a kind in `narrow` may lose components of their result."""
    made = list(made)
    functions = dict(program.functions)
    names = {g.name for g in made}
    narrowable = {g.name for g in made if g.kind in narrow}
    for g in made:
        functions[g.name] = simplify(functions[g.name], functions)
    demands = _demands_of_others(functions, names, narrowable)
    order = [name for name in reversed(callees_first(functions)) if name in names]
    reached = {g.name for g in made if g.kind in KINDS} | demands.keys()
    number = TypeNumbers()
    for name in order:
        if name not in reached:
            continue
        narrowed = _narrow(functions[name], demands.get(name) if name in narrowable else None)
        bindings, read = live_bindings(narrowed, narrowable, number)
        functions[name] = replace(narrowed, bindings=bindings)
        reached.update(read)
        for callee, demand in read.items():
            demands[callee] = demands[callee] | demand if callee in demands else demand
    for name in order:
        if name in reached:
            functions[name] = _renumber(functions[name], demands)
        else:
            del functions[name]
    return replace(program, functions=functions), [g for g in made if g.name in reached]


def _demands_of_others(functions: Mapping[str, Function], made: set[str], narrowable: set[str]) -> dict[str, Demand]:
    """A function outside the generated ones reads the whole result of what it names."""
    demands: dict[str, Demand] = {}
    for name, function in functions.items():
        if name in made:
            continue
        for b in function.bindings:
            if isinstance(b.op, (Call, Closure)) and b.op.fn in narrowable:
                demands[b.op.fn] = Demand.whole()
    return demands


def _narrow(function: Function, demand: Demand | None) -> Function:
    """The result tuple cut down to the components someone reads."""
    if demand is None or demand.every:
        return function
    last = next((b for b in reversed(function.bindings) if b.name == function.ret), None)
    if last is None or not isinstance(last.type, TupleOf) or not isinstance(last.op, Prim) or last.op.op != "tuple":
        raise PreskBug("ad", f"{function.name} does not return a tuple")
    kept = demand.components
    result = TupleOf(tuple(t for i, t in enumerate(last.type.items) if i in kept))
    cut = replace(last, type=result, op=Prim("tuple", (), tuple(v for i, v in enumerate(last.op.args) if i in kept)))
    bindings = tuple(cut if b is last else b for b in function.bindings)
    return replace(function, result=result, bindings=bindings)


def _renumber(function: Function, demands: Mapping[str, Demand]) -> Function:
    """Calls of narrowed functions get the narrowed type, and projections of their results the new indices."""
    kept: dict[Var, list[int]] = {}
    return replace(function, bindings=tuple(_renumbered(b, demands, kept) for b in function.bindings))


def _renumbered(b: Binding, demands: Mapping[str, Demand], kept: dict[Var, list[int]]) -> Binding:
    match b.op:
        case Call(fn) if fn in demands and not demands[fn].every and isinstance(b.type, TupleOf):
            kept[b.name] = sorted(demands[fn].components)
            return replace(b, type=TupleOf(tuple(b.type.items[i] for i in kept[b.name])))
        case Prim("proj", (int(i),), (whole,)) if whole in kept:
            return replace(b, op=Prim("proj", (kept[whole].index(i),), (whole,)))
        case _:
            return b
