"""`--remat store` of folds: the residuals of every layer are stacked (spec: "A fold stacks its layers' residuals").

    y = fold L body(stacked s; acc a; e)
      forward   ((y, r), (A, R)) = fold L body.fold_fwd(stacked s; acc (a, 0); e) scan
      sweep     c = fold L body.fold_bwd(stacked s, A, R'; acc c₀; e) reverse

`body.fold_fwd` is `body.fwd`, which returns the residuals beside the accumulator. R holds at slot i the residuals of
the iteration before i, zeros at the first; r are those of the last. R' is R moved on by one slot, with r in the one
freed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from presk_rel.ad.body import Body, zeros
from presk_rel.ad.residuals import Residual, Split, passed_on
from presk_rel.core.ir import Binding, Call, Fold, Function, Param, Prim, Var
from presk_rel.core.shapes import slice_type, stack_type
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import ModuleDef, TupleOf, Type
from presk_rel.smt.linear import symbol


@dataclass(slots=True)
class Helpers:
    """The bodies of folds that `store` writes, by what they are for."""

    functions: Mapping[str, Function]
    modules: dict[str, ModuleDef]
    made: dict[tuple[str, ...], Function] = field(default_factory=dict[tuple[str, ...], Function])
    names: set[str] = field(default_factory=set[str])

    def of(self, key: tuple[str, ...], name: str, write: Callable[[str], Function]) -> str:
        """The function that `write` makes, written once for each key; what it is called."""
        if key not in self.made:
            fresh, n = name, 1
            while fresh in self.functions or fresh in self.names:
                n += 1
                fresh = f"{name}{n}"
            self.names.add(fresh)
            self.made[key] = write(fresh)
        return self.made[key].name


def forward_fold(
    helpers: Helpers, body: Body, f: Function, b: Binding, fold: Fold, layers: Residual
) -> tuple[Var, Var]:
    """Write what the fold `b` of the forward pass becomes: the names of the pair of its value and the accumulators
    before each iteration, and of the stack of the residuals of its iterations."""
    assert layers.callee is not None
    acc = b.type.items[0] if fold.scan and isinstance(b.type, TupleOf) else b.type
    piece, stack = slice_type(fold.count, layers.type), stack_type(fold.count, acc)
    if piece is None or stack is None:
        raise PreskBug("ad", f"{b.name} : {b.type} has no stack")
    pair, stacks = TupleOf((acc, piece)), TupleOf((stack, layers.type))
    first = body.fresh(Prim("tuple", (), (fold.acc, zeros(body, piece, helpers.modules))), pair)
    keeping = replace(fold, body=_forward_body(helpers, fold, layers.callee), acc=first, scan=True)
    both = body.fresh(keeping, TupleOf((pair, stacks)), f"{b.name}, and what its iterations keep")
    last, history = body.proj(both, 0, pair), body.proj(both, 1, stacks)
    before = body.proj(history, 0, stack, f"the accumulators before, of {b.name}")
    if fold.scan:
        value = body.proj(last, 0, acc)
        body.bindings.append(replace(b, op=Prim("tuple", (), (value, before))))
        whole = b.name
    else:
        body.bindings.append(replace(b, op=Prim("proj", (0,), (last,))))
        whole = body.fresh(Prim("tuple", (), (b.name, before)), TupleOf((acc, stack)))
    own, others = body.proj(last, 1, piece), body.proj(history, 1, layers.type)
    given = tuple((d, symbol(d)) for d in f.dims)
    move = Fold(fold.count, _hand_on(helpers, f, piece), given, (others,), own, (), not fold.reverse, True)
    moved = body.fresh(move, TupleOf((piece, layers.type)))
    return whole, body.proj(moved, 1, layers.type, f"residuals of {b.name}")


def backward_fold(helpers: Helpers, fold: Fold, residuals: Var, layers: Residual) -> Fold:
    """The backward fold on the stack of the residuals: its body applies the `.bwd` of the layer."""
    split = layers.callee
    assert split is not None
    f, n = helpers.functions[fold.body], len(fold.stacked)

    def write(name: str) -> Function:
        at = Param(Body(f).name("r", [p.name for p in f.params] + [b.name for b in f.bindings]), split.type)
        bindings = tuple(_kept_call(b, split, at.name) for b in f.bindings)
        return replace(f, name=name, params=(*f.params[:n], at, *f.params[n:]), bindings=bindings)

    body = helpers.of(("bwd", fold.body), f"{fold.body}_kept", write)
    return replace(fold, body=body, stacked=(*fold.stacked, residuals))


def _kept_call(b: Binding, split: Split, residuals: Var) -> Binding:
    if not isinstance(b.op, Call) or b.op.fn != split.generated.name:
        return b
    *args, ct = passed_on(split, b.op)
    return replace(b, op=Call(split.bwd, b.op.dim_args, (*args, residuals, ct)))


def _forward_body(helpers: Helpers, fold: Fold, split: Split) -> str:
    """`body.fold_fwd(slices…, (acc, residuals before), extras…)`: the next accumulator and the residuals."""
    f, n = helpers.functions[fold.body], len(fold.stacked)

    def write(name: str) -> Function:
        body = Body(f)
        pair = TupleOf((f.params[n].type, split.type))
        params = (*f.params[:n], Param(f.params[n].name, pair), *f.params[n + 1 :])
        acc = body.proj(f.params[n].name, 0, f.params[n].type)
        args = tuple(acc if i == n else p.name for i, p in enumerate(f.params))
        given = tuple((d, symbol(d)) for d in f.dims)
        ret = body.fresh(Call(split.fwd, given, args), TupleOf((f.result, split.type)))
        result = TupleOf((f.result, split.type))
        return replace(f, name=name, params=params, result=result, bindings=tuple(body.bindings), ret=ret)

    return helpers.of(("fwd", split.fwd, str(n)), f"{fold.body}.fold_fwd", write)


def _hand_on(helpers: Helpers, f: Function, piece: Type) -> str:
    """The body of the fold that moves a stack on by one slot."""

    def write(name: str) -> Function:
        return Function(name, f.dims, (Param("s", piece), Param("a", piece)), piece, (), "s")

    return helpers.of(("shift", f.name, str(piece)), f"{f.name}.shift", write)
