"""`--remat store`: a gradient keeps its forward pass (spec: "Residuals").

    f.vjp(params…, ct)   =   { (value, r) = f.fwd(params…);  f.bwd(params the sweep reads…, r, ct) }

`f.fwd` is the body of f, its bindings numbered as in f; `f.bwd` is the sweep, its bindings numbered as in the `.vjp`. A
function whose sweep reads nothing but parameters has no `.fwd`. The values and their order are those of `recompute`, so
the results are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from presk_rel.ad.graph import callees_first
from presk_rel.ad.prune import Generated, prune
from presk_rel.ad.residuals import Forward, Residual, Split, callee_split, of_callee, passed_on, plan
from presk_rel.core.ir import Binding, Call, DimArgs, Fold, Function, Op, Param, Prim, Program, Var
from presk_rel.elab.ty import TupleOf, Type
from presk_rel.smt.linear import symbol


def store(program: Program, made: Iterable[Generated]) -> Program:
    """The program with every `.vjp` of `made` split; what is no longer reached is gone."""
    made = list(made)
    vjps = {g.name: g for g in made if g.kind == "vjp"}
    splits: dict[str, Split] = {}
    for name in callees_first(program.functions):
        if name in vjps:
            forward = Forward(program.functions[vjps[name].primal])
            splits[name] = plan(vjps[name], forward, program.functions, splits)
    functions: dict[str, Function] = {}
    for name, function in program.functions.items():
        if name not in splits:
            functions[name] = function
            continue
        for part in _parts(splits[name], program.functions, splits):
            functions[part.name] = part
    kept = [g for g in made if g.kind != "vjp"]
    for s in splits.values():
        kept += [Generated(s.fwd, s.generated.primal, "fwd")] if s.residuals else []
        kept += [Generated(s.bwd, s.generated.primal, "bwd"), s.generated]
    return prune(replace(program, functions=functions), kept, frozenset({"fwd"}))[0]


def _parts(split: Split, functions: Mapping[str, Function], splits: Mapping[str, Split]) -> Iterable[Function]:
    vjp, primal = functions[split.generated.name], functions[split.generated.primal]
    if split.residuals:
        yield _forward(split, primal)
    yield _backward(split, vjp, splits)
    yield _whole(split, vjp, primal)


class _Body:
    """Bindings in order; new ones are numbered after those of the function they are taken from."""

    def __init__(self, source: Function) -> None:
        self.bindings: list[Binding] = []
        names = [*(p.name for p in source.params), *(b.name for b in source.bindings)]
        numbers = [int(n.rpartition("%")[2]) for n in names if n.rpartition("%")[2].isdigit()]
        self._next = max([len(names), *(n + 1 for n in numbers)])

    def fresh(self, op: Op, ty: Type, note: str | None = None) -> Var:
        name = f"%{self._next}"
        self._next += 1
        self.bindings.append(Binding(name, ty, op, note=note))
        return name

    def name(self, base: str, taken: Iterable[Var]) -> Var:
        """A parameter's name: `base`, numbered when it is taken."""
        if base not in taken:
            return base
        self._next += 1
        return f"{base}%{self._next - 1}"


def _forward(split: Split, f: Function) -> Function:
    """`f.fwd`: f with the calls whose callee keeps residuals turned into calls of its `.fwd`, and the residuals."""
    body, forward = _Body(f), Forward(f)
    kept: dict[Residual, Var] = {}
    below = {r.primal: r for r in split.residuals if r.callee is not None or r.type != forward.types[r.primal]}
    for b in f.bindings:
        r = below.get(b.name)
        if r is None:
            body.bindings.append(b)
            continue
        if r.callee is None:
            assert isinstance(b.op, Fold)
            kept[r] = body.fresh(replace(b.op, scan=True), r.type, f"{b.name} and the accumulators before")
            body.bindings.append(replace(b, op=Prim("proj", (0,), (kept[r],))))
            continue
        call = forward.call(b.name)
        both = body.fresh(Call(r.callee.fwd, call.dim_args, call.args), TupleOf((b.type, r.type)), b.note)
        body.bindings.append(replace(b, op=Prim("proj", (0,), (both,))))
        kept[r] = body.fresh(Prim("proj", (1,), (both,)), r.type, f"residuals of {b.name}")
    names = tuple(kept.get(r, r.primal) for r in split.residuals)
    residuals = body.fresh(Prim("tuple", (), names), split.type, "residuals")
    result = TupleOf((f.result, split.type))
    ret = body.fresh(Prim("tuple", (), (f.ret, residuals)), result)
    return Function(split.fwd, f.dims, f.params, result, tuple(body.bindings), ret, f.uses, f.span)


def _backward(split: Split, vjp: Function, splits: Mapping[str, Split]) -> Function:
    """`f.bwd`: the sweep, its residuals taken from the parameter `r`."""
    body = _Body(vjp)
    params = [vjp.params[i] for i in split.params]
    ct = vjp.params[-1]
    whole = Param(body.name("r", [p.name for p in vjp.params] + [b.name for b in vjp.bindings]), split.type)
    index = {r.local: i for i, r in enumerate(split.residuals)}
    made = split.generated
    for b in vjp.bindings:
        if b.name in index:
            note = f"residual {made.origin[b.name]}"
            body.bindings.append(replace(b, op=Prim("proj", (index[b.name],), (whole.name,)), note=note))
        elif b.name not in made.copies:
            body.bindings.append(_in_sweep(body, made, b, whole.name, split, index, splits))
        elif b.name in split.reads.again:
            body.bindings.append(b)
    signature = (*params, *([whole] if split.residuals else []), ct)
    return Function(split.bwd, vjp.dims, signature, vjp.result, tuple(body.bindings), vjp.ret, vjp.uses, vjp.span)


def _in_sweep(
    body: _Body,
    made: Generated,
    b: Binding,
    whole: Var,
    split: Split,
    index: Mapping[Var, int],
    splits: Mapping[str, Split],
) -> Binding:
    """A binding of the sweep; a call of a `.vjp` becomes one of its `.bwd`, on the callee's residuals."""
    callee = callee_split(made, b, splits)
    if callee is None:
        return split.reads.redirected(b)
    assert isinstance(b.op, Call)
    *args, ct = passed_on(callee, b.op)
    if callee.residuals:
        i = index[of_callee(b)]
        args.append(
            body.fresh(Prim("proj", (i,), (whole,)), split.residuals[i].type, f"residuals of {made.origin[b.name]}")
        )
    return replace(b, op=Call(callee.bwd, b.op.dim_args, (*args, ct)))


def _whole(split: Split, vjp: Function, f: Function) -> Function:
    """`f.vjp`: `f.bwd` after `f.fwd`."""
    body = _Body(replace(vjp, bindings=()))
    dims: DimArgs = tuple((d, symbol(d)) for d in vjp.dims)
    args = [vjp.params[i].name for i in split.params]
    if split.residuals:
        given = tuple(p.name for p in vjp.params[: len(f.params)])
        both = body.fresh(Call(split.fwd, dims, given), TupleOf((f.result, split.type)))
        args.append(body.fresh(Prim("proj", (1,), (both,)), split.type, "residuals"))
    ret = body.fresh(Call(split.bwd, dims, (*args, vjp.params[-1].name)), vjp.result)
    return replace(vjp, bindings=tuple(body.bindings), ret=ret)
