"""What a backward fold needs of the forward one, by cost: kept in a stack, or computed again where it is needed.

    F  = fold L forward(stacked s; acc (h, r); e) scan          r: what an iteration keeps
    R' = fold L shift(stacked F.1.r; acc F.0.r) reverse scan    slot i: the r that iteration i computed
    H  = fold L backward(stacked …, R'; acc c; …)

`backward` may compute r itself, from slice i of s and of F.1.h and from e, by the code of `forward`. Keeping costs
writing two stacks, the second one from the first, per part; computing again costs what its operations cost, as often as
the fold counts. Parts are moved from the one side to the other while that makes the sum less. What takes a contraction
is always kept: no gradient contracts more than one that keeps everything. What the e-graph makes of either is not known
here: `optimize` compares this choice with keeping everything and with keeping as little as may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from presk_rel.core.ir import Fold, Function, Param, Var, operands
from presk_rel.core.names import Fresh
from presk_rel.egraph.budget import Budget, Limits
from presk_rel.egraph.cost import BYTE, LAUNCH, CostModel, Work, operation
from presk_rel.egraph.folds.plan import AGAIN, FunctionPlan, Wanted
from presk_rel.egraph.folds.views import Path, Ref, View, paths
from presk_rel.egraph.folds.write import Names, Writer
from presk_rel.elab.ty import TupleOf, Type
from presk_rel.smt.linear import Linear, symbol

STACKS = 2
"""A part that is kept is written to the stack of the accumulators before each iteration, and moved on to another."""

MANY = 100
"""Of more parts than this, all are kept, or all computed again."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The part `path` of the accumulator of the fold `forward`, which the body of fold `backward` reads as `ref`."""

    backward: Var
    ref: Ref
    forward: Var
    path: Path


Choice = tuple[tuple[Kept, ...], tuple[Kept, ...]]
"""The parts of one forward fold that are computed again, and those that are kept."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The functions with residuals computed again, and the folds in them that do so, by function and name."""

    functions: dict[str, Function]
    folds: frozenset[tuple[str, Var]]


def recomputed(
    functions: Mapping[str, Function],
    names: Iterable[str],
    model: CostModel,
    budget: Budget | None = None,
    *,
    everything: bool = False,
) -> Recomputed | None:
    """The functions where what is cheaper to compute again is, or `everything` that may be; None where nothing is. What
    is not looked at within the budget is kept."""
    work = _Work(dict(functions), Fresh(names), model, budget or Budget.of(Limits()), everything)
    for name in functions:
        work.function(name)
    return Recomputed(work.made, frozenset(work.folds)) if work.folds else None


def stacking(function: Function, model: CostModel) -> int:
    """What the stacks that the scans of a function write cost, by the same price as a kept part."""
    return sum(
        stacks(b.op.count, b.op.body, b.type, model, scan=b.op.scan)
        for b in function.bindings
        if isinstance(b.op, Fold)
    )


def stacks(count: Linear, body: str, ty: Type, model: CostModel, *, scan: bool) -> int:
    """The stacks that a fold of this type writes, and those of the folds in its body."""
    own = 0
    if scan and isinstance(ty, TupleOf):
        own = LAUNCH * len(paths(ty.items[1])) + 2 * BYTE * model.bytes(ty.items[1])
    for name in model.nested(body) if body not in model.stacked else ():
        if name not in model.stacked:
            model.stacked[name] = stacking(model.functions[name], model)
    return own + model.length(count) * model.stacked.get(body, 0)


def kept_residuals(view: View, bodies: Mapping[str, View]) -> list[Kept]:
    """All residuals of a function's folds, in order."""
    found: list[Kept] = []
    for b in view.function.bindings:
        if not isinstance(b.op, Fold):
            continue
        params = bodies[b.op.body].function.params
        for param, operand in zip(params, b.op.stacked, strict=False):
            for path, ref in sorted(view.parts[operand].items()):
                source = _computed(view, bodies, ref)
                own = bodies[b.op.body].type_of((param.name, path))
                if (
                    source is not None
                    and _fold(view, source[0]).count == b.op.count
                    and own == _type(view, bodies, source)
                ):
                    found.append(Kept(b.name, (param.name, path), *source))
    return found


def _computed(view: View, bodies: Mapping[str, View], ref: Ref) -> tuple[Var, Path] | None:
    """The fold, and the part of its accumulator, whose values of each iteration a stack holds: the stack of a fold that
    hands on what another one scanned."""
    name, path = ref
    moved = view.bindings.get(name)
    if moved is None or not isinstance(moved.op, Fold) or not moved.op.scan or path[:1] != (1,):
        return None
    shift = moved.op
    body = bodies[shift.body]
    if len(shift.stacked) != 1 or body.parts[body.function.ret] != body.parts[body.function.params[0].name]:
        return None
    history, last = view.parts[shift.stacked[0]][path[1:]], view.parts[shift.acc][path[1:]]
    source = view.bindings.get(history[0])
    if (
        source is None
        or not isinstance(source.op, Fold)
        or not source.op.scan
        or last != (history[0], (0, *history[1][1:]))
    ):
        return None
    same = source.op.count == shift.count and source.op.reverse != shift.reverse and history[1][0] == 1
    return (source.name, history[1][1:]) if same else None


def _type(view: View, bodies: Mapping[str, View], source: tuple[Var, Path]) -> Type:
    """The type of what an iteration computes."""
    body = bodies[_fold(view, source[0]).body]
    return body.type_of(body.parts[body.function.ret][source[1]])


def _fold(view: View, name: Var) -> Fold:
    op = view.bindings[name].op
    assert isinstance(op, Fold)
    return op


@dataclass(slots=True)
class _Work:
    made: dict[str, Function]
    names: Fresh
    model: CostModel
    budget: Budget
    everything: bool
    folds: list[tuple[str, Var]] = field(default_factory=list[tuple[str, Var]])
    views: dict[str, View] = field(default_factory=dict[str, View])

    def view(self, name: str) -> View:
        if name not in self.views:
            self.views[name] = View(self.made[name])
        return self.views[name]

    def function(self, name: str) -> None:
        """Write a function whose folds compute again what is chosen."""
        view = self.view(name)
        bodies = {b.op.body: self.view(b.op.body) for b in view.function.bindings if isinstance(b.op, Fold)}
        groups: dict[tuple[Var, Var], list[Kept]] = {}
        for kept in kept_residuals(view, bodies):
            groups.setdefault((kept.backward, kept.forward), []).append(kept)
        chosen: dict[Var, list[Choice]] = {}
        for (backward, _), parts in groups.items():
            again = self.choose(view, parts)
            if again:
                chosen.setdefault(backward, []).append((again, tuple(p for p in parts if p not in again)))
        if chosen:
            self.rewrite(name, view, chosen)

    # ------------------------------------------------------------------------------------------------ by cost

    def choose(self, view: View, parts: list[Kept]) -> tuple[Kept, ...]:
        """The parts that are cheaper to compute again, of those that may be. Of all of them and of none, the better
        start."""
        body = self.view(_fold(view, parts[0].forward).body)
        times = self.model.length(_fold(view, parts[0].forward).count)
        price = _Price(FunctionPlan(body, {}, {}), self.model, self.budget, times, parts)
        free = price.without_contractions()
        if self.everything:
            return free
        starts = [frozenset[Kept](), frozenset(free)]
        best = min((price.improved(s, free) for s in starts), key=lambda s: (price.of(s), len(s)))
        return tuple(p for p in parts if p in best)

    # ------------------------------------------------------------------------------------------------ writing

    def rewrite(self, name: str, view: View, chosen: Mapping[Var, list[Choice]]) -> None:
        function = view.function
        plan = FunctionPlan(view, {}, {})
        wanted = plan.needed(view.parts[function.ret].values())
        w = Writer(plan, None, None, Names.of(function))
        w.bases.update((p.name, p.name) for p in function.params)
        for b in function.bindings:
            if b.name not in wanted:
                continue
            if b.name not in chosen:
                w.emit(b)
                continue
            assert isinstance(b.op, Fold)
            new = self.fold(view, w, b.op, chosen[b.name])
            w.bases[b.name] = w.bind(b.type, new, b)
            self.folds.append((name, b.name))
        ret = w.whole(function.ret)
        self.made[name] = Function(
            name, function.dims, function.params, function.result, tuple(w.bindings), ret, function.uses, function.span
        )
        self.views.pop(name)

    def fold(self, view: View, w: Writer, fold: Fold, chosen: list[Choice]) -> Fold:
        """The backward fold whose body computes the chosen parts."""
        old = self.view(fold.body)
        n = len(fold.stacked)
        params = old.function.params
        plan = FunctionPlan(old, {}, {})
        inside = Writer(plan, None, None, Names.of(old.function))
        inside.bases.update((p.name, p.name) for p in params)
        stacked: list[tuple[Var, Param]] = []
        extras: list[tuple[Var, Param]] = []
        dims = dict.fromkeys(old.function.dims)
        for again, rest in chosen:
            forward = _fold(view, again[0].forward)
            source = self.view(forward.body)
            dims |= dict.fromkeys(source.function.dims)
            roots, stops = _roots(source, again), _stops(source, rest)
            needed = FunctionPlan(source, {}, {}).needed(roots.values(), stops)
            copy = Writer(FunctionPlan(source, {}, {}), None, None, inside.names, inside.bindings, guest=True)
            copy.split = {p.name for p in source.function.params} | {ref[0] for ref in stops}
            copy.parts.update((ref, inside.part(kept.ref)) for ref, kept in stops.items())
            for place, param in enumerate(source.function.params):
                for path in sorted(needed.get(param.name, ())):
                    new = Param(inside.names.fresh(None), source.type_of((param.name, path)))
                    copy.parts[param.name, path] = new.name
                    into = stacked if place <= len(forward.stacked) else extras
                    into.append((w.part(_given(view, again[0].forward, place, path)), new))
            copy.emit_all(needed)
            inside.parts.update((kept.ref, copy.part(roots[kept])) for kept in again)
        inside.emit_all(plan.needed(old.parts[old.function.ret].values()))
        ret = inside.whole(old.function.ret)
        name = self.names.like(f"{fold.body}{AGAIN}")
        own = (*params[:n], *(p for _, p in stacked), *params[n:], *(p for _, p in extras))
        self.made[name] = Function(
            name, tuple(dims), own, old.function.result, tuple(inside.bindings), ret, old.function.uses
        )
        return Fold(
            fold.count,
            name,
            tuple((d, symbol(d)) for d in dims),
            (*map(w.whole, fold.stacked), *(v for v, _ in stacked)),
            w.whole(fold.acc),
            (*map(w.whole, fold.extras), *(v for v, _ in extras)),
            fold.reverse,
            fold.scan,
        )


def _roots(source: View, again: Iterable[Kept]) -> dict[Kept, Ref]:
    """Where the forward body computes the parts."""
    results = source.parts[source.function.ret]
    return {kept: results[kept.path] for kept in again}


def _stops(source: View, rest: Iterable[Kept]) -> dict[Ref, Kept]:
    """What of the forward body is there because it is kept."""
    results = source.parts[source.function.ret]
    params = {p.name for p in source.function.params}
    return {results[kept.path]: kept for kept in rest if results[kept.path][0] not in params}


def _given(view: View, forward: Var, place: int, path: Path) -> Ref:
    """What slice i of becomes the part of the parameter in iteration i: of a stacked operand, of the accumulators
    before; or the extra itself."""
    fold = _fold(view, forward)
    if place == len(fold.stacked):
        return (forward, (1, *path))
    return view.parts[operands(fold)[place]][path]


@dataclass(slots=True)
class _Price:
    """What it costs to compute some of the parts again and keep the others."""

    source: FunctionPlan
    model: CostModel
    budget: Budget
    times: int
    parts: list[Kept]
    known: dict[frozenset[Kept], int] = field(default_factory=dict[frozenset[Kept], int])
    works: dict[Var, Work] = field(default_factory=dict[Var, Work])

    def of(self, again: frozenset[Kept]) -> int:
        if again not in self.known:
            self.known[again] = self._of(again)
        return self.known[again]

    def _of(self, again: frozenset[Kept]) -> int:
        view = self.source.view
        self.budget.priced -= len(view.function.bindings)
        rest = [p for p in self.parts if p not in again]
        kept = {view.parts[view.function.ret][p.path] for p in rest}
        stored = sum(STACKS * (LAUNCH + 2 * BYTE * self.times * self.model.bytes(view.type_of(r))) for r in kept)
        needed = self.source.needed(_roots(view, again).values(), _stops(view, rest))
        return stored + self.times * self.computing(needed).units

    def without_contractions(self) -> tuple[Kept, ...]:
        """The parts that take no contraction from what is given and the other parts. They take none together either:
        what one reads of another is computed by that one's operations."""
        roots, stops = _roots(self.source.view, self.parts), _stops(self.source.view, self.parts)
        free: list[Kept] = []
        for p, r in roots.items():
            if self.over():
                break
            self.budget.priced -= len(self.source.view.function.bindings)
            if not self.computing(self.source.needed([r], stops.keys() - {r})).contracting:
                free.append(p)
        return tuple(free)

    def over(self) -> bool:
        """Whether no more can be looked at."""
        if self.budget.priced > 0 and not self.budget.late():
            return False
        self.budget.cut("residuals")
        return True

    def computing(self, needed: Wanted) -> Work:
        """What one iteration does to compute this."""
        view, total = self.source.view, Work()
        for b in view.function.bindings:
            if b.name in needed:
                if b.name not in self.works:
                    name, attrs = operation(b.op)
                    read = tuple(view.types[v] for v in operands(b.op))
                    self.works[b.name] = self.model.work(name, attrs, read, b.type)
                total += self.works[b.name]
        return total

    def improved(self, start: frozenset[Kept], free: tuple[Kept, ...]) -> frozenset[Kept]:
        """No single part that may be computed again is better off on the other side."""
        best = start
        while 0 < len(free) <= MANY and not self.over():
            found = min((best ^ {p} for p in free), key=self.of)
            if self.of(found) >= self.of(best):
                return best
            best = found
        return best
