"""The function that `grad`, `vjp` or `jvp` of a function is (spec: "Automatic differentiation").

f.grad(captured…, x)            =  f.vjp(captured…, x, 1).x
f.pullback(captured…, x, ct)    =  f.vjp(captured…, x, ct).x
f.pushforward(captured…, x, v)  =  f.jvp(captured…, x, v).1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from presk_rel.ad.builder import Builder
from presk_rel.ad.sweep import Writer, wrt
from presk_rel.ad.tangent import has_tangent, without_tangent
from presk_rel.core.ir import Binding, Call, Function, Grad, Jvp, Op, Param, Var, Vjp
from presk_rel.core.shapes import compatible_types, tangent
from presk_rel.diagnostics import Diagnostic, PreskBug
from presk_rel.elab.ty import Function as FunctionType
from presk_rel.elab.ty import ModuleDef, TupleOf, Type
from presk_rel.smt.linear import symbol

Kind = Literal["grad", "pullback", "pushforward"]
KINDS: frozenset[str] = frozenset({"grad", "pullback", "pushforward"})


@dataclass(frozen=True, slots=True)
class Operator:
    """What one `grad`, `vjp` or `jvp` asks of its function: the kind, and the type of the last parameter."""

    kind: Kind
    last: Type


def word(op: Grad | Vjp | Jvp) -> str:
    match op:
        case Grad():
            return "gradient"
        case Vjp():
            return "cotangent"
        case Jvp():
            return "tangent"


def kind_of(op: Grad | Vjp | Jvp) -> Kind:
    match op:
        case Grad():
            return "grad"
        case Vjp():
            return "pullback"
        case Jvp():
            return "pushforward"


def operator(site: Binding, op: Grad | Vjp | Jvp, of: FunctionType, f: Function) -> Operator:
    """What the binding `site` asks of `f`, `of` being the type of the function value."""
    kind, declared = kind_of(op), site.type
    if kind == "grad":
        return Operator(kind, f.params[-1].type)
    if not isinstance(declared, FunctionType) or len(declared.params) != 2:
        raise PreskBug("ad", f"{site.name} has the type {declared}")
    varied, generic = (of.result, f.result) if kind == "pullback" else (of.params[0], f.params[-1].type)
    whole = not compatible_types(declared.params[1], tangent(varied))
    return Operator(kind, generic if whole else tangent(generic))


def refusal(site: Binding, op: Grad | Vjp | Jvp, f: Function) -> Diagnostic | None:
    """E6002 where what the operator gives has a part that says nothing, and the binding's type wants one."""
    x = f.params[-1]
    if isinstance(op, Jvp):
        if not has_tangent(x.type):
            why = f"no tangent along `{x.name}`: it is {without_tangent(x.type)}"
            return Diagnostic("E6002", why, site.span)
        found, what = f.result, f"no tangent of the result of `{f.name}`"
    else:
        found, what = x.type, f"no {word(op)} with respect to `{x.name}`"
    why_not = without_tangent(found)
    if why_not is None or _declares_tangent(site, found):
        return None
    hint = "let the function take, and give, only what one differentiates; the rest it may capture: λ x. f(x, key)"
    return Diagnostic("E6002", f"{what}: its type {found} holds {why_not}", site.span, help=hint)


def _declares_tangent(site: Binding, ty: Type) -> bool:
    """Whether the binding already says that parts of the result are unit (and some part is not)."""
    return has_tangent(ty) and isinstance(site.type, FunctionType) and compatible_types(site.type.result, tangent(ty))


def write(f: Function, name: str, asked: Operator, modules: dict[str, ModuleDef], writer: Writer) -> Function:
    """The function, called `name`."""
    b = Builder(modules)
    b.span = f.span
    params = [Param(b.param(p.name, p.type), p.type) for p in f.params]
    if asked.kind == "grad":
        b.note = "the cotangent of the result"
        change = b.const(1)
        b.note = None
    else:
        last = "ct" if asked.kind == "pullback" else f"d{f.params[-1].name}"
        params.append(Param(b.param(last, asked.last), asked.last))
        change = _stripped(b, params[-1].name)
    args = (*(p.name for p in params[: len(f.params)]), change)
    ret = _reverse(b, f, args, writer) if asked.kind != "pushforward" else _forward(b, f, args, writer)
    return Function(name, f.dims, tuple(params), b.types[ret], tuple(b.bindings), ret, f.uses, f.span)


def _reverse(b: Builder, f: Function, args: tuple[Var, ...], writer: Writer) -> Var:
    which = wrt(f)
    types = tuple(tangent(f.params[i].type) for i in which)
    op: Op = Call(writer.vjp(f.name), tuple((d, symbol(d)) for d in f.dims), args)
    return b.prim("proj", types[-1], b.emit(op, TupleOf(types)), attrs=(len(which) - 1,))


def _forward(b: Builder, f: Function, args: tuple[Var, ...], writer: Writer) -> Var:
    types = TupleOf((f.result, tangent(f.result)))
    op: Op = Call(writer.jvp(f.name, (len(f.params) - 1,)), tuple((d, symbol(d)) for d in f.dims), args)
    return b.prim("proj", types.items[1], b.emit(op, types), attrs=(1,))


def _stripped(b: Builder, v: Var) -> Var:
    """`v` as a cotangent or tangent: its parts that are no reals are unit."""
    ty = b.types[v]
    match ty:
        case _ if ty == tangent(ty):
            return v
        case TupleOf(items):
            parts = [_stripped(b, b.prim("proj", t, v, attrs=(i,))) for i, t in enumerate(items)]
            return b.prim("tuple", tangent(ty), *parts)
        case _:
            return b.prim("zeros_like", tangent(ty), v)
