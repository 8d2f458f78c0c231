"""What the sweep of a `.vjp` reads of its forward pass: the plan by which `ad.store` splits it (spec: "Residuals").

A residual is a value of the forward pass, or the residuals of a callee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from presk_rel.ad.body import zeros_exist
from presk_rel.ad.known import known_functions
from presk_rel.ad.prune import Generated
from presk_rel.ad.reads import Reads, sweep_reads
from presk_rel.core.ir import Apply, Binding, Call, DimArgs, Fold, Function, Var, operands
from presk_rel.core.shapes import absorb, slice_type, stack_type, substitute
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Shape, TupleOf, Type
from presk_rel.smt.linear import symbol

DEEPEST, WIDEST = 24, 1024
"""A callee whose residuals nest deeper, or are more, keeps its `.vjp` whole and recomputes: types stay bounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """One residual: `primal` is the binding of the forward pass whose value it is, or, with `callee`, whose callee's
    residuals it is; `local` is its name in the sweep."""

    primal: Var
    local: Var
    type: Type
    callee: Split | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """How a `.vjp` splits: the parameters of the primal its sweep reads, by index, the residuals in the order that the
    forward pass computes them in, `type` the tuple's, in the dims and prefix of the primal, and what the sweep reads.
    The tuple nests `depth` deep and holds `size` values."""

    generated: Generated
    fwd: str
    bwd: str
    params: tuple[int, ...]
    residuals: tuple[Residual, ...]
    type: TupleOf
    reads: Reads
    depth: int
    size: int


def plan(made: Generated, forward: Forward, functions: Mapping[str, Function], splits: Mapping[str, Split]) -> Split:
    """The split of one `.vjp`, those of its callees being known."""
    vjp = functions[made.name]
    own = vjp.params[: len(forward.function.params)]
    reads = sweep_reads(vjp, made.copies, lambda b: _passed(made, b, splits))
    found = [Residual(made.origin[b.name], b.name, b.type) for b in vjp.bindings if b.name in reads.kept]
    for b in vjp.bindings:
        callee = callee_split(made, b, splits)
        if callee is not None and callee.residuals:
            ty = forward.residual_type(made.origin[b.name], callee, functions)
            found.append(Residual(made.origin[b.name], of_callee(b), ty, callee))
        layers = layers_split(made, b, functions, splits)
        ty = forward.layers_type(made.origin[b.name], layers, functions) if layers is not None else None
        if ty is not None:
            found.append(Residual(made.origin[b.name], of_callee(b), ty, layers))
    found.sort(key=lambda r: (forward.position[r.primal], r.callee is not None))
    head, _, suffix = made.name.rpartition(".vjp")
    params = tuple(i for i, p in enumerate(own) if p.name in reads.params)
    depth = 1 + max((r.callee.depth for r in found if r.callee is not None), default=0)
    size = sum(1 if r.callee is None else r.callee.size for r in found)
    ty = TupleOf(tuple(r.type for r in found))
    return Split(made, f"{head}.fwd{suffix}", f"{head}.bwd{suffix}", params, tuple(found), ty, reads, depth, size)


def of_callee(b: Binding) -> Var:
    """How the residuals that the call `b` of a `.vjp` reads are listed; no binding has this name."""
    return f"{b.name}'"


def callee_split(made: Generated, b: Binding, splits: Mapping[str, Split]) -> Split | None:
    """The split of the `.vjp` that `b`, a binding of the sweep, calls; None where it is called whole."""
    if b.name in made.copies or not isinstance(b.op, Call):
        return None
    found = splits.get(b.op.fn)
    return None if found is None or found.depth > DEEPEST or found.size > WIDEST else found


def layers_split(
    made: Generated, b: Binding, functions: Mapping[str, Function], splits: Mapping[str, Split]
) -> Split | None:
    """The split of the `.vjp` that the body of the backward fold `b` calls, where it keeps residuals."""
    if b.name in made.copies or not isinstance(b.op, Fold) or b.name not in made.origin:
        return None
    calls = [c.op.fn for c in functions[b.op.body].bindings if isinstance(c.op, Call) and c.op.fn in splits]
    found = splits[calls[0]] if len(calls) == 1 else None
    if found is None or not found.residuals or found.depth > DEEPEST or found.size > WIDEST:
        return None
    return found


def _passed(made: Generated, b: Binding, splits: Mapping[str, Split]) -> tuple[Var, ...]:
    split = callee_split(made, b, splits)
    if split is None:
        return operands(b.op)
    assert isinstance(b.op, Call)
    return passed_on(split, b.op)


def passed_on(split: Split, call: Call) -> tuple[Var, ...]:
    """Of the arguments of a `.vjp`, those its `.bwd` takes: the parameters it reads, then the cotangent."""
    return (*(call.args[i] for i in split.params), call.args[-1])


class Forward:
    """The forward pass that a `.vjp` is split from: its bindings and types by name, closures seen through."""

    def __init__(self, primal: Function) -> None:
        self.function = primal
        self.position = {b.name: i for i, b in enumerate(primal.bindings)}
        self.types = {p.name: p.type for p in primal.params} | {b.name: b.type for b in primal.bindings}
        self._known = known_functions(primal.bindings)

    def call(self, name: Var) -> Call:
        """The direct call that a binding is."""
        op = self.function.bindings[self.position[name]].op
        match op:
            case Call():
                return op
            case Apply(fn, args):
                return self._known[fn].applied(args)
            case _:
                raise PreskBug("ad", f"{self.function.name}/{name} is no call")

    def residual_type(self, name: Var, callee: Split, functions: Mapping[str, Function]) -> Type:
        """The type of the callee's residuals where the binding calls it."""
        call = self.call(name)
        return self._seen(name, callee, functions[call.fn], call.dim_args, [self.types[v] for v in call.args])

    def layers_type(self, name: Var, layers: Split, functions: Mapping[str, Function]) -> Type | None:
        """The type of the stack of the residuals of the fold's iterations; None where they have none, or no zeros."""
        op = self.function.bindings[self.position[name]].op
        if not isinstance(op, Fold):
            raise PreskBug("ad", f"{self.function.name}/{name} is no fold")
        slices = [slice_type(op.count, self.types[v]) for v in op.stacked]
        args = [*(t for t in slices if t is not None), *(self.types[v] for v in (op.acc, *op.extras))]
        ty = self._seen(name, layers, functions[op.body], op.dim_args, args)
        return stack_type(op.count, ty) if zeros_exist(ty) else None

    def _seen(self, name: Var, callee: Split, f: Function, dim_args: DimArgs, args: list[Type]) -> Type:
        """The type of the callee's residuals in terms of the caller: the same object where the terms are the same, so
        that types that nest from callee to caller are not copied at every call."""
        given = dict(dim_args)
        prefixes: dict[str, Shape] = {}
        problem = absorb([substitute(p.type, given, {}) for p in f.params], args, prefixes)
        if problem is not None:
            raise PreskBug("ad", f"{self.function.name}/{name}: {problem}")
        changed = {d: n for d, n in given.items() if n != symbol(d)}
        moved = {p: lead for p, lead in prefixes.items() if lead != Shape(p, ())}
        return substitute(callee.type, changed, moved) if changed or moved else callee.type
