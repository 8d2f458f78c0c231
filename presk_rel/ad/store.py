"""`--remat store`: a gradient keeps its forward pass (spec: "Residuals").

    f.vjp(params…, ct)   =   { (value, r) = f.fwd(params…);  f.bwd(params the sweep reads…, r, ct) }

`f.fwd` is the body of f, its bindings numbered as in f; `f.bwd` is the sweep, its bindings numbered as in the `.vjp`. A
function whose sweep reads nothing but parameters has no `.fwd`. The values and their order are those of `recompute`, so
the results are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from presk_rel.ad.body import Body
from presk_rel.ad.graph import callees_first
from presk_rel.ad.prune import Generated, prune
from presk_rel.ad.residuals import Forward, Residual, Split, callee_split, of_callee, passed_on, plan
from presk_rel.ad.store_folds import Helpers, backward_fold, forward_fold
from presk_rel.core.ir import Binding, Call, DimArgs, Fold, Function, Param, Prim, Program, Var
from presk_rel.elab.ty import TupleOf
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
    helpers = Helpers(program.functions, program.modules)
    for name, function in program.functions.items():
        if name not in splits:
            functions[name] = function
            continue
        for part in _parts(splits[name], program.functions, splits, helpers):
            functions[part.name] = part
    functions |= {f.name: f for f in helpers.made.values()}
    kept = [g for g in made if g.kind != "vjp"] + [Generated(f.name, f.name, "helper") for f in helpers.made.values()]
    for s in splits.values():
        kept += [Generated(s.fwd, s.generated.primal, "fwd")] if s.residuals else []
        kept += [Generated(s.bwd, s.generated.primal, "bwd"), s.generated]
    return prune(replace(program, functions=functions), kept, frozenset({"fwd"}))[0]


def _parts(
    split: Split, functions: Mapping[str, Function], splits: Mapping[str, Split], helpers: Helpers
) -> Iterable[Function]:
    vjp, primal = functions[split.generated.name], functions[split.generated.primal]
    if split.residuals:
        yield _forward(split, primal, helpers)
    yield _backward(split, vjp, splits, helpers)
    yield _whole(split, vjp, primal)


def _forward(split: Split, f: Function, helpers: Helpers) -> Function:
    """`f.fwd`: f with the calls whose callee keeps residuals turned into calls of its `.fwd`, and the residuals."""
    body, forward = Body(f), Forward(f)
    kept: dict[Residual, Var] = {}
    below: dict[Var, list[Residual]] = {}
    for r in split.residuals:
        if r.callee is not None or r.type != forward.types[r.primal]:
            below.setdefault(r.primal, []).append(r)
    for b in f.bindings:
        if b.name not in below:
            body.bindings.append(b)
        elif isinstance(b.op, Fold):
            kept |= _kept_fold(helpers, body, f, b, b.op, below[b.name])
        else:
            (r,) = below[b.name]
            assert r.callee is not None
            call = forward.call(b.name)
            both = body.fresh(Call(r.callee.fwd, call.dim_args, call.args), TupleOf((b.type, r.type)), b.note)
            body.bindings.append(replace(b, op=Prim("proj", (0,), (both,))))
            kept[r] = body.proj(both, 1, r.type, f"residuals of {b.name}")
    names = tuple(kept.get(r, r.primal) for r in split.residuals)
    residuals = body.fresh(Prim("tuple", (), names), split.type, "residuals")
    result = TupleOf((f.result, split.type))
    ret = body.fresh(Prim("tuple", (), (f.ret, residuals)), result)
    return Function(split.fwd, f.dims, f.params, result, tuple(body.bindings), ret, f.uses, f.span)


def _kept_fold(
    helpers: Helpers, body: Body, f: Function, b: Binding, fold: Fold, kept: list[Residual]
) -> dict[Residual, Var]:
    """A fold of which the accumulators are kept, and the residuals of its body where that has some."""
    layers = next((r for r in kept if r.callee is not None), None)
    own = next((r for r in kept if r.callee is None), None)
    if layers is not None:
        whole, stack = forward_fold(helpers, body, f, b, fold, layers)
        return {layers: stack} | ({own: whole} if own is not None else {})
    assert own is not None
    whole = body.fresh(replace(fold, scan=True), own.type, f"{b.name} and the accumulators before")
    body.bindings.append(replace(b, op=Prim("proj", (0,), (whole,))))
    return {own: whole}


def _backward(split: Split, vjp: Function, splits: Mapping[str, Split], helpers: Helpers) -> Function:
    """`f.bwd`: the sweep, its residuals taken from the parameter `r`."""
    body = Body(vjp)
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
            body.bindings.append(_in_sweep(body, made, b, whole.name, split, index, splits, helpers))
        elif b.name in split.reads.again:
            body.bindings.append(b)
    signature = (*params, *([whole] if split.residuals else []), ct)
    return Function(split.bwd, vjp.dims, signature, vjp.result, tuple(body.bindings), vjp.ret, vjp.uses, vjp.span)


def _in_sweep(
    body: Body,
    made: Generated,
    b: Binding,
    whole: Var,
    split: Split,
    index: Mapping[Var, int],
    splits: Mapping[str, Split],
    helpers: Helpers,
) -> Binding:
    """A binding of the sweep; a call of a `.vjp` becomes one of its `.bwd`, on the callee's residuals."""
    if isinstance(b.op, Fold) and of_callee(b) in index:
        i = index[of_callee(b)]
        layers = split.residuals[i]
        given = body.proj(whole, i, layers.type, f"residuals of {layers.primal}")
        return replace(b, op=backward_fold(helpers, b.op, given, layers))
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
    body = Body(replace(vjp, bindings=()))
    dims: DimArgs = tuple((d, symbol(d)) for d in vjp.dims)
    args = [vjp.params[i].name for i in split.params]
    if split.residuals:
        given = tuple(p.name for p in vjp.params[: len(f.params)])
        both = body.fresh(Call(split.fwd, dims, given), TupleOf((f.result, split.type)))
        args.append(body.fresh(Prim("proj", (1,), (both,)), split.type, "residuals"))
    ret = body.fresh(Call(split.bwd, dims, (*args, vjp.params[-1].name)), vjp.result)
    return replace(vjp, bindings=tuple(body.bindings), ret=ret)
