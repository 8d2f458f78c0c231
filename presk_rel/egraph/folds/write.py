"""Writes the functions of a plan (`folds.plan`): the entry and the bodies that stay, with their folds changed, and the
bodies of the new folds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from presk_rel.core.ir import Binding, Fold, Function, Op, Param, Prim, Program, Var, operands
from presk_rel.core.names import Fresh
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.budget import Budget, Limits
from presk_rel.egraph.folds.laws import FOLD_LAWS
from presk_rel.egraph.folds.plan import AGAIN, FoldPlan, FunctionPlan, Planner, body_operands
from presk_rel.egraph.folds.views import Path, Ref, View
from presk_rel.elab.ty import TupleOf, Type


@dataclass(frozen=True, slots=True)
class Change:
    """In `function`, the value that `path` leads to in the fold `old` is called `new`, by these laws: what changes this
    fold, those in its body, and those before it."""

    function: str
    old: Var
    path: Path
    new: Var
    laws: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Smaller:
    """The program with smaller folds, and what its new folds have to do with the old ones."""

    program: Program
    changes: tuple[Change, ...]


def smaller_folds(
    program: Program,
    entry: str,
    functions: Mapping[str, Function],
    again: Collection[tuple[str, Var]] = (),
    budget: Budget | None = None,
) -> Smaller | None:
    """The program in which the folds of `entry`, of these flat functions, are as small as they can be; None where they
    are. A body that changes gets a new name. In the folds `again`, of a function and by name, the functions differ from
    those of the program already, by `fold.recompute`. OutOfBudget if that is too much to find out."""
    planner = Planner(functions, frozenset(again), budget or Budget.of(Limits()))
    plan = planner.whole(entry)
    if not plan.changed:
        return None
    maker = _Maker(planner, Fresh(program.functions))
    maker.keep(entry, plan)
    return Smaller(replace(program, functions={**program.functions, **maker.made}), tuple(maker.changes))


@dataclass(slots=True)
class _Maker:
    planner: Planner
    names: Fresh
    made: dict[str, Function] = field(default_factory=dict[str, Function])
    changes: list[Change] = field(default_factory=list[Change])
    bodies: dict[object, str] = field(default_factory=dict[object, str])

    def keep(self, name: str, plan: FunctionPlan) -> None:
        """Write a function that keeps its name and signature."""
        if name in self.made or not plan.changed:
            return
        function = plan.view.function
        w = Writer(plan, self, function.name, Names.of(function))
        w.bases.update((p.name, p.name) for p in function.params)
        w.emit_all(plan.wanted)
        ret = w.whole(function.ret)
        self.made[name] = replace(function, bindings=tuple(w.bindings), ret=ret)

    def body(self, plan: FoldPlan, stacked: list[list[Ref]], extras: list[list[Ref]]) -> str:
        """Write the body of a new fold: its parameters in order, each for the old body's refs. Folds that are made
        alike share one: in a nest there would be twice as many at each level of two."""
        refs = (tuple(map(tuple, stacked)), tuple(map(tuple, extras)), plan.hoisted)
        key = (plan.fold.body, plan.kept, plan.invariant, tuple(plan.rep.items()), refs)
        if key not in self.bodies:
            self.bodies[key] = self.new_body(plan, stacked, extras)
        return self.bodies[key]

    def new_body(self, plan: FoldPlan, stacked: list[list[Ref]], extras: list[list[Ref]]) -> str:
        old = plan.body.view
        function = old.function
        name = self.names.like(f"{plan.fold.body.removesuffix(AGAIN)}'")
        w = Writer(plan.body, self, None, Names())
        w.split = {p.name for p in function.params} | {ref[0] for ref in plan.hoisted}
        params = [w.param(refs) for refs in stacked]
        params.append(w.accumulator(plan))
        params += [w.param(refs) for refs in extras]
        params += [w.param([ref]) for ref in plan.hoisted]
        w.emit_all(plan.remaining)
        results = [old.parts[function.ret][p] for p in plan.kept]
        ret = w.one(results)
        types = [old.type_of(ref) for ref in results]
        result = types[0] if len(types) == 1 else TupleOf(tuple(types))
        self.made[name] = replace(
            function, name=name, params=tuple(params), result=result, bindings=tuple(w.bindings), ret=ret
        )
        return name


@dataclass(slots=True)
class Names:
    """The names of one function: those in it, and those that its old bindings will have."""

    taken: set[Var] = field(default_factory=set[Var])
    reserved: set[Var] = field(default_factory=set[Var])

    @staticmethod
    def of(function: Function) -> Names:
        """With the parameters in it, and the names of its bindings kept for them."""
        return Names({p.name for p in function.params}, {b.name for b in function.bindings})

    def fresh(self, like: Var | None, *, own: bool = False) -> Var:
        """A new name: `like`, where that is free or (`own`) reserved."""
        n = len(self.taken)
        name = like or f"%{n}"
        while name in self.taken or (name in self.reserved and not (own and name == like)):
            name, n = f"{(like or '').split('%')[0]}%{n}", n + 1
        self.taken.add(name)
        return name


@dataclass(slots=True)
class Writer:
    """Writes the bindings of one function. `bases` are the new names of parameters and results, `parts` those of parts
    of what is `split`: of which only parts are there. A `guest` writes into another function. `maker` None: folds stay
    as they are. `function` None: its changes need no proof of their own, being inside of one."""

    plan: FunctionPlan
    maker: _Maker | None
    function: str | None
    names: Names
    bindings: list[Binding] = field(default_factory=list[Binding])
    bases: dict[Var, Var] = field(default_factory=dict[Var, Var])
    parts: dict[Ref, Var] = field(default_factory=dict[Ref, Var])
    split: set[Var] = field(default_factory=set[Var])
    guest: bool = False
    laws: dict[Var, frozenset[str]] = field(default_factory=dict[Var, frozenset[str]])
    so_far: set[str] = field(default_factory=set[str])
    copies: dict[Var, Var] = field(default_factory=dict[Var, Var])

    @property
    def view(self) -> View:
        return self.plan.view

    # ------------------------------------------------------------------------------------------------ names

    def bind(self, ty: Type, op: Op, old: Binding | None) -> Var:
        name = self.names.fresh(old.name if old else None, own=not self.guest)
        made = Binding(name, ty, op)
        self.bindings.append(replace(made, span=old.span, note=old.note) if old else made)
        return name

    def part(self, ref: Ref) -> Var:
        """The name of a part, which is read off what it is of."""
        base, path = ref
        if ref in self.parts:
            return self.parts[ref]
        if base in self.split:
            raise PreskBug("egraph", f"no part {path} of {base} in {self.view.function.name}")
        if not path:
            return self.bases[base]
        whole = self.part((base, path[:-1]))
        op = Prim("proj", (path[-1],), (whole,))
        self.parts[ref] = self.bind(self.view.type_of(ref), op, self.view.called.get(ref))
        return self.parts[ref]

    def whole(self, var: Var) -> Var:
        """The name of an old value, built as it was."""
        if var not in self.copies:
            self.copies[var] = self._whole(var)
        return self.copies[var]

    def _whole(self, var: Var) -> Var:
        at = self.view.at.get(var)
        if at is not None:
            return self.part(at) if at[0] not in self.split or at in self.parts else self.rebuilt(at)
        b = self.view.bindings[var]
        assert isinstance(b.op, Prim)
        return self.bind(b.type, replace(b.op, args=tuple(map(self.whole, b.op.args))), b)

    def rebuilt(self, at: Ref) -> Var:
        """What is split, put together."""
        if at in self.parts:
            return self.parts[at]
        ty = self.view.type_of(at)
        assert isinstance(ty, TupleOf)
        args = tuple(self.rebuilt((at[0], (*at[1], k))) for k in range(len(ty.items)))
        name = self.parts[at] = self.bind(ty, Prim("tuple", (), args), self.view.called.get(at))
        self.changed(at, name)
        return name

    def changed(self, ref: Ref, name: Var) -> None:
        if self.function is not None and self.maker is not None and ref[0] in self.laws:
            laws = tuple(law for law in FOLD_LAWS if law in self.laws[ref[0]])
            self.maker.changes.append(Change(self.function, *ref, name, laws))

    def one(self, refs: list[Ref]) -> Var:
        """One value of some parts: the only one, or a tuple."""
        if len(refs) == 1:
            return self.part(refs[0])
        types = tuple(map(self.view.type_of, refs))
        return self.bind(TupleOf(types), Prim("tuple", (), tuple(map(self.part, refs))), None)

    # ------------------------------------------------------------------------------------------------ parameters

    def param(self, refs: list[Ref]) -> Param:
        """A parameter that stands for these parts."""
        base, path = refs[0]
        old = self.view.called.get(refs[0])
        name = self.names.fresh(base if not path else old.name if old else None)
        self.parts.update((ref, name) for ref in refs)
        return Param(name, self.view.type_of(refs[0]))

    def accumulator(self, plan: FoldPlan) -> Param:
        """The parameter of what is carried, and its parts."""
        old = self.view.function.params[len(plan.fold.stacked)].name
        refs = [(old, p) for p in plan.kept]
        if len(refs) == 1:
            found = self.param(refs)
        else:
            found = Param(self.names.fresh(old), TupleOf(tuple(map(self.view.type_of, refs))))
            for k, ref in enumerate(refs):
                op = Prim("proj", (k,), (found.name,))
                self.parts[ref] = self.bind(self.view.type_of(ref), op, self.view.called.get(ref))
        for p, first in plan.rep.items():
            if first in plan.kept and p not in plan.invariant:
                self.parts[old, p] = self.parts[old, first]
        return found

    # ------------------------------------------------------------------------------------------------ bindings

    def emit_all(self, wanted: Mapping[Var, frozenset[Path]]) -> None:
        for b in self.view.function.bindings:
            if b.name in wanted:
                self.emit(b)

    def emit(self, b: Binding) -> None:
        plan = self.plan.folds.get(b.name)
        if plan is not None and plan.laws:
            self.emit_fold(plan)
            return
        if plan is not None and self.maker is not None:
            self.maker.keep(plan.fold.body, self.maker.planner.whole(plan.fold.body))
        self.bases[b.name] = self.bind(b.type, _renamed(b.op, tuple(map(self.whole, operands(b.op)))), b)

    def emit_fold(self, plan: FoldPlan) -> None:
        b, fold = plan.binding, plan.fold
        self.split.add(b.name)
        self.so_far |= plan.all_laws
        self.laws[b.name] = frozenset(self.so_far)
        given = self.view.parts[fold.acc]
        if plan.kept:
            self.emit_new(plan)
        for p in plan.last:
            if p in plan.invariant:
                self.found(b.name, (0, *p) if fold.scan else p, self.part(given[p]))

    def emit_new(self, plan: FoldPlan) -> None:
        b, fold = plan.binding, plan.fold
        assert self.maker is not None
        stacked, extras = body_operands(self.view, plan, plan.remaining)
        body = self.maker.body(plan, list(stacked.values()), list(extras.values()))
        before = self.hoisted(plan)
        acc = self.one([self.view.parts[fold.acc][p] for p in plan.kept])
        new = Fold(
            fold.count,
            body,
            fold.dim_args,
            tuple(self.part(ref) for ref, _ in stacked),
            acc,
            (*(self.part(ref) for ref, _ in extras), *before),
            fold.reverse,
            bool(plan.stacks),
        )
        ty = self.gathered(plan, 0)
        if plan.stacks:
            ty = TupleOf((ty, self.gathered(plan, 1)))
        whole = self.bind(ty, new, b)
        self.unpack(plan, whole, ty)

    def gathered(self, plan: FoldPlan, half: int) -> Type:
        """The type of what is carried, or of its stack, as it was."""
        places = ((half, *p) if plan.fold.scan else p for p in plan.kept)
        types = tuple(self.view.type_of((plan.binding.name, p)) for p in places)
        return types[0] if len(types) == 1 else TupleOf(types)

    def unpack(self, plan: FoldPlan, whole: Var, ty: Type) -> None:
        """Name the parts of the new fold's result that are read."""
        b, scan, known = plan.binding, bool(plan.stacks), dict[Path, Var]()

        def at(path: Path) -> Var:
            if not path:
                return whole
            if path not in known:
                above = at(path[:-1])
                step = ty
                for k in path:
                    assert isinstance(step, TupleOf)
                    step = step.items[k]
                known[path] = self.bind(step, Prim("proj", (path[-1],), (above,)), None)
            return known[path]

        for half, wanted in ((0, plan.last), (1, plan.stacks)):
            for p in wanted:
                if p in plan.invariant:
                    continue
                place = (plan.kept.index(plan.rep[p]),) if len(plan.kept) > 1 else ()
                old = (half, *p) if plan.fold.scan else p
                self.found(b.name, old, at((half, *place) if scan else place))

    def found(self, old: Var, path: Path, name: Var) -> None:
        self.parts[old, path] = name
        self.changed((old, path), name)

    def hoisted(self, plan: FoldPlan) -> tuple[Var, ...]:
        """Compute here what the body computed in every iteration."""
        if not plan.hoisted:
            return ()
        inner = Writer(plan.body, self.maker, None, self.names, self.bindings, guest=True)
        inner.split = {p.name for p in plan.body.view.function.params}
        wanted = plan.body.needed(plan.hoisted)
        _, extras = body_operands(self.view, plan, wanted)
        for (mine, _), refs in extras.items():
            inner.parts.update((ref, self.part(mine)) for ref in refs)
        inner.emit_all(wanted)
        return tuple(map(inner.part, plan.hoisted))


def _renamed(op: Op, args: tuple[Var, ...]) -> Op:
    match op:
        case Prim():
            return replace(op, args=args)
        case Fold():
            n = len(op.stacked)
            return replace(op, stacked=args[:n], acc=args[n], extras=args[n + 1 :])
        case _:
            raise PreskBug("egraph", f"not flat: {op}")
