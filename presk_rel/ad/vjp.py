"""Reverse mode for one function: `f.vjp(params…, ct)` copies the body of f and appends the reverse sweep (spec:
"Automatic differentiation").

For each binding, from last to first, the cotangents of its operands are computed from the cotangent of its result and
added to what they have. The result is the tuple of the cotangents of the parameters that have a real leaf, in order.
"""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.ad.builder import Builder
from presk_rel.ad.derivatives import DERIVATIVES
from presk_rel.ad.folds import copy_fold, fold_adjoint
from presk_rel.ad.known import known_functions
from presk_rel.ad.names import rename
from presk_rel.ad.row import Flat, Opaque, Site
from presk_rel.ad.sweep import Sweep, Writer, wrt
from presk_rel.ad.tangent import has_tangent
from presk_rel.core.ir import (
    Apply,
    Binding,
    Call,
    Closure,
    DimArgs,
    Fold,
    Function,
    Grad,
    Jvp,
    Op,
    Prim,
    Var,
    Vjp,
)
from presk_rel.core.shapes import tangent
from presk_rel.diagnostics import Diagnostic, PreskBug
from presk_rel.elab.ty import ModuleDef, TupleOf


@dataclass(frozen=True, slots=True)
class Reversed:
    """A `.vjp` before pruning: what it refuses (E6002), its bindings that are `copies`, and the `origin` in the primal
    of each copy and of each call of another `.vjp` (the binding it is the adjoint of)."""

    function: Function
    refusals: tuple[Diagnostic, ...]
    copies: frozenset[Var]
    origin: dict[Var, Var]


@dataclass(frozen=True, slots=True)
class _Copy:
    """A binding of the primal and its copy: the operation on the copied names, and the names of its value and, for a
    fold that also scans in the copy, of the whole."""

    original: Binding
    op: Op
    value: Var
    whole: Var


def reverse(f: Function, name: str, modules: dict[str, ModuleDef], writer: Writer) -> Reversed:
    """`f.vjp`, called `name`."""
    b = Builder(modules)
    b.span = f.span
    renamed = {p.name: b.param(p.name, p.type) for p in f.params}
    ct = b.param("ct", tangent(f.result))
    copies = [_copy(b, binding, renamed) for binding in f.bindings]
    origin = {v: c.original.name for c in copies for v in (c.value, c.whole)}
    kept = frozenset(binding.name for binding in b.bindings)
    sweep = Sweep(f.name, b, writer, [], known_functions(b.bindings), {}, origin)
    sweep.add(renamed[f.ret], ct)
    for c in reversed(copies):
        if c.value in sweep.cts and has_tangent(b.types[c.value]):
            sweep.at = c.original.name
            b.span, b.note = c.original.span, f"adjoint of {c.original.name} ({_label(c.original.op)})"
            _adjoint(sweep, c)
    b.span = f.span
    outs = tuple(_cotangent(sweep, b.params[i].name) for i in wrt(f))
    b.note = None
    result = TupleOf(tuple(tangent(f.params[i].type) for i in wrt(f)))
    ret = b.prim("tuple", result, *outs)
    written = Function(name, f.dims, tuple(b.params), result, tuple(b.bindings), ret, f.uses, f.span)
    return Reversed(written, tuple(sweep.refusals), kept, origin)


def _copy(b: Builder, binding: Binding, renamed: dict[Var, Var]) -> _Copy:
    b.span, b.note = binding.span, f"primal {binding.name}, kept"
    user = binding.name if binding.name.partition("%")[0] else ""
    op = rename(binding.op, renamed)
    if isinstance(op, Fold):
        whole, value = copy_fold(b, binding.type, op, user)
    else:
        whole = value = b.emit(op, binding.type, user)
    renamed[binding.name] = value
    return _Copy(binding, op, value, whole)


def _label(op: Op) -> str:
    match op:
        case Prim(name):
            return name
        case Call(fn):
            return f"call {fn}"
        case Closure(fn):
            return f"closure {fn}"
        case Grad(fn):
            return f"grad {fn}"
        case Vjp(fn):
            return f"vjp {fn}"
        case Jvp(fn):
            return f"jvp {fn}"
        case Apply(fn):
            return f"apply {fn}"
        case Fold():
            return f"fold {op.body}"


def _cotangent(sweep: Sweep, param: Var) -> Var:
    found = sweep.cts.get(param)
    if found is not None:
        return found
    sweep.b.note = f"nothing reads {param}"
    return sweep.b.prim("zeros_like", tangent(sweep.b.types[param]), param)


def _adjoint(sweep: Sweep, c: _Copy) -> None:
    ct = sweep.cts[c.value]
    match c.op:
        case Prim(op, attrs, args):
            _primitive(sweep, op, Site(attrs, args, c.value, ct))
        case Call(fn, dim_args, args):
            _call(sweep, fn, dim_args, args, ct)
        case Apply(fn, args) if fn in sweep.known:
            direct = sweep.known[fn].applied(args)
            _call(sweep, direct.fn, direct.dim_args, direct.args, ct)
        case Apply(fn):
            sweep.refuse(f"cannot differentiate the application of `{fn}`: it is not a function known at compile time")
        case Fold():
            fold_adjoint(sweep, c.op, c.whole, ct)
        case Closure() | Grad() | Vjp() | Jvp():
            raise PreskBug("ad", f"a function value ({c.value}) has a cotangent")


def _primitive(sweep: Sweep, op: str, site: Site) -> None:
    row = DERIVATIVES.get(op)
    if row is None:
        raise PreskBug("ad", f"primitive {op} has no derivative row")
    for i, v in enumerate(site.args):
        rule = row.operand(i)
        if isinstance(rule, Flat) or not has_tangent(sweep.b.types[v]):
            continue
        if isinstance(rule, Opaque):
            sweep.refuse(f"cannot differentiate `{op}` by a value of type {sweep.b.types[v]}: {rule.reason}")
            continue
        sweep.add(v, rule(sweep.b, site, i))


def _call(sweep: Sweep, fn: str, dim_args: DimArgs, args: tuple[Var, ...], ct: Var) -> None:
    """The callee's cotangents of the arguments that have one."""
    which = wrt(sweep.writer.function(fn))
    if not which:
        return
    types = tuple(tangent(sweep.b.types[args[i]]) for i in which)
    whole = sweep.b.emit(Call(sweep.writer.vjp(fn), dim_args, (*args, ct)), TupleOf(types))
    sweep.origin[whole] = sweep.at
    for k, i in enumerate(which):
        sweep.add(args[i], sweep.b.prim("proj", types[k], whole, attrs=(k,)))
