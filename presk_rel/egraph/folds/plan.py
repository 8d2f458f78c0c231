"""What becomes of the folds of a function, decided from what is read: backwards through the function, into the bodies.

A part of an accumulator is *read* if it is read after the fold, or by the body for a part that is. A body's code is
*invariant* if it reads no stacked operand and no part of the accumulator that changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from presk_rel.core.ir import Binding, Fold, Function, Prim, Var, operands
from presk_rel.core.prims import PRIMS
from presk_rel.egraph.budget import Budget, Limits, OutOfBudget
from presk_rel.egraph.folds.views import Parts, Path, Ref, View
from presk_rel.elab.ty import Type
from presk_rel.smt.linear import Linear

AGAIN = "'again"
"""How the name of a body ends that computes residuals again (`folds.residuals`) before it is made smaller."""

RECOMPUTE = "fold.recompute"

DEEPEST = 100
"""Folds in bodies of folds that are looked into: as many as parameter trees have levels at most."""

Wanted = Mapping[Var, frozenset[Path]]
"""Parts that are read, by the parameter or binding whose parts they are."""

TOTAL = frozenset(
    (
        *("add", "sub", "mul", "neg", "max", "min", "lt", "le", "gt", "ge", "eq", "abs", "sign", "relu", "heaviside"),
        *("exp", "tanh", "sigmoid", "sin", "cos", "gelu", "gelu'", "normal_pdf", "dot", "dot_vjp_l", "dot_vjp_r"),
        *("ein", "sum", "sum_to", "broadcast_like", "zeros_like", "ones_like"),
    )
)
"""Operations with a value everywhere: they may be computed before a fold that perhaps never runs its body."""


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """A fold in terms of its body (`Ref`s of it). `last` and `stacks` are the parts of its result that are read, `rep`
    the part that stands for each (`same-part`), `kept` those that are carried, `invariant` those that never change.
    `hoisted` are the invariant values that the new body takes as extras, `remaining` what it reads otherwise. `laws`
    say what changes; none: the fold stays as it is. `all_laws` are those of the folds in its body too."""

    binding: Binding
    fold: Fold
    last: tuple[Path, ...]
    stacks: tuple[Path, ...]
    rep: dict[Path, Path]
    kept: tuple[Path, ...]
    invariant: frozenset[Path]
    body: FunctionPlan
    hoisted: tuple[Ref, ...]
    remaining: Wanted
    laws: tuple[str, ...] = ()
    all_laws: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """What of a function is read, by the parameter or binding that it is a part of, and its folds by name. `changed`:
    a fold in it, or in a body that it keeps, does."""

    view: View
    wanted: Wanted
    folds: Mapping[Var, FoldPlan]
    changed: bool = False

    def reads(self, b: Binding) -> list[Ref]:
        """What a binding reads when its fold, if it is one, is as planned."""
        plan = self.folds.get(b.name)
        return fold_reads(self.view, plan) if plan is not None and plan.laws else self.view.read(b)

    def needed(self, roots: Iterable[Ref], stops: Collection[Ref] = ()) -> Wanted:
        """What is read for these parts, of parameters and bindings, where `stops` are given."""
        found: dict[Var, set[Path]] = {}
        _add(found, roots, stops)
        for b in reversed(self.view.function.bindings):
            if b.name in found:
                _add(found, self.reads(b), stops)
        return {name: frozenset(paths) for name, paths in found.items()}


def _add(found: dict[Var, set[Path]], refs: Iterable[Ref], stops: Collection[Ref]) -> None:
    for ref in refs:
        if ref not in stops:
            found.setdefault(ref[0], set()).add(ref[1])


@dataclass(slots=True)
class Planner:
    """Plans the functions of a program; each once for what is read of its result. OutOfBudget if they are too many, or
    nest too deeply."""

    functions: Mapping[str, Function]
    again: frozenset[tuple[str, Var]] = frozenset()
    budget: Budget = field(default_factory=lambda: Budget.of(Limits()))
    _depth: int = 0
    _views: dict[str, View] = field(default_factory=dict[str, View])
    _known: dict[tuple[str, frozenset[Path]], FunctionPlan] = field(
        default_factory=dict[tuple[str, frozenset[Path]], FunctionPlan]
    )

    def view(self, name: str) -> View:
        if name not in self._views:
            self._views[name] = View(self.functions[name])
        return self._views[name]

    def whole(self, name: str) -> FunctionPlan:
        """The plan where all of the result is read."""
        view = self.view(name)
        return self.plan(name, frozenset(view.parts[view.function.ret]))

    def plan(self, name: str, results: frozenset[Path]) -> FunctionPlan:
        """The plan where these parts of the result are read."""
        key = (name, results)
        if key not in self._known:
            view = self.view(name)
            self.budget.planned -= len(view.function.bindings)
            self.budget.watch("folds")
            if self.budget.planned <= 0 or self._depth > DEEPEST:
                raise OutOfBudget("folds")
            self._depth += 1
            self._known[key] = self._plan(view, results)
            self._depth -= 1
        return self._known[key]

    def _plan(self, view: View, results: frozenset[Path]) -> FunctionPlan:
        wanted: dict[Var, set[Path]] = {}
        folds: dict[Var, FoldPlan] = {}
        found = FunctionPlan(view, {}, folds)
        _add(wanted, (view.parts[view.function.ret][p] for p in sorted(results)), ())
        for b in reversed(view.function.bindings):
            if b.name in wanted and isinstance(b.op, Fold):
                folds[b.name] = self._fold(view, b, b.op, frozenset(wanted[b.name]))
            if b.name in wanted:
                _add(wanted, found.reads(b), ())
        changed = any(f.laws or f.body.changed for f in folds.values())
        return replace(found, wanted={name: frozenset(paths) for name, paths in wanted.items()}, changed=changed)

    def _fold(self, view: View, b: Binding, fold: Fold, results: frozenset[Path]) -> FoldPlan:
        body = self.view(fold.body)
        acc = body.function.params[len(fold.stacked)].name
        after, before = body.parts[body.function.ret], view.parts[fold.acc]
        last = sorted({p[1:] if fold.scan else p for p in results if not fold.scan or p[0] == 0})
        stacks = sorted({p[1:] for p in results if fold.scan and p[0] == 1})
        read = {p: (b.name, (0, *p) if fold.scan else p) for p in after}
        invariant = frozenset(
            p
            for p, ref in after.items()
            if ref == (acc, p)
            and p not in stacks
            and (p not in last or view.type_of(before[p]) == view.type_of(read[p]))
        )
        types = {p: (view.type_of(read[p]), body.type_of((acc, p)), body.type_of(after[p])) for p in after}
        rep = _representatives(before, after, acc, types)
        kept = _carried(body, acc, rep, invariant, {rep[p] for p in (*last, *stacks) if p not in invariant})
        while True:
            plan = self.plan(fold.body, frozenset(kept))
            more = {rep[p] for p in plan.wanted.get(acc, ()) if p not in invariant} | kept
            if more == kept:
                break
            kept = more
        hoisted = _hoisted(plan, fold, invariant, kept)
        remaining = plan.needed([after[p] for p in sorted(kept)], set(hoisted))
        found = FoldPlan(
            b, fold, tuple(last), tuple(stacks), rep, tuple(sorted(kept)), invariant, plan, hoisted, remaining
        )
        laws = _laws(view, found)
        laws = (RECOMPUTE, *laws) if (view.function.name, b.name) in self.again else laws
        return replace(found, laws=laws, all_laws=frozenset(laws).union(*(f.all_laws for f in plan.folds.values())))


def fold_reads(view: View, plan: FoldPlan) -> list[Ref]:
    """What the fold as planned reads of the function it is in: operands of the new body, what is computed before it,
    and the start of the accumulator."""
    stacked, extras = body_operands(view, plan, plan.remaining)
    _, moved = body_operands(view, plan, plan.body.needed(plan.hoisted))
    given = view.parts[plan.fold.acc]
    starts = [given[p] for p in (*plan.kept, *(q for q in plan.last if q in plan.invariant))]
    return list(dict.fromkeys([*(ref for ref, _ in (*stacked, *extras, *moved)), *starts]))


Operands = dict[tuple[Ref, Type], list[Ref]]
"""Parts of the function that a fold is in, as the types that its body knows, with the body's refs for them."""


def body_operands(view: View, plan: FoldPlan, wanted: Wanted) -> tuple[Operands, Operands]:
    """The stacked parts and the extras that are read; a part of the accumulator that never changes is an extra."""
    fold = plan.fold
    stacked: Operands = {}
    extras: Operands = {}
    params = plan.body.view.function.params
    for place, (param, operand) in enumerate(zip(params, operands(fold), strict=True)):
        for path in sorted(wanted.get(param.name, ())):
            into = stacked if place < len(fold.stacked) else extras
            if place != len(fold.stacked) or path in plan.invariant:
                own = (param.name, path)
                into.setdefault((view.parts[operand][path], plan.body.view.type_of(own)), []).append(own)
    return stacked, extras


def _carried(body: View, acc: Var, rep: Mapping[Path, Path], invariant: frozenset[Path], kept: set[Path]) -> set[Path]:
    """These parts of an accumulator and all that the body reads for them, where it has no fold in it: what is read for
    a part of a fold's result is not known before that fold is planned."""
    if any(isinstance(b.op, Fold) for b in body.function.bindings):
        return kept
    results = body.parts[body.function.ret]
    found, seen = set(kept), set[Var]()
    waiting = [results[p] for p in sorted(kept)]
    while waiting:
        base, path = waiting.pop()
        if base == acc and path not in invariant and rep[path] not in found:
            found.add(rep[path])
            waiting.append(results[rep[path]])
        if base in body.bindings and base not in seen:
            seen.add(base)
            waiting += body.read(body.bindings[base])
    return found


def _representatives(before: Parts, after: Parts, acc: Var, types: Mapping[Path, object]) -> dict[Path, Path]:
    """For every part of an accumulator the first one that starts as it does and is computed as it is, under the same
    names of axes."""
    first: dict[tuple[Ref, Ref, object], Path] = {}
    found: dict[Path, Path] = {}
    for path in sorted(before):
        own = after[path] == (acc, path)
        found[path] = path if own else first.setdefault((before[path], after[path], types[path]), path)
    return found


def _laws(view: View, plan: FoldPlan) -> tuple[str, ...]:
    """What is different in the new fold."""
    fold, wanted = plan.fold, plan.body.wanted
    acc = plan.body.view.function.params[len(fold.stacked)].name
    stacked, extras = body_operands(view, plan, wanted)
    read = sum(map(len, (*stacked.values(), *extras.values())))
    given = sum(len(view.parts[v]) for v in (*fold.stacked, *fold.extras))
    through = [p for p in plan.invariant if p in wanted.get(acc, ())]
    carried = [p for p in view.parts[fold.acc] if p not in plan.invariant]
    needed = [p for p in carried if plan.rep[p] in plan.kept]
    constant = [p for p in plan.invariant if p in plan.last or p in through]
    laws = {
        "fold.unread-operand": read - len(through) < given,
        "fold.same-operand": len(stacked) + len(extras) < read,
        "fold.invariant-code": bool(plan.hoisted),
        "fold.unread-stack": fold.scan and not plan.stacks,
        "fold.unread-part": len(needed) < len(carried) or len(constant) < len(plan.invariant),
        "fold.same-part": len(plan.kept) < len(needed),
        "fold.invariant-part": bool(constant),
    }
    return tuple(name for name, used in laws.items() if used)


# ------------------------------------------------------------------------------------------------ invariant code


def _hoisted(plan: FunctionPlan, fold: Fold, invariant: frozenset[Path], kept: set[Path]) -> tuple[Ref, ...]:
    """The invariant values that code which is not reads, or that are parts of the result, and are worth it."""
    if fold.count.is_constant and fold.count.const <= 1:
        return ()
    view = plan.view
    params = view.function.params
    varying = {(p.name, path) for p in params[: len(fold.stacked)] for path in view.parts[p.name]}
    acc = params[len(fold.stacked)].name
    varying |= {ref for path, ref in view.parts[acc].items() if path not in invariant}
    worth: set[Var] = set()
    edge: list[Ref] = []
    for b in view.function.bindings:
        if b.name not in plan.wanted:
            continue
        refs = plan.reads(b)
        moved = not any(ref in varying for ref in refs) and _may_move(b, fold.count)
        if moved:
            worth.update([b.name] if _works(b) or any(ref[0] in worth for ref in refs) else [])
            continue
        varying.update((b.name, path) for path in view.parts[b.name])
        edge += refs
    edge += [view.parts[view.function.ret][p] for p in sorted(kept)]
    return tuple(dict.fromkeys(ref for ref in edge if ref[0] in worth and ref not in varying))


def _may_move(b: Binding, count: Linear) -> bool:
    """Whether the body surely runs, or the operation has a value everywhere. A fold stays where it is."""
    match b.op:
        case Prim("pow", (int(n),), _) if n >= 0:
            return True
        case Prim(op, _, _):
            return (count.is_constant and count.const >= 1) or op in TOTAL or PRIMS[op].view
        case _:
            return False


def _works(b: Binding) -> bool:
    """Whether an operation is more than a view or a constant."""
    match b.op:
        case Prim(op, _, args):
            return bool(args) and not PRIMS[op].view
        case _:
            return False
