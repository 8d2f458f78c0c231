"""Folds in reverse (spec: "Automatic differentiation"): the forward copy scans, and the sweep folds the other way.

    y = fold L body(stacked s; acc a; e)
      forward   (y, A) = fold L body(stacked s; acc a; e) scan            A: the accumulator before each iteration
      sweep     (c, C) = fold L body.fold_bwd(stacked s, A; acc c₀; e) reverse scan

The accumulator of the backward fold is the tuple (∂acc, ∂s of the iteration just done, ∂e summed); its body applies
`body.vjp` at iteration i on slice i of A. C holds at slot i the accumulator before iteration i, that is ∂s of i + 1,
and c that of 0: a fold that only hands on (`….shift`) puts c in front of C. No primitive is needed, so a backward fold
is itself differentiated by this rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from presk_rel.ad.builder import Builder
from presk_rel.ad.sweep import Sweep, Writer, wrt
from presk_rel.ad.tangent import has_tangent, without_tangent
from presk_rel.core.ir import Call, DimArgs, Fold, Function, Param, Prim, Var
from presk_rel.core.shapes import slice_type, stack_type, tangent
from presk_rel.diagnostics import PreskBug
from presk_rel.elab.ty import Params, Real, TupleOf, Type, field_names, field_type
from presk_rel.smt.linear import Linear, constant, symbol


def copy_fold(b: Builder, ty: Type, op: Fold, user: Var) -> tuple[Var, Var]:
    """The forward copy of a fold, which scans where its accumulators stack: the name of the fold, and of its value."""
    stack = stack_type(op.count, ty)
    if op.scan or stack is None or not has_tangent(ty):
        name = b.emit(op, ty, user)
        return name, name
    both = b.emit(replace(op, scan=True), TupleOf((ty, stack)))
    return both, b.emit(Prim("proj", (0,), (both,)), ty, user)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which operands of a fold have a cotangent, by position in the body's parameters: stacked ones, then extras."""

    stacked: tuple[int, ...]
    extras: tuple[int, ...]


def _shape(body: Function, n: int) -> _Shape:
    """`n` stacked operands, the accumulator, the extras."""
    which = wrt(body)
    return _Shape(tuple(i for i in which if i < n), tuple(i for i in which if i > n))


def fold_adjoint(sweep: Sweep, op: Fold, whole: Var, ct: Var) -> None:
    """The cotangents of the operands of a fold `op`, whose forward copy is `whole`, from the cotangent of its value: of
    the last accumulator, or of the pair of it and the stack where `op` scans itself."""
    b, n = sweep.b, len(op.stacked)
    body = sweep.writer.function(op.body)
    shape = _shape(body, n)
    acc = b.types[op.acc]
    if stack_type(op.count, acc) is None:
        _refuse(sweep, "accumulator", acc)
        return
    parts = _cotangents(sweep, op, ct)
    stack = b.prim("proj", _item(b.types[whole], 1), whole, attrs=(1,))
    args = (*op.stacked, stack, *([parts.stack] if parts.stack is not None else []))
    start = [parts.acc, *(_zeros(b, _slice(op.count, b.types[op.stacked[i]])) for i in shape.stacked)]
    for i in shape.extras:
        e = op.extras[i - n - 1]
        start.append(b.prim("zeros_like", tangent(b.types[e]), e))
    types = TupleOf(tuple(b.types[v] for v in start))
    first = b.prim("tuple", types, *start)
    backward = _backward_body(sweep.writer, body, n, parts.stack is not None)
    fold = Fold(op.count, backward, op.dim_args, args, first, op.extras, not op.reverse, bool(shape.stacked))
    _unpack(sweep, op, fold, types, shape)


def _refuse(sweep: Sweep, what: str, ty: Type) -> None:
    reason, hint = _unstackable(ty)
    sweep.refuse(f"cannot differentiate through a fold whose {what} has no stack: it holds {reason}", hint)


def _unstackable(ty: Type) -> tuple[str, str]:
    """The part of a type of which there is no stack, in words, and what to do about it."""
    part = ty
    while isinstance(part, TupleOf):
        part = next(t for t in part.items if stack_type(constant(1), t) is None)
    hint = "what does not change from one iteration to the next is an extra argument"
    return without_tangent(part) or str(part), hint


@dataclass(frozen=True, slots=True)
class _Parts:
    acc: Var
    stack: Var | None


def _cotangents(sweep: Sweep, op: Fold, ct: Var) -> _Parts:
    """The cotangents of the last accumulator and of the stack."""
    b = sweep.b
    if not op.scan:
        return _Parts(ct, None)
    return _Parts(*(b.prim("proj", _item(b.types[ct], i), ct, attrs=(i,)) for i in (0, 1)))


def _item(ty: Type, i: int) -> Type:
    assert isinstance(ty, TupleOf)
    return ty.items[i]


def _slice(count: Linear, ty: Type) -> Type:
    piece = slice_type(count, ty)
    if piece is None:
        raise PreskBug("ad", f"{ty} is no stack of {count}")
    return tangent(piece)


def _zeros(b: Builder, ty: Type) -> Var:
    """Zeros of a type no value of which is at hand."""
    match ty:
        case TupleOf(items):
            return b.prim("tuple", ty, *[_zeros(b, t) for t in items])
        case Params(instance):
            fields = [field_type(b.modules, instance, n) for n in field_names(b.modules, instance)]
            return b.prim("record", ty, *[_zeros(b, t) for t in fields if t is not None])
        case Real():
            return b.prim("zeros", ty)
        case _:
            raise PreskBug("ad", f"{ty} is no type of a cotangent")


def _unpack(sweep: Sweep, op: Fold, fold: Fold, types: TupleOf, shape: _Shape) -> None:
    """Emit the backward fold, and add what it gives to the cotangents of the operands."""
    b, n = sweep.b, len(op.stacked)
    last = history = None
    if fold.scan:
        stack = stack_type(op.count, types)
        if stack is None:
            _refuse(sweep, "cotangent", types)
            return
        both = b.emit(fold, TupleOf((types, stack)))
        sweep.origin[both] = sweep.at
        last, history = b.prim("proj", types, both, attrs=(0,)), b.prim("proj", stack, both, attrs=(1,))
    else:
        last = b.emit(fold, types)
        sweep.origin[last] = sweep.at
    sweep.add(op.acc, b.prim("proj", types.items[0], last, attrs=(0,)))
    for k, i in enumerate(shape.stacked, start=1):
        assert history is not None
        own = b.prim("proj", types.items[k], last, attrs=(k,))
        others = b.prim("proj", _item(b.types[history], k), history, attrs=(k,))
        sweep.add(op.stacked[i], _shifted(sweep, op, own, others))
    for k, i in enumerate(shape.extras, start=1 + len(shape.stacked)):
        sweep.add(op.extras[i - n - 1], b.prim("proj", types.items[k], last, attrs=(k,)))


def _shifted(sweep: Sweep, op: Fold, own: Var, others: Var) -> Var:
    """The stack `others` moved on by one slot in the fold's direction, `own` in the slot that frees."""
    b = sweep.b
    piece = b.types[own]
    dims = sweep.writer.function(sweep.primal).dims

    def write(name: str) -> Function:
        params = (Param("s", piece), Param("a", piece))
        return Function(name, dims, params, piece, (), "s")

    hand_on = sweep.writer.helper(f"{sweep.primal}.shift {piece}", f"{sweep.primal}.shift", write)
    given: DimArgs = tuple((d, symbol(d)) for d in dims)
    both = b.emit(
        Fold(op.count, hand_on, given, (others,), own, (), op.reverse, True), TupleOf((piece, b.types[others]))
    )
    return b.prim("proj", b.types[others], both, attrs=(1,))


def _backward_body(writer: Writer, body: Function, n: int, scanned: bool) -> str:
    """`body.fold_bwd(slices…, acc, [ct of the stack's slice,] c, extras…)`: the accumulator of the iteration before."""
    kind = f"{body.name}.fold_bwd" + ("_scan" if scanned else "")
    return writer.helper(f"{kind} {n}", kind, lambda name: _write_backward(writer, body, n, scanned, name))


def _write_backward(writer: Writer, body: Function, n: int, scanned: bool, name: str) -> Function:
    b = Builder({})
    b.span = body.span
    shape = _shape(body, n)
    acc = tangent(body.params[n].type)
    which = (*shape.stacked, *shape.extras)
    c_type = TupleOf((acc, *(tangent(body.params[i].type) for i in which)))
    before = tuple(b.param(p.name, p.type) for p in body.params[: n + 1])
    ct_stack = b.param("ct_stack", acc) if scanned else None
    c = b.param("ct", c_type)
    extras = tuple(b.param(p.name, p.type) for p in body.params[n + 1 :])
    ct = b.prim("proj", acc, c, attrs=(0,))
    order = wrt(body)
    types = TupleOf(tuple(tangent(body.params[i].type) for i in order))
    given: DimArgs = tuple((d, symbol(d)) for d in body.dims)
    got = b.emit(Call(writer.vjp(body.name), given, (*before, *extras, ct)), types)
    found = {i: b.prim("proj", types.items[k], got, attrs=(k,)) for k, i in enumerate(order)}
    out = found[n]
    if ct_stack is not None:
        out = b.prim("add", acc, out, ct_stack)
    outs = [out, *(found[i] for i in shape.stacked)]
    for k, i in enumerate(shape.extras, start=1 + len(shape.stacked)):
        outs.append(b.prim("add", c_type.items[k], b.prim("proj", c_type.items[k], c, attrs=(k,)), found[i]))
    ret = b.prim("tuple", c_type, *outs)
    return Function(name, body.dims, tuple(b.params), c_type, tuple(b.bindings), ret, body.uses, body.span)
