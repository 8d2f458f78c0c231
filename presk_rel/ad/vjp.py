"""Reverse mode for one function: `f.vjp(params…, ct)` copies the body of f and appends the reverse sweep (spec:
"Automatic differentiation").

For each binding, from last to first, the cotangents of its operands are computed from the cotangent of its result and
added to what they have. The result is the tuple of the cotangents of the parameters that have a real leaf, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from presk_rel.ad.builder import Builder
from presk_rel.ad.derivatives import DERIVATIVES
from presk_rel.ad.known import Known, known_functions
from presk_rel.ad.names import rename
from presk_rel.ad.row import Flat, Opaque, Site
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
    Op,
    Prim,
    Var,
)
from presk_rel.core.shapes import tangent
from presk_rel.diagnostics import Diagnostic, PreskBug
from presk_rel.elab.ty import ModuleDef, TupleOf

WantVjp = Callable[[str], str]
"""Asks for the `.vjp` of a function and says what it is called."""


def wrt(function: Function) -> tuple[int, ...]:
    """The parameters whose cotangents `.vjp` returns, before pruning."""
    return tuple(i for i, p in enumerate(function.params) if has_tangent(p.type))


@dataclass(slots=True)
class Sweep:
    """The state of one reverse sweep: `cts` are the cotangents so far, `at` the binding of the primal whose adjoint is
    being written, `origin` the binding that a copy is of or that the call of a `.vjp` is the adjoint of."""

    b: Builder
    program: dict[str, Function]
    want: WantVjp
    refusals: list[Diagnostic]
    known: dict[Var, Known]
    cts: dict[Var, Var]
    origin: dict[Var, Var]
    at: Var = ""

    def add(self, v: Var, ct: Var) -> None:
        """Accumulate a cotangent of `v`."""
        old = self.cts.get(v)
        ty = tangent(self.b.types[v])
        self.cts[v] = ct if old is None else self.b.prim("add", ty, old, ct)


@dataclass(frozen=True, slots=True)
class Vjp:
    """A `.vjp` before pruning: what it refuses (E6002), its bindings that are `copies`, and the `origin` in the primal
    of each copy and of each call of another `.vjp` (the binding it is the adjoint of)."""

    function: Function
    refusals: tuple[Diagnostic, ...]
    copies: frozenset[Var]
    origin: dict[Var, Var]


def reverse(f: Function, name: str, modules: dict[str, ModuleDef], program: dict[str, Function], want: WantVjp) -> Vjp:
    """`f.vjp`, called `name`."""
    b = Builder(modules)
    b.span = f.span
    renamed = {p.name: b.param(p.name, p.type) for p in f.params}
    ct = b.param("ct", tangent(f.result))
    for binding in f.bindings:
        _copy(b, binding, renamed)
    copies = tuple(b.bindings)
    origin = {copy.name: original.name for original, copy in zip(f.bindings, copies, strict=True)}
    sweep = Sweep(b, program, want, [], known_functions(copies), {}, origin)
    sweep.add(renamed[f.ret], ct)
    for original, copy in zip(reversed(f.bindings), reversed(copies), strict=True):
        if copy.name in sweep.cts and has_tangent(copy.type):
            sweep.at = original.name
            b.span, b.note = original.span, f"adjoint of {original.name} ({_label(original.op)})"
            _adjoint(sweep, copy)
    b.span = f.span
    outs = tuple(_cotangent(sweep, b.params[i].name) for i in wrt(f))
    b.note = None
    result = TupleOf(tuple(tangent(f.params[i].type) for i in wrt(f)))
    ret = b.prim("tuple", result, *outs)
    written = Function(name, f.dims, tuple(b.params), result, tuple(b.bindings), ret, f.uses, f.span)
    return Vjp(written, tuple(sweep.refusals), frozenset(c.name for c in copies), origin)


def _copy(b: Builder, binding: Binding, renamed: dict[Var, Var]) -> None:
    b.span, b.note = binding.span, f"primal {binding.name}, kept"
    user = binding.name if binding.name.partition("%")[0] else ""
    renamed[binding.name] = b.emit(rename(binding.op, renamed), binding.type, user)


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


def _adjoint(sweep: Sweep, binding: Binding) -> None:
    match binding.op:
        case Prim(op, attrs, args):
            _primitive(sweep, op, Site(attrs, args, binding.name, sweep.cts[binding.name]))
        case Call(fn, dim_args, args):
            _call(sweep, fn, dim_args, args, sweep.cts[binding.name])
        case Apply(fn, args) if fn in sweep.known:
            direct = sweep.known[fn].applied(args)
            _call(sweep, direct.fn, direct.dim_args, direct.args, sweep.cts[binding.name])
        case Apply(fn):
            why = f"cannot differentiate the application of `{fn}`: it is not a function known at compile time"
            sweep.refusals.append(Diagnostic("E6002", why, binding.span))
        case Fold():
            why = "cannot differentiate through a stacked module yet"
            sweep.refusals.append(Diagnostic("E6002", why, binding.span))
        case Closure() | Grad():
            raise PreskBug("ad", f"a function value ({binding.name}) has a cotangent")


def _primitive(sweep: Sweep, op: str, site: Site) -> None:
    row = DERIVATIVES.get(op)
    if row is None:
        raise PreskBug("ad", f"primitive {op} has no derivative row")
    for i, v in enumerate(site.args):
        rule = row.operand(i)
        if isinstance(rule, Flat) or not has_tangent(sweep.b.types[v]):
            continue
        if isinstance(rule, Opaque):
            why = f"cannot differentiate `{op}` with respect to a value of type {sweep.b.types[v]}: {rule.reason}"
            sweep.refusals.append(Diagnostic("E6002", why, sweep.b.span))
            continue
        sweep.add(v, rule(sweep.b, site, i))


def _call(sweep: Sweep, fn: str, dim_args: DimArgs, args: tuple[Var, ...], ct: Var) -> None:
    """The callee's cotangents of the arguments that have one."""
    which = wrt(sweep.program[fn])
    if not which:
        return
    types = tuple(tangent(sweep.b.types[args[i]]) for i in which)
    whole = sweep.b.emit(Call(sweep.want(fn), dim_args, (*args, ct)), TupleOf(types))
    sweep.origin[whole] = sweep.at
    for k, i in enumerate(which):
        sweep.add(args[i], sweep.b.prim("proj", types[k], whole, attrs=(k,)))
