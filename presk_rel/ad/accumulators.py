"""Accumulators of generated folds that nothing reads (spec: "Dead code after differentiation").

    c = fold L body.fold_bwd(stacked s, A; acc (c, s₀, e₀); e) reverse scan

sums the cotangent of every extra argument e; where no one reads that sum, it goes from the accumulator, and with it
what the body computes for it alone. A component stays where it is read after the fold, in its last value or in the
stack of its values, or where a component that stays is computed from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from presk_rel.ad.body import Body
from presk_rel.core.ir import Binding, Fold, Function, Prim, Var, operands
from presk_rel.core.shapes import stack_type
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import TupleOf, Type


@dataclass(frozen=True, slots=True)
class _Use:
    """A fold: the function it is in, its binding, and the names of its last accumulator and of the stack of them."""

    caller: str
    b: Binding
    fold: Fold
    last: frozenset[Var]
    history: frozenset[Var]


def narrowed(functions: Mapping[str, Function], bodies: Iterable[str], generated: set[str]) -> dict[str, Function]:
    """What changes of `functions`: those of `bodies` whose accumulator has a component that nothing reads, and the
    functions with their folds. Only functions in `generated` may change."""
    uses = _uses(functions, set(bodies))
    changed: dict[str, Function] = {}
    for name, found in uses.items():
        if found is None or not {u.caller for u in found} <= generated:
            continue
        now = {**functions, **changed}
        kept = _kept(now, now[name], found)
        if kept is None:
            continue
        changed[name] = _narrow_body(now[name], len(found[0].fold.stacked), kept)
        for caller in dict.fromkeys(u.caller for u in found):
            now = {**functions, **changed}
            changed[caller] = _narrow_folds(now[caller], [u for u in found if u.caller == caller], kept)
    return changed


def _uses(functions: Mapping[str, Function], bodies: set[str]) -> dict[str, list[_Use] | None]:
    """The folds of each body; None where it is used otherwise, or a fold's value is read whole."""
    found: dict[str, list[_Use] | None] = {}
    for name, f in functions.items():
        for b in f.bindings:
            if isinstance(b.op, Fold) and b.op.body in bodies:
                use, known = _use(name, f, b, b.op), found.setdefault(b.op.body, [])
                found[b.op.body] = None if use is None or known is None else [*known, use]
            elif getattr(b.op, "fn", None) in bodies:
                found[str(getattr(b.op, "fn", ""))] = None
    return found


def _use(caller: str, f: Function, b: Binding, fold: Fold) -> _Use | None:
    last, history = ({b.name}, set[Var]()) if not fold.scan else (set[Var](), set[Var]())
    for c in f.bindings:
        match c.op:
            case Prim("proj", (0,), (whole,)) if fold.scan and whole == b.name:
                last.add(c.name)
            case Prim("proj", (1,), (whole,)) if fold.scan and whole == b.name:
                history.add(c.name)
            case Prim("proj"):
                pass
            case op:
                if (last | history | {b.name}) & set(operands(op)):
                    return None
    whole = f.ret in last | history | {b.name}
    return None if whole else _Use(caller, b, fold, frozenset(last), frozenset(history))


def _kept(functions: Mapping[str, Function], body: Function, uses: list[_Use]) -> list[int] | None:
    """The components that stay; None where that is all of them, or the body does not say."""
    n = len(uses[0].fold.stacked)
    acc, ret = body.params[n], next((b for b in body.bindings if b.name == body.ret), None)
    if not isinstance(acc.type, TupleOf) or ret is None or not isinstance(ret.op, Prim) or ret.op.op != "tuple":
        return None
    needs = _needs(body, acc.name)
    if needs is None or any(len(u.fold.stacked) != n for u in uses):
        return None
    wanted = {i for u in uses for i in _read(functions[u.caller], u)}
    waiting = list(wanted)
    while waiting:
        new = needs.get(ret.op.args[waiting.pop()], frozenset()) - wanted
        wanted |= new
        waiting += new
    return sorted(wanted) if 0 < len(wanted) < len(acc.type.items) else None


def _read(caller: Function, use: _Use) -> Iterable[int]:
    for b in caller.bindings:
        match b.op:
            case Prim("proj", (int(i),), (whole,)) if whole in use.last | use.history:
                yield i
            case _:
                continue


def _needs(body: Function, acc: Var) -> dict[Var, frozenset[int]] | None:
    """The components of the accumulator that each value is computed from; None where it is read whole."""
    needs: dict[Var, frozenset[int]] = {}
    for b in body.bindings:
        match b.op:
            case Prim("proj", (int(i),), (whole,)) if whole == acc:
                needs[b.name] = frozenset({i})
            case _ if acc in operands(b.op):
                return None
            case _:
                needs[b.name] = frozenset[int]().union(*(needs.get(v, frozenset()) for v in operands(b.op)))
    return needs


def _only(ty: Type, kept: list[int]) -> TupleOf:
    if not isinstance(ty, TupleOf):
        raise PreskBug("ad", f"{ty} is no tuple")
    return TupleOf(tuple(ty.items[i] for i in kept))


def _narrow_body(body: Function, n: int, kept: list[int]) -> Function:
    acc = body.params[n]
    ty = _only(acc.type, kept)
    place = {old: new for new, old in enumerate(kept)}
    bindings: list[Binding] = []
    for b in body.bindings:
        match b.op:
            case Prim("proj", (int(i),), (whole,)) if whole == acc.name:
                if i in place:
                    bindings.append(replace(b, op=Prim("proj", (place[i],), (whole,))))
            case Prim("tuple", (), args) if b.name == body.ret:
                bindings.append(replace(b, type=ty, op=Prim("tuple", (), tuple(args[i] for i in kept))))
            case _:
                bindings.append(b)
    params = (*body.params[:n], replace(acc, type=ty), *body.params[n + 1 :])
    return replace(body, params=params, result=ty, bindings=_live(bindings, body.ret))


def _live(bindings: list[Binding], ret: Var) -> tuple[Binding, ...]:
    read, kept = {ret}, list[Binding]()
    for b in reversed(bindings):
        if b.name in read:
            kept.append(b)
            read.update(operands(b.op))
    return tuple(reversed(kept))


def _narrow_folds(f: Function, uses: list[_Use], kept: list[int]) -> Function:
    place = {old: new for new, old in enumerate(kept)}
    folds = {u.b.name: u for u in uses}
    wholes = {v: u for u in uses for v in (*u.last, *u.history)}
    types = {p.name: p.type for p in f.params} | {b.name: b.type for b in f.bindings}
    tuples = {b.name: b.op.args for b in f.bindings if isinstance(b.op, Prim) and b.op.op == "tuple"}
    body = Body(f)
    for b in f.bindings:
        use = wholes.get(b.name)
        match b.op:
            case Fold() as fold if b.name in folds:
                ty = _only(types[fold.acc], kept)
                parts = tuples.get(fold.acc)
                items = zip(kept, ty.items, strict=True)
                names = tuple(parts[i] if parts is not None else body.proj(fold.acc, i, t) for i, t in items)
                first = body.fresh(Prim("tuple", (), names), ty, b.note)
                body.bindings.append(replace(b, type=_result(fold, ty), op=replace(fold, acc=first)))
            case Prim("proj", _, (whole,)) if use is not None and whole == use.b.name:
                body.bindings.append(replace(b, type=_only(b.type, kept)))
            case Prim("proj", (int(i),), (whole,)) if whole in wholes:
                body.bindings.append(replace(b, op=Prim("proj", (place[i],), (whole,))))
            case _:
                body.bindings.append(b)
    return replace(f, bindings=tuple(body.bindings))


def _result(fold: Fold, acc: TupleOf) -> Type:
    stack = stack_type(fold.count, acc) if fold.scan else None
    if fold.scan and stack is None:
        raise PreskBug("ad", f"{acc} has no stack")
    return acc if stack is None else TupleOf((acc, stack))
